begin;
select plan(5);

set local idem.single_transaction = on;
select idem.reserve(
    'shop', 'k', mode => 'leased', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
create function pg_temp.reached() returns table (recovery_point text, state jsonb) language sql as $$
    select recovery_point, state
    from idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')
$$;

select is(idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged'), true);
select results_eq(
    'select * from pg_temp.reached()', $$values ('charged', '{"amount": 7}'::jsonb)$$, 'a null state keeps the stored one'
);
select is(idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'mailed', '[1]'), true);
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'Mailed', null);
select results_eq('select * from pg_temp.reached()', $$values ('Mailed', '[1]'::jsonb)$$, 'case counts');
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'done', 'null');
select results_eq('select * from pg_temp.reached()', $$values ('done', 'null'::jsonb)$$, 'JSON null is a state');

select * from finish();
rollback;
