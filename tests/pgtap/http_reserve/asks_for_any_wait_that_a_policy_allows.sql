begin;
select plan(1);

set local idem.single_transaction = on;
insert into idem.policies (name, retry_after) values ('patient', '36500 days');
select idem.http_reserve('shop', 'k', 'POST', '/', mode => 'leased', lease => '36500 days', policy => 'patient');
select is(
    a.headers -> 1, jsonb_build_array('Retry-After', (36500::bigint * 86400)::text), 'a hundred years'
) from idem.http_reserve('shop', 'k', 'POST', '/', mode => 'leased', policy => 'patient') as a;

select * from finish();
rollback;
