-- Every step is linear in the size of the body, which is bounded; the step that costs most has bounds of its own.
create or replace function idem_private.read_json(body bytea, mark text) returns jsonb
language plpgsql immutable as $$
declare
    max_bytes constant int := 1048576;
    max_depth constant int := 100;
    max_bytes_of_odd constant int := 262144;
    max_parsed_of_odd constant int := 8388608;
    max_containers_of_odd constant int := 10000;
    content text;
    doc jsonb;
    containers int;
begin
    if octet_length(read_json.body) not between 1 and max_bytes then
        return null;
    end if;
    begin
        content := convert_from(read_json.body, 'UTF8');
        doc := content::jsonb;
    exception
        when invalid_text_representation or untranslatable_character or numeric_value_out_of_range
            or character_not_in_repertoire or statement_too_complex or feature_not_supported then
            return null;
    end;

    if octet_length(replace(replace(content, '[', ''), '{', '')) < octet_length(content) - max_depth
        and jsonb_path_exists(doc, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")') then
        return null;
    end if;

    -- Numbers with exponents, which jsonb would write out in full, or with many digits; and colons written as an
    -- escape, of which the count must know: every colon of jsonb's text is in the body too, and one that is not in its
    -- text is that of a repeated member, which jsonb has dropped.
    if (case
        when content collate "C" ~ '(^|[[:space:]:,[])-?([0-9.]+[eE]|[0-9.]{60})|\\u003[aA]' then true
        else octet_length(content) - octet_length(replace(content, ':', ''))
            <> octet_length(doc::text) - octet_length(replace(doc::text, ':', ''))
    end) then
        -- Each level is parsed anew.
        containers := octet_length(content) - octet_length(translate(content, '[{', ''));
        if octet_length(content) > max_bytes_of_odd or containers > max_containers_of_odd
            or octet_length(content) * least(containers, max_depth) > max_parsed_of_odd then
            return null;
        end if;
        -- A repeated member, which the depth of doc does not tell of, may be nested too.
        begin
            return idem_private.plain_json(content::json, read_json.mark, max_depth);
        exception
            when statement_too_complex then
                return null;
        end;
    end if;
    return doc;
end
$$;

comment on function idem_private.read_json(bytea, text) is
'The body as a document that tells all that counts, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_json(bytea, text) from public;
