-- What operators do by hand, who and why: amendments of applied money, decisions about
-- what is in quarantine or in conflict, and acknowledgements.

-- +goose Up

-- An amendment mends money that an event moved wrongly: entries with its amendment_id
-- take back what stood and, unless kind is reverse, say what the event means today.
-- event_key and the names are the event's; partition and offset are those of the record
-- that was mapped, null for a reversal, which maps nothing.
create table amendments (
	"offset"     bigint,
	amended_at   timestamptz not null,
	amendment_id uuid        not null,
	event_key    uuid        not null,
	meaning      uuid,
	partition    integer,
	kind         text        not null,
	topic        text collate "C",
	source       text collate "C" not null,
	event_id     text collate "C" not null,
	amended_by   text        not null,
	reason       text        not null,
	constraint amendments_pkey primary key (amendment_id),
	constraint amendments_kind_known check (kind in ('amend', 'reverse')),
	constraint amendments_reason_given check (reason <> '' and amended_by <> '')
);
create index amendments_event on amendments (event_key, amended_at);
-- The entries of an amendment: few beside those of events, and found by nothing else.
create index ledger_entries_amendment on ledger_entries (amendment_id) where amendment_id is not null;

alter table incidents add column acknowledged_reason text;

-- resolution is a word (replayed by a worker; retried, discarded by a person); these
-- say which person, and why.
alter table quarantined_events add column resolved_by text, add column resolved_reason text;
alter table event_conflicts add column resolved_by text, add column resolved_reason text;

grant select on amendments to hookledger_worker, hookledger_operator, hookledger_reader;
grant insert on amendments to hookledger_operator;
grant update (acknowledged_reason) on incidents to hookledger_operator;
grant update (resolved_by, resolved_reason) on quarantined_events, event_conflicts to hookledger_operator;

-- +goose Down

alter table event_conflicts drop column resolved_by, drop column resolved_reason;
alter table quarantined_events drop column resolved_by, drop column resolved_reason;
alter table incidents drop column acknowledged_reason;
drop index ledger_entries_amendment;
drop table amendments;
