-- Users of the database for the roles of docker-compose.yml, with the rights that each
-- needs and no more (deploy/ACLS.md). Run by psql after each migration; again is harmless.
\set ON_ERROR_STOP on
\getenv consume CONSUME_PASSWORD
\getenv payments PAYMENTS_PASSWORD

select format('create role %I login', name)
  from (values ('hookledger-consume'), ('hookledger-payments')) as wanted (name)
 where not exists (select from pg_roles where rolname = name)
\gexec

alter role "hookledger-consume" password :'consume';
alter role "hookledger-payments" password :'payments';
grant hookledger_worker to "hookledger-consume";
grant hookledger_payments to "hookledger-payments";
