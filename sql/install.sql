-- Installs pyidem into the current database in one transaction:
--
--     psql -X -q -f sql/install.sql
--
-- The role needs CREATE on the database and becomes the owner. This is the only manifest: its \ir lines, in this order,
-- are also what migrations/freeze.py reads.
\set ON_ERROR_STOP on

begin;

\ir preamble.sql
\ir schemas.sql

-- types

-- tables

-- private

-- core

-- operation

-- views

-- grants

\ir stamp.sql

commit;
