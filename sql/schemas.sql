-- idem_private is made by preamble.sql: Alembic's version table lives there, so it comes before any revision.
create schema idem;

comment on schema idem is 'pyidem: idempotency keys. Everything in here is API.';

revoke all on schema idem from public;
