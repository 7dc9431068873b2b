-- The memory of events, the ledger, and the positions, in one schema.
--
-- Rules that hold for every table here:
--   * Keys are uuid (a 128-bit hash, compared as bytes) or text collate "C", so that
--     Go and every server sort them alike: locks are taken in one order everywhere.
--     A uuid is fixed at 16 bytes: an index tuple of 24 bytes where bytea needs 32.
--   * Money is bigint in minor units beside its currency; times are timestamptz.
--   * Every constraint has a name, because the program tells a bad record from a
--     broken database by it.
--   * Wide fixed columns first, then narrow ones, then text: no padding between them.
--   * No trigger, no function: the hot path runs plain statements.
--   * No foreign keys: they would lock parents in an order of their own, and the
--     memory of events may be forgotten while its entries stay.

-- +goose Up

-- Roles belong to the cluster, not to this database: other databases may have made
-- them already, or may be making them this instant.
-- +goose StatementBegin
do $$
declare
	r text;
begin
	foreach r in array array['hookledger_worker', 'hookledger_operator', 'hookledger_reader'] loop
		if exists (select from pg_catalog.pg_roles where rolname = r) then
			continue;
		end if;
		begin
			execute format('create role %I nologin', r);
		exception
			when duplicate_object or unique_violation then
				null; -- another database was faster
			when insufficient_privilege then
				raise exception 'role % does not exist and % may not create it', r, current_user
					using errcode = 'insufficient_privilege',
					      hint = format('as a role with CREATEROLE, run: create role %I nologin; then migrate again', r);
		end;
	end loop;
	execute format('grant usage on schema %I to hookledger_worker, hookledger_operator, hookledger_reader', current_schema());
end
$$;
-- +goose StatementEnd

-- The memory of events is a ring of eight partitions, made here once so that no DDL
-- runs while the system does. This one row says which is open and how far back
-- memory reaches; rotating is an UPDATE of it.
create table event_ring (
	forgotten_count   bigint      not null default 0,
	-- When each generation was last opened; generation g is element g + 1.
	opened_at         timestamptz[] not null default array[now(), null, null, null, null, null, null, null]::timestamptz[],
	open_generation   smallint    not null default 0,
	oldest_generation smallint    not null default 0,
	only_row          boolean     not null default true,
	constraint event_ring_pkey primary key (only_row),
	constraint event_ring_one_row check (only_row),
	constraint event_ring_open_range check (open_generation between 0 and 7),
	constraint event_ring_oldest_range check (oldest_generation between 0 and 7),
	constraint event_ring_forgotten_range check (forgotten_count >= 0),
	constraint event_ring_eight_times check (cardinality(opened_at) = 8)
);
insert into event_ring default values;

-- What became of each event. May forget: the ledger's walls stand without it.
create table processed_events (
	"offset"     bigint      not null,
	received_at  timestamptz not null,
	processed_at timestamptz not null,
	occurred_at  timestamptz,
	event_key    uuid        not null,
	meaning      uuid        not null,
	partition    integer     not null,
	generation   smallint    not null,
	body_sha256  bytea       not null,
	outcome      text        not null,
	source       text collate "C" not null,
	event_id     text collate "C" not null,
	type         text        not null,
	topic        text        not null,
	-- The key comes first, so that a lookup by event key needs no generation.
	constraint processed_events_pkey primary key (event_key, generation),
	constraint processed_events_outcome_known
		check (outcome in ('applied', 'ignored', 'same_effect', 'stale', 'discarded'))
) partition by list (generation);

create table processed_events_0 partition of processed_events for values in (0);
create table processed_events_1 partition of processed_events for values in (1);
create table processed_events_2 partition of processed_events for values in (2);
create table processed_events_3 partition of processed_events for values in (3);
create table processed_events_4 partition of processed_events for values in (4);
create table processed_events_5 partition of processed_events for values in (5);
create table processed_events_6 partition of processed_events for values in (6);
create table processed_events_7 partition of processed_events for values in (7);

-- The ledger. Never forgets, is only ever added to.
create table ledger_entries (
	entry_id     bigint      not null generated always as identity,
	amount       bigint      not null,
	applied_at   timestamptz not null,
	occurred_at  timestamptz,
	effect_key   uuid        not null,
	event_key    uuid,
	payment_id   uuid,
	amendment_id uuid,
	line         integer     not null,
	currency     text collate "C" not null,
	account_id   text collate "C" not null,
	source       text collate "C",
	event_id     text collate "C",
	contra       text collate "C" not null,
	rule         text collate "C" not null,
	movement_id  text collate "C" not null,
	-- The first wall: a movement of money happens once, whoever tells of it. It is the
	-- primary key because these two indexes are for ever: a third one over entry_id
	-- would only repeat what its sequence already ensures.
	constraint ledger_entries_effect_once primary key (effect_key),
	constraint ledger_entries_amount_range
		check (amount <> 0 and amount between -1000000000000000 and 1000000000000000),
	constraint ledger_entries_one_cause
		check (num_nonnulls(event_key, payment_id, amendment_id) = 1),
	constraint ledger_entries_event_named
		check (event_key is null or (source is not null and event_id is not null)),
	constraint ledger_entries_line_range check (line >= 0)
);
-- The second wall: an event writes each of its lines once, whatever today's mapping
-- calls the movement. Entries of payments and amendments stay out of it.
create unique index ledger_entries_event_line_once on ledger_entries (event_key, line)
	where event_key is not null;

-- The sum of the entries. Room on the page keeps updates in place (HOT): a batch
-- updates each of its accounts once, and no indexed column changes.
create table accounts (
	balance     bigint      not null,
	entry_count bigint      not null,
	updated_at  timestamptz not null,
	account_id  text collate "C" not null,
	currency    text collate "C" not null,
	constraint accounts_pkey primary key (account_id, currency),
	constraint accounts_entry_count_positive check (entry_count > 0)
) with (fillfactor = 70);

-- What status events say of an object. Moves by (occurred_at, rank) alone, never by
-- order of arrival; the status itself breaks ties, so that every order ends the same.
create table payment_states (
	rank        bigint      not null,
	occurred_at timestamptz not null,
	updated_at  timestamptz not null,
	event_key   uuid        not null,
	source      text collate "C" not null,
	object      text collate "C" not null,
	status      text collate "C" not null,
	event_id    text collate "C" not null,
	constraint payment_states_pkey primary key (source, object)
) with (fillfactor = 70);

-- A known event ID that came again with another meaning. first_… says which record
-- stood, so that both bodies can be compared: the first one is in the topic.
create table event_conflicts (
	conflict_id       bigint      not null generated always as identity,
	"offset"          bigint      not null,
	first_offset      bigint      not null,
	seen_at           timestamptz not null,
	received_at       timestamptz not null,
	resolved_at       timestamptz,
	event_key         uuid        not null,
	meaning           uuid        not null,
	first_meaning     uuid        not null,
	topic_id          uuid        not null,
	partition         integer     not null,
	first_partition   integer     not null,
	body_sha256       bytea       not null,
	first_body_sha256 bytea       not null,
	source            text collate "C" not null,
	event_id          text collate "C" not null,
	type              text        not null,
	topic             text        not null,
	resolution        text,
	headers           jsonb       not null,
	body              bytea       not null,
	constraint event_conflicts_once primary key (event_key, body_sha256),
	constraint event_conflicts_resolution_complete check ((resolved_at is null) = (resolution is null))
);

-- Records that cannot be applied, until a person decides. Source and event ID are
-- null where the record does not say; headers is an array of objects with key and
-- value, or key_base64 and value_base64 where bytes are not text that jsonb can hold.
create table quarantined_events (
	id             bigint      not null generated always as identity,
	"offset"       bigint      not null,
	record_time    timestamptz not null,
	quarantined_at timestamptz not null,
	resolved_at    timestamptz,
	topic_id       uuid        not null,
	partition      integer     not null,
	source         text collate "C",
	event_id       text collate "C",
	topic          text        not null,
	reason         text        not null,
	detail         text        not null,
	resolution     text,
	record_key     bytea,
	headers        jsonb       not null,
	body           bytea,
	constraint quarantined_events_pkey primary key (id),
	constraint quarantined_events_record_once unique (topic_id, partition, "offset"),
	constraint quarantined_events_resolution_complete check ((resolved_at is null) = (resolution is null))
);

-- The next offset of each partition as Postgres knows it. One row per partition,
-- updated by every batch.
create table consumer_progress (
	from_offset  bigint      not null,
	next_offset  bigint      not null,
	updated_at   timestamptz not null,
	topic_id     uuid        not null,
	partition    integer     not null,
	leader_epoch integer     not null,
	cluster_id   text collate "C" not null,
	topic        text collate "C" not null,
	constraint consumer_progress_pkey primary key (cluster_id, topic_id, partition),
	constraint consumer_progress_offsets_ordered check (0 <= from_offset and from_offset <= next_offset)
) with (fillfactor = 50);

-- Every jump of a position, and whatever else a person must see. once_key makes an
-- incident that a retry would raise again be raised once.
create table incidents (
	incident_id     bigint      not null generated always as identity,
	from_offset     bigint,
	to_offset       bigint,
	raised_at       timestamptz not null,
	acknowledged_at timestamptz,
	partition       integer,
	severity        text        not null,
	kind            text        not null,
	topic           text,
	once_key        text collate "C",
	acknowledged_by text,
	detail          jsonb       not null default '{}',
	constraint incidents_pkey primary key (incident_id),
	constraint incidents_once unique (once_key),
	constraint incidents_severity_known check (severity in ('info', 'warning', 'loss')),
	constraint incidents_acknowledgement_complete check ((acknowledged_at is null) = (acknowledged_by is null))
);

-- Rights. The worker adds entries and can never change one. It may empty a
-- generation, which is how memory is forgotten without DDL, and resolve a quarantined
-- record that it applied; acknowledging is for operators.
grant select on
	hookledger_schema, event_ring, processed_events, ledger_entries, accounts, payment_states,
	event_conflicts, quarantined_events, consumer_progress, incidents
	to hookledger_worker, hookledger_operator, hookledger_reader;
grant select on
	processed_events_0, processed_events_1, processed_events_2, processed_events_3,
	processed_events_4, processed_events_5, processed_events_6, processed_events_7
	to hookledger_worker, hookledger_operator, hookledger_reader;
grant insert on ledger_entries to hookledger_worker, hookledger_operator;
grant insert, update on processed_events, accounts, payment_states, consumer_progress
	to hookledger_worker, hookledger_operator;
grant insert on event_conflicts, quarantined_events, incidents to hookledger_worker, hookledger_operator;
grant update on event_ring to hookledger_worker, hookledger_operator;
grant truncate on
	processed_events_0, processed_events_1, processed_events_2, processed_events_3,
	processed_events_4, processed_events_5, processed_events_6, processed_events_7
	to hookledger_worker, hookledger_operator;
grant update (resolved_at, resolution) on quarantined_events to hookledger_worker, hookledger_operator;
grant update (resolved_at, resolution) on event_conflicts to hookledger_operator;
grant update (acknowledged_at, acknowledged_by) on incidents to hookledger_operator;

-- +goose Down

-- The roles stay: other databases of the cluster may use them. Their rights on
-- these tables go with the tables.
drop table incidents;
drop table consumer_progress;
drop table quarantined_events;
drop table event_conflicts;
drop table payment_states;
drop table accounts;
drop table ledger_entries;
drop table processed_events;
drop table event_ring;
-- +goose StatementBegin
do $$
begin
	execute format('revoke usage on schema %I from hookledger_worker, hookledger_operator, hookledger_reader', current_schema());
	revoke select on hookledger_schema from hookledger_worker, hookledger_operator, hookledger_reader;
end
$$;
-- +goose StatementEnd
