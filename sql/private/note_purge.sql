-- The row is skipped where another purge has it: whoever does less waiting does more purging.
create or replace function idem_private.note_purge(
    started_at timestamptz, continued boolean, removed bigint, caught_up boolean
) returns boolean
language plpgsql volatile as $$
#variable_conflict use_column
declare
    last idem_private.last_purge;
    at constant timestamptz := idem_private.clock();
begin
    select p.* into last from idem_private.last_purge as p for update skip locked;
    if not found then
        return false;
    end if;
    update idem_private.last_purge as p
    set
        started_at = case when note_purge.continued then last.started_at else note_purge.started_at end,
        ended_at = at,
        removed = case when note_purge.continued then last.removed else 0 end + note_purge.removed,
        caught_up = note_purge.caught_up;
    return last.ended_at is null or date_trunc('hour', last.ended_at) <> date_trunc('hour', at);
end
$$;

comment on function idem_private.note_purge(timestamptz, boolean, bigint, boolean) is
'Records what a batch did, unless another is recording. True: the first record of this hour.';

revoke all on function idem_private.note_purge(timestamptz, boolean, bigint, boolean) from public;
