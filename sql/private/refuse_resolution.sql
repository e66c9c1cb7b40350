create or replace function idem_private.refuse_resolution(held idem_private.reservation, phase text) returns void
language plpgsql stable as $$
begin
    if held.completed_at is not null then
        raise exception using
            errcode = 'IK004',
            message = 'the reservation is finished: there is nothing to decide',
            detail = jsonb_build_object(
                'code', 'finished', 'outcome', refuse_resolution.phase, 'attempt', held.attempt
            )::text,
            hint = 'idem.lookup shows the answer.';
    end if;
    raise exception using
        errcode = 'IK004',
        message = format('the reservation is %s, not lapsed', replace(refuse_resolution.phase, '_', ' ')),
        detail = jsonb_build_object(
            'code', 'not_lapsed', 'outcome', refuse_resolution.phase, 'attempt', held.attempt
        )::text,
        hint = case
            when not held.leased then 'Its transaction is open: commit it or roll it back.'
            when refuse_resolution.phase = 'in_progress'
                then 'Wait for the end of its lease. force => true takes it from its owner, who may be at work.'
            else 'The next attempt will start. force => true decides otherwise.'
        end;
end
$$;

comment on function idem_private.refuse_resolution(idem_private.reservation, text) is
'Raises IK004: why an operator''s decision does not fit the row.';

revoke all on function idem_private.refuse_resolution(idem_private.reservation, text) from public;
