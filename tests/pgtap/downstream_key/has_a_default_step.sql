begin;
select plan(3);

select is(idem.downstream_key('shop', 'k'), idem.downstream_key('shop', 'k', ''), 'no step');
select is(idem.downstream_key('shop', 'k', null), idem.downstream_key('shop', 'k', ''), 'null');
select isnt(idem.downstream_key('shop', 'k', ' '), idem.downstream_key('shop', 'k', ''), 'a blank is a step');

select * from finish();
rollback;
