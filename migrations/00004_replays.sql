-- Replays by operators: who had what applied again, or moved the group, when and why.

-- +goose Up

-- One row per replay. A run moves (partition, next_offset) and the counts in the very
-- transactions that apply its records, so that a run that was cut goes on where it stood
-- and counts nothing twice. attempt is its fence: who goes on takes the next number, and
-- the batches of whoever went before fail. beat_at is when the runner was last alive.
-- plan holds what was foreseen, as it stands in the plan's file.
create table replays (
	replay_id     bigint      not null generated always as identity,
	attempt       bigint      not null,
	next_offset   bigint,
	records       bigint      not null default 0,
	applied       bigint      not null default 0,
	ignored       bigint      not null default 0,
	same_effect   bigint      not null default 0,
	stale         bigint      not null default 0,
	discarded     bigint      not null default 0,
	duplicate     bigint      not null default 0,
	conflict      bigint      not null default 0,
	quarantined   bigint      not null default 0,
	started_at    timestamptz not null,
	beat_at       timestamptz not null,
	finished_at   timestamptz,
	topic_id      uuid        not null,
	partition     integer,
	accepted      boolean     not null default false,
	kind          text        not null,
	state         text        not null,
	cluster_id    text collate "C" not null,
	topic         text collate "C" not null,
	plan_hash     text collate "C" not null,
	database_user text        not null default session_user,
	requested_by  text        not null,
	reason        text        not null,
	detail        text,
	plan          jsonb       not null,
	constraint replays_pkey primary key (replay_id),
	constraint replays_kind_known check (kind in ('run', 'reset')),
	constraint replays_state_known check (state in ('running', 'stopped', 'done')),
	constraint replays_reason_given check (reason <> '' and requested_by <> ''),
	constraint replays_finished check ((state = 'done') = (finished_at is not null))
) with (fillfactor = 50);
-- One at a time, whoever starts it and through whatever pooler.
create unique index replays_one_running on replays ((true)) where state = 'running';
create index replays_plan on replays (plan_hash);

-- What a run moved, by currency: minor units.
create table replay_moves (
	replay_id bigint not null,
	amount    numeric not null,
	currency  text collate "C" not null,
	constraint replay_moves_pkey primary key (replay_id, currency),
	constraint replay_moves_replay foreign key (replay_id) references replays
);

grant select on replays, replay_moves to hookledger_worker, hookledger_operator, hookledger_reader;
grant insert on replays, replay_moves to hookledger_operator;
grant update (attempt, next_offset, records, applied, ignored, same_effect, stale, discarded, duplicate, conflict,
	quarantined, beat_at, finished_at, partition, accepted, state, detail) on replays to hookledger_operator;
grant update (amount) on replay_moves to hookledger_operator;

-- +goose Down

drop table replay_moves;
drop table replays;
