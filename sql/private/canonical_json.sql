-- jsonb's text is the same for equal documents but for the zeros that end a fraction. The check first: it is cheap.
create or replace function idem_private.canonical_json(doc jsonb) returns text
language plpgsql immutable as $$
declare
    value text := doc::text;
begin
    if value collate "C" ~ '[0-9]\.[0-9]*0([],}]|$)' then
        return regexp_replace(
            value collate "C",
            '("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])',
            '\1\2',
            'g'
        );
    end if;
    return value;
end
$$;

comment on function idem_private.canonical_json(jsonb) is 'The same text for every spelling of a document.';

revoke all on function idem_private.canonical_json(jsonb) from public;
