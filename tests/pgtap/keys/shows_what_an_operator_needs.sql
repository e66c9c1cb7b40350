begin;
select plan(2);

set local idem.single_transaction = on;
create temp table first as
select * from idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', reason => 'provider timed out');

select set_eq(
    $$
        select to_jsonb(k) @> '{
            "scope": "shop", "key": "k", "policy": "default", "attempt": 1, "outcome": "lapsed", "status": null,
            "reason": "provider timed out"
        }' from idem.keys as k
    $$,
    array[true]
);
select results_eq(
    'select created_at, expires_at from idem.keys', 'select created_at, expires_at from first', 'and the times'
);

select * from finish();
rollback;
