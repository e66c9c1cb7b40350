-- The work of a step that is on record is not to commit a second time, whoever repeats it.
begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', null, 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"charge": 3}');
set local idem.clock_offset = '2 minutes';
select idem.reserve('shop', 'k', null, 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');

select is(idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'charged'), false);
select is(idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'charged', '{"charge": 3}'), false);
select throws_ok(
    $$select idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'charged', '{"charge": 4}')$$,
    'IK002', null
);

select * from finish();
rollback;
