begin;
select plan(1);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', retry_in => '30 minutes', reason => 'timed out');
set local idem.clock_offset = '2 hours';
create temp table claimed as select * from idem.claim_lapsed();
select idem.defer('shop', 'k', token, reason => 'no answer') from claimed;
set local idem.clock_offset = '3 hours';
select idem.claim_lapsed();
set local idem.clock_offset = '4 hours';
select idem.resolve('shop', 'k', 'retry', 'they are back');
set local idem.clock_offset = '5 hours';
select idem.reserve('shop', 'k', mode => 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 201, null, 'secret');

select results_eq(
    $$
        select event, attempt, reason, detail - 'claim_after' - 'lease_until', date_trunc('hour', h.at - first.at)
        from idem.history('shop', 'k') as h, (select created_at as at from idem_private.reservation) as first
    $$,
    $$values
        ('reserved', 1, null, '{"policy": "again"}'::jsonb, interval '0'),
        ('lapsed', 1, null, null, '0'),
        ('taken_over', 2, null, '{"mode": "leased"}', '1 hour'),
        ('deferred', 2, 'timed out', '{}', '1 hour'),
        ('claimed', 2, null, '{"claims": 1}', '2 hours'),
        ('deferred', 2, 'no answer', '{}', '2 hours'),
        ('claimed', 2, null, '{"claims": 2}', '3 hours'),
        ('lapsed', 2, null, null, '3 hours'),
        ('resolved', 2, 'they are back', '{"action": "retry"}', '4 hours'),
        ('reserved', 3, null, '{"mode": "leased"}', '5 hours'),
        ('completed', 3, null, '{"status": 201}', '5 hours')
    $$
);

select * from finish();
rollback;
