-- jsonb forgets repeated members, and writes 1e100000 out in full. Here a member that comes again becomes an object
-- whose one member is named by the mark, and a number out of the ordinary a string that begins with it. The mark is
-- secret, so no document has it by itself.
--
-- What is ordinary is decided by value: idem_private.read_json sends every document here that holds such a number in
-- whatever spelling.
create or replace function idem_private.plain_json(value json, mark text, depth int) returns jsonb
language plpgsql immutable as $$
declare
    number numeric;
begin
    if plain_json.depth = 0 and json_typeof(plain_json.value) in ('object', 'array') then
        raise statement_too_complex;
    end if;
    case json_typeof(plain_json.value)
        when 'object' then
            return (
                select coalesce(jsonb_object_agg(m.key, m.value), '{}')
                from (
                    select
                        e.key,
                        case
                            when count(*) = 1 then jsonb_agg(e.value) -> 0
                            else jsonb_build_object(plain_json.mark, jsonb_agg(e.value order by e.position))
                        end as value
                    from (
                        select
                            c.key, c.position,
                            idem_private.plain_json(c.value, plain_json.mark, plain_json.depth - 1) as value
                        from json_each(plain_json.value) with ordinality as c (key, value, position)
                    ) as e
                    group by e.key
                ) as m
            );
        when 'array' then
            return (
                select
                    coalesce(
                        jsonb_agg(
                            case
                                when json_typeof(e.value) in ('object', 'array', 'number')
                                    then idem_private.plain_json(e.value, plain_json.mark, plain_json.depth - 1)
                                else e.value::jsonb
                            end
                            order by e.position
                        ),
                        '[]'
                    )
                from json_array_elements(plain_json.value) with ordinality as e (value, position)
            );
        when 'number' then
            number := trim_scale(plain_json.value::text::numeric);
            if abs(number) >= 1e60 or scale(number) > 60 then
                return to_jsonb(plain_json.mark || encode(numeric_send(number), 'hex'));
            end if;
            return to_jsonb(number);
        else
            return plain_json.value::jsonb;
    end case;
end
$$;

comment on function idem_private.plain_json(json, text, int) is
'The document as jsonb, with all that jsonb would lose or bloat put in another form; raises 54001 where it is nested deeper than that.';

revoke all on function idem_private.plain_json(json, text, int) from public;
