-- I5
begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', fields => '{"/a": "b"}', state => '1');
create temp table before as select * from idem_private.reservation;
set local idem.clock_offset = '2 minutes';
select idem.claim_lapsed();

select results_eq(
    $$
        select fingerprint, fields, policy, created_at, expires_at, attempt, recovery_point, state, completed_at
        from idem_private.reservation
    $$,
    $$
        select fingerprint, fields, policy, created_at, expires_at, attempt, recovery_point, state, completed_at
        from before
    $$
);

select * from finish();
rollback;
