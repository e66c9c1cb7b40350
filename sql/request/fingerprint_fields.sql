create or replace function idem.fingerprint_fields(
    body bytea,
    content_type text default null,
    ignore text[] default null,
    include text[] default null
) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.check_pointers('ignore', fingerprint_fields.ignore);
    perform idem_private.check_pointers('include', fingerprint_fields.include);
    return (
        select r.fields
        from idem_private.read_request(
            null,
            null,
            fingerprint_fields.body,
            fingerprint_fields.content_type collate "C",
            fingerprint_fields.ignore,
            fingerprint_fields.include
        ) as r
    );
end
$$;

comment on function idem.fingerprint_fields(bytea, text, text[], text[]) is
'Short hashes of the leaves of a body by their JSON pointers, for the argument fields of reserve. Errors: 22023.';

revoke all on function idem.fingerprint_fields(bytea, text, text[], text[]) from public;
