begin;
select plan(3);

select throws_ok($$delete from idem.policies where name = 'default'$$, '22023', null, 'default');
select throws_ok($$delete from idem.policies where name = 'messages'$$, '22023', null, 'messages');
select throws_ok('delete from idem.policies', '22023', null, 'all of them');

select * from finish();
rollback;
