create or replace function idem_private.started(owned idem_private.reservation) returns idem.reservation
language plpgsql stable as $$
declare
    answer idem.reservation;
begin
    answer.outcome := 'started';
    answer.token := owned.token;
    answer.attempt := owned.attempt;
    answer.downstream_key := idem.downstream_key(owned.scope, owned.key);
    answer.recovery_point := owned.recovery_point;
    answer.state := owned.state;
    answer.created_at := owned.created_at;
    answer.lease_until := owned.lease_until;
    answer.expires_at := owned.expires_at;
    return answer;
end
$$;

comment on function idem_private.started(idem_private.reservation) is 'What reserve tells the owner of a row.';

revoke all on function idem_private.started(idem_private.reservation) from public;
