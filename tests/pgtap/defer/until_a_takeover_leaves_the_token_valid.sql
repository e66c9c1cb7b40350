-- I6
begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'k', mode => 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');

select throws_ok($$select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null);
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'the new owner is at work');

select * from finish();
rollback;
