-- What idem.once makes of a key that has a row. Only an expired one is written, under its lock and judged again.
create or replace function idem_private.mark_existing(scope text, key text, policy text, ttl interval) returns text
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    at timestamptz;
    phase text;
begin
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = mark_existing.scope collate "C" and r.key = mark_existing.key collate "C";
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    phase := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    if phase = 'absent' then
        select r.* into found_row
        from idem_private.reservation as r
        where r.scope = mark_existing.scope collate "C" and r.key = mark_existing.key collate "C"
        for update skip locked;
        if not found then
            return 'in_progress';
        end if;
        settings := idem_private.policy_of(found_row.policy);
        at := idem_private.clock();
        phase := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    end if;

    if phase in ('completed', 'expired') then
        return 'duplicate';
    elsif phase <> 'absent' then
        return 'in_progress';
    end if;
    perform idem_private.replace_expired(
        found_row, null, null, mark_existing.policy, mark_existing.ttl, false, null, null,
        null, at
    );
    return 'first';
end
$$;

comment on function idem_private.mark_existing(text, text, text, interval) is
'Outcome of once for a key that has a row: first where it has expired, duplicate, or in_progress.';

revoke all on function idem_private.mark_existing(text, text, text, interval) from public;
