create or replace function idem_private.back_off(claims int) returns interval
language sql immutable as $$
    select case when claims > 0 then least(interval '10 seconds' * 2 ^ least(claims - 1, 20), interval '1 hour') end
$$;

comment on function idem_private.back_off(int) is
'How long resolvers leave a key alone after so many claims: 10 seconds, twice as long each time, at most an hour.';

revoke all on function idem_private.back_off(int) from public;
