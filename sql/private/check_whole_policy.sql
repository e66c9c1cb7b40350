-- What columns mean to each other, of the row as it has been written.
create or replace function idem_private.check_whole_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if new.key_min_length > new.key_max_length then
        perform idem_private.refuse_policy(
            new.name, 'key_min_length, key_max_length: 1 <= min <= max <= 1024'
        );
    elsif new.ttl <= new.lease then
        perform idem_private.refuse_policy(new.name, 'ttl: must be longer than lease');
    end if;
    return null;
end
$$;

comment on function idem_private.check_whole_policy() is 'Raises 22023 for a policy that contradicts itself.';

revoke all on function idem_private.check_whole_policy() from public;

create or replace trigger check_whole_policy after insert or update on idem_private.policy
for each row execute function idem_private.check_whole_policy();
