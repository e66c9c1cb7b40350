-- One SHA-256 block of random bits: a UUID gives 122, three make more than each half needs. It travels with a dump, so
-- that derived keys and fingerprints stay the same after a restore.
create table idem_private.secret (
    singleton boolean primary key default true check (singleton),
    value bytea not null check (length(value) = 64)
);

comment on table idem_private.secret is 'The secret of this installation, for idem_private.keyed_hash; one row.';

insert into idem_private.secret (value)
select
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
