-- The ledger in the order in which it was written, so that `hookledger verify --incremental`
-- finds what came since its last run without reading the rest.

-- +goose Up

-- A block range index: the ledger is only ever added to, so entry_id follows the blocks.
-- It is a few pages for millions of entries, and costs an insert next to nothing: a range
-- is summarized once, when it is full. It is no wall, and nothing relies on it being fast.
create index ledger_entries_by_id on ledger_entries using brin (entry_id) with (pages_per_range = 32, autosummarize = on);

-- +goose Down

drop index ledger_entries_by_id;
