create or replace function idem_private.check_max_rows(max_rows int) returns int
language plpgsql stable as $$
declare
    most constant int := coalesce(check_max_rows.max_rows, 10000);
begin
    if most not between 1 and 1000000 then
        raise exception using
            errcode = '22023',
            message = 'max_rows must be from 1 to 1000000',
            detail = jsonb_build_object('code', 'max_rows_out_of_range', 'argument', 'max_rows', 'limit', 1000000)::text,
            hint = 'A batch is one transaction; idem.purge_all runs as many as there is work for.';
    end if;
    return most;
end
$$;

comment on function idem_private.check_max_rows(int) is 'The size of a batch of purge; raises 22023.';

revoke all on function idem_private.check_max_rows(int) from public;
