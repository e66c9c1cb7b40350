begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name) values ('open'), ('done'), ('old');
select idem.reserve('shop', 'open', mode => 'leased', policy => 'open');
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', policy => 'done');
select idem.complete('shop', 'old', token) from idem.reserve('shop', 'old', policy => 'old');

select throws_ok($$delete from idem.policies where name = 'open'$$, '23503', null, 'by an open key');
select throws_ok($$delete from idem.policies where name = 'done'$$, '23503', null, 'by a finished key');
set local idem.clock_offset = '25 hours';
select throws_ok($$delete from idem.policies where name = 'old'$$, '23503', null, 'by an expired key not yet purged');
select set_eq(
    'select name from idem.policies', array['default', 'messages', 'open', 'done', 'old'], 'they are all there'
);

select * from finish();
rollback;
