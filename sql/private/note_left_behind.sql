-- The counterpart of idem_private.require_completion: its trigger fires only where that one does not, in the replica
-- role. So an atomic reservation that is committed unfinished is listed for resolvers, and no other pays for it.
create or replace function idem_private.note_left_behind() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    insert into idem_private.unfinished (scope, key)
    select r.scope, r.key
    from idem_private.reservation as r
    where r.scope = new.scope and r.key = new.key and r.token = new.token
        and r.completed_at is null and not r.leased
    on conflict do nothing;
    return null;
end
$$;

comment on function idem_private.note_left_behind() is
'Lists an unfinished atomic reservation at commit where the check of IK005 does not run.';

revoke all on function idem_private.note_left_behind() from public;

create constraint trigger reservation_left_behind
after insert or update of token on idem_private.reservation
deferrable initially deferred
for each row when (not new.leased and new.completed_at is null)
execute function idem_private.note_left_behind();

alter table idem_private.reservation enable replica trigger reservation_left_behind;
