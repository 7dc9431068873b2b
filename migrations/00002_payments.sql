-- The payments door: keys of requests, and the payments they made.

-- +goose Up

-- Who runs the door may add payments and their entries and nothing else: it never
-- touches events, positions or incidents. See 00001 for why this is a loop with care.
-- +goose StatementBegin
do $$
begin
	if not exists (select from pg_catalog.pg_roles where rolname = 'hookledger_payments') then
		begin
			create role hookledger_payments nologin;
		exception
			when duplicate_object or unique_violation then
				null; -- another database was faster
			when insufficient_privilege then
				raise exception 'role hookledger_payments does not exist and % may not create it', current_user
					using errcode = 'insufficient_privilege',
					      hint = 'as a role with CREATEROLE, run: create role hookledger_payments nologin; then migrate again';
		end;
	end if;
	execute format('grant usage on schema %I to hookledger_payments', current_schema());
end
$$;
-- +goose StatementEnd

-- The fencing tokens: each claim of a key takes the next number. One sequence for all
-- keys, so that a number is not used again when a key's row was deleted and made anew.
create sequence idempotency_attempts as bigint;

-- One row per key of a client. processing: somebody works on it since claimed_at, or did
-- and never came back; done: response_code and response_body are the answer, for ever
-- the same until expires_at. A claim whose work was rolled back has claimed_at -infinity.
create table idempotency_keys (
	attempt       bigint      not null default nextval('idempotency_attempts'),
	claimed_at    timestamptz not null,
	expires_at    timestamptz not null,
	response_code integer,
	fingerprint   bytea       not null,
	state         text        not null,
	client        text collate "C" not null,
	key           text collate "C" not null,
	response_body bytea,
	constraint idempotency_keys_pkey primary key (client, key),
	-- One constraint, because each costs every write about 3 µs (Postgres 15).
	constraint idempotency_keys_response_complete
		check (case state when 'done' then response_code is not null and response_body is not null
		                  when 'processing' then response_code is null and response_body is null
		                  else false end)
) with (
	-- Every row is written twice and deleted a day later. Vacuum often and little:
	-- the default of 20 % of the table is a whole day's worth of dead rows at once.
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_insert_scale_factor = 0.05
);
alter sequence idempotency_attempts owned by idempotency_keys.attempt;

-- What is cleaned, oldest first.
create index idempotency_keys_expiry on idempotency_keys (expires_at);
-- Claims that nobody finished. Small: only what is in hand, and what was abandoned.
create index idempotency_keys_processing on idempotency_keys (claimed_at) where state = 'processing';

-- A payment that happened: two entries of ledger_entries have its payment_id, one
-- movement with the sum 0.
create table payments (
	amount          bigint      not null,
	created_at      timestamptz not null,
	payment_id      uuid        not null,
	-- Hash of client, accounts, amount, currency and reference: payments that mean the
	-- same under different keys are found by it.
	meaning         uuid        not null,
	client          text collate "C" not null,
	from_account    text collate "C" not null,
	to_account      text collate "C" not null,
	currency        text collate "C" not null,
	reference       text        not null,
	status          text        not null,
	idempotency_key text collate "C" not null,
	constraint payments_pkey primary key (payment_id),
	constraint payments_amount_range check (amount between 1 and 1000000000000000),
	constraint payments_two_accounts check (from_account <> to_account),
	constraint payments_status_known check (status = 'succeeded')
);
create index payments_meaning on payments (meaning, created_at);

grant select on payments, idempotency_keys to hookledger_payments, hookledger_operator, hookledger_reader;
grant insert on payments, ledger_entries to hookledger_payments;
grant insert, update, delete on idempotency_keys to hookledger_payments;
grant usage on sequence idempotency_attempts to hookledger_payments;
grant select, insert, update on accounts to hookledger_payments;
grant select on hookledger_schema to hookledger_payments;

-- +goose Down

-- The role stays, as those of 00001 do; its rights on tables that stay are taken back.
drop table payments;
drop table idempotency_keys;
-- +goose StatementBegin
do $$
begin
	revoke all on ledger_entries, accounts, hookledger_schema from hookledger_payments;
	execute format('revoke usage on schema %I from hookledger_payments', current_schema());
end
$$;
-- +goose StatementEnd
