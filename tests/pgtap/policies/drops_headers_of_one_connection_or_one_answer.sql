begin;
select plan(2);

select set_eq(
    $$
        select unnest(array[
            'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer',
            'transfer-encoding', 'upgrade', 'content-length', 'date', 'set-cookie', 'www-authenticate', 'x-request-id',
            'ratelimit', 'x-ratelimit-remaining'
        ]) = any(drop_headers) from idem.policies
    $$,
    array[true], 'these are not stored'
);
select set_eq(
    $$
        select unnest(array['location', 'etag', 'content-type', 'link', 'retry-after']) = any(drop_headers)
        from idem.policies
    $$,
    array[false], 'these are'
);

select * from finish();
rollback;
