begin;
select plan(15);

insert into idem.policies (name, required) values ('strict', true);
insert into idem.policies (name, required, methods) values ('put', true, '{Put}'), ('nothing', true, '{}');

create function pg_temp.outcome(header text, method text, policy text) returns text language sql as $$
    select concat_ws(' ', outcome, key, status) from idem.http_reserve('shop', header, method, '/', policy => policy)
$$;
select is(pg_temp.outcome(null, 'POST', 'default'), 'unprotected', 'no key, and none required');
select is(pg_temp.outcome(null, 'POST', 'strict'), 'missing 400', 'no key, but one required');
select is(pg_temp.outcome('', 'POST', 'strict'), 'invalid 400', 'an empty value is not no key');
select is(pg_temp.outcome('', 'POST', 'default'), 'invalid 400', 'whether it is required or not');
select is(pg_temp.outcome(null, 'patch', 'strict'), 'missing 400', 'methods in any case');
select is(pg_temp.outcome('k1', 'post', 'strict'), 'started k1', 'protected in any case');
select is(pg_temp.outcome('k', method, 'strict'), 'unprotected', method || ' with a key')
from unnest(array['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', '']) as method;
select is(pg_temp.outcome('in valid', 'GET', 'strict'), 'unprotected', 'nobody reads the header there');
select is(pg_temp.outcome('k2', 'PUT', 'put'), 'started k2', 'the methods of the policy');
select is(pg_temp.outcome('k', 'POST', 'nothing'), 'unprotected', 'which may be none');

select * from finish();
rollback;
