-- The secret of this installation: two keys of one SHA-256 block each. It travels with a dump, so that derived keys
-- and fingerprints stay the same after a restore. A UUID gives 122 random bits; four make more than a half block needs.
create table idem_private.secret (
    singleton boolean primary key default true check (singleton),
    inner_key bytea not null check (length(inner_key) = 64),
    outer_key bytea not null check (length(outer_key) = 64)
);

comment on table idem_private.secret is 'Keys of the keyed hash (idem_private.keyed_hash); one row.';

insert into idem_private.secret (inner_key, outer_key)
select
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
