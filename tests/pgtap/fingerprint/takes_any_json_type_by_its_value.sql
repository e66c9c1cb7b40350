begin;
select plan(10);

create function pg_temp.is_by_value(content_type text) returns boolean language sql as $$
    select idem.fingerprint('POST', '/', '[1]', content_type) = idem.fingerprint('POST', '/', '[ 1.0 ]', content_type)
$$;

select ok(pg_temp.is_by_value(content_type), content_type)
from unnest(array[
    'application/json', 'Application/JSON', 'application/json; charset=utf-8', ' application/json ',
    'application/vnd.api+json', 'application/merge-patch+json;x=y'
]) as content_type;
select ok(not pg_temp.is_by_value(content_type), coalesce(content_type, 'none'))
from unnest(array['text/plain', 'application/jsonx', '', null]) as content_type;

select * from finish();
rollback;
