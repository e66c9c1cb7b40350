-- The key and the scope are not repeated in the message: they may be anything, of any length.
create or replace function idem_private.check_key(
    scope text, key text, min_length int, max_length int, pattern text
) returns void
language plpgsql stable as $$
declare
    argument text := 'key';
    problem text;
    max_scope constant int := 255;
    -- of a key of a permissive pattern, so that it fits into the index
    max_bytes constant int := 1024;
    control_characters constant text := '[\x01-\x1f\x7f-\x9f]';
begin
    problem := case
        when check_key.scope is null then 'null'
        when check_key.scope = '' then 'empty'
        when length(check_key.scope) > max_scope then 'too_long'
        when check_key.scope collate "C" ~ '^\s+$' then 'blank'
        when check_key.scope collate "C" ~ control_characters then 'not_printable'
    end;
    if problem is not null then
        argument := 'scope';
    else
        problem := case
            when check_key.key is null then 'null'
            when check_key.key = '' then 'empty'
            when length(check_key.key) > check_key.max_length then 'too_long'
            when octet_length(check_key.key) > max_bytes then 'too_many_bytes'
            when check_key.key collate "C" ~ '^\s+$' then 'blank'
            when check_key.key collate "C" ~ control_characters then 'not_printable'
            when check_key.pattern is null and check_key.key collate "C" !~ '^[ -~]*$' then 'not_printable'
            when check_key.key collate "C" ~ '^\s*".*"\s*$' then 'quoted'
            when length(check_key.key) < check_key.min_length then 'too_short'
            when check_key.pattern is not null and check_key.key collate "C" !~ check_key.pattern then 'pattern'
        end;
    end if;
    if problem is null then
        return;
    end if;
    raise exception using
        errcode = 'IK001',
        message = format(
            'the %s %s',
            argument,
            case problem
                when 'null' then 'is null'
                when 'empty' then 'is empty'
                when 'blank' then 'is blank'
                when 'quoted' then 'is quoted'
                when 'too_long' then 'is too long'
                when 'too_many_bytes' then 'has too many bytes'
                when 'too_short' then 'is too short'
                when 'pattern' then 'does not match the pattern of its policy'
                else 'has characters that are not printable'
            end
        ),
        detail = jsonb_strip_nulls(jsonb_build_object(
            'code', problem,
            'argument', argument,
            'limit', case
                when problem = 'too_long' and argument = 'scope' then max_scope
                when problem = 'too_long' then check_key.max_length
                when problem = 'too_many_bytes' then max_bytes
                when problem = 'too_short' then check_key.min_length
            end
        ))::text,
        hint = case
            when problem = 'quoted' then 'Take the quotes off: this looks like the value of an Idempotency-Key header.'
            when argument = 'scope' then 'A scope is 1 to 255 characters, any but control characters.'
            else 'By default a key is 1 to 255 characters of printable ASCII; its policy sets length and pattern.'
        end;
end
$$;

comment on function idem_private.check_key(text, text, int, int, text) is
'Raises IK001 unless scope and key are acceptable; lengths count characters.';

revoke all on function idem_private.check_key(text, text, int, int, text) from public;
