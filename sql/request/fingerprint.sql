create or replace function idem.fingerprint(
    method text,
    path text,
    body bytea default null,
    content_type text default null,
    ignore text[] default null,
    include text[] default null
) returns bytea
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.check_request(fingerprint.method, fingerprint.path);
    perform idem_private.check_pointers('ignore', fingerprint.ignore);
    perform idem_private.check_pointers('include', fingerprint.include);
    return (
        select r.fingerprint
        from idem_private.read_request(
            fingerprint.method collate "C",
            fingerprint.path,
            fingerprint.body,
            fingerprint.content_type,
            fingerprint.ignore,
            fingerprint.include
        ) as r
    );
end
$$;

comment on function idem.fingerprint(text, text, bytea, text, text[], text[]) is
'Digest of a request under the secret of this database. JSON counts by value, forms by their fields, anything else by its bytes; ignore and include are JSON pointers. Errors: 22023.';

revoke all on function idem.fingerprint(text, text, bytea, text, text[], text[]) from public;
