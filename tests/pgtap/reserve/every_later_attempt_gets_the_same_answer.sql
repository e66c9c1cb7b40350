-- I2
begin;
select plan(1);

select idem.complete('shop', 'k', token, 201, '[["b", "1"], ["a", "2"], ["b", "3"]]', '\xc3')
from idem.reserve('shop', 'k', '\x01');

select results_eq(
    $$
        select answer.outcome, answer.status, answer.headers, answer.body
        from generate_series(1, 3), idem.reserve('shop', 'k', '\x01') as answer
    $$,
    $$
        select 'replay', 201, '[["b", "1"], ["a", "2"], ["b", "3"]]'::jsonb, '\xc3'::bytea
        from generate_series(1, 3)
    $$
);

select * from finish();
rollback;
