-- I4
begin;
select plan(5);

select idem.complete('shop', 'null', token) from idem.reserve('shop', 'null');
select idem.complete('shop', 'empty', token) from idem.reserve('shop', 'empty', '');

select is((idem.reserve('shop', 'null', null)).outcome, 'replay', 'null equals null');
select is((idem.reserve('shop', 'null', '')).outcome, 'mismatch', 'null is not the empty fingerprint');
select is((idem.reserve('shop', 'null', '\x00')).outcome, 'mismatch', 'null is no other fingerprint');
select is((idem.reserve('shop', 'empty', '')).outcome, 'replay', 'empty equals empty');
select is((idem.reserve('shop', 'empty', null)).outcome, 'mismatch', 'the empty fingerprint is not null');

select * from finish();
rollback;
