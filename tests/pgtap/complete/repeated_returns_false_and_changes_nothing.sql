-- I11
begin;
select plan(3);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201, '[["a", "b"]]', 'x');
select idem.reserve('shop', 'bare', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'bare', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '1 hour';
select is(idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201, '[["a", "b"]]', 'x'), false);
select is(idem.complete('shop', 'bare', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), false, 'nothing is content, too');
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
