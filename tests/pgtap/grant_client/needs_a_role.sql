begin;
select plan(3);

select throws_ok($$select idem.grant_client('idem_nobody')$$, '42704', null, 'that exists');
select throws_ok($$select idem.grant_client('')$$, '42704', null, 'with a name');
select throws_ok($$select idem.grant_client('public')$$, '42704', null, 'and not everybody');

select * from finish();
rollback;
