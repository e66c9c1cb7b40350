create or replace function idem_private.check_pointers(argument text, pointers text[]) returns void
language plpgsql immutable as $$
begin
    if exists (
        select from unnest(check_pointers.pointers) as p (pointer)
        where p.pointer is null or p.pointer collate "C" !~ '^(/([^~]|~[01])*)?$'
    ) then
        raise exception using
            errcode = '22023',
            message = format('%s must be JSON pointers', check_pointers.argument),
            detail = jsonb_build_object('code', 'pointer_invalid', 'argument', check_pointers.argument)::text,
            hint = 'A pointer (RFC 6901) is empty or begins with a slash: /order/id.';
    end if;
end
$$;

comment on function idem_private.check_pointers(text, text[]) is 'Raises 22023 unless all are RFC 6901 pointers.';

revoke all on function idem_private.check_pointers(text, text[]) from public;
