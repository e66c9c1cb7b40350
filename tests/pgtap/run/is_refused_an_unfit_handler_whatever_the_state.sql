begin;
select plan(1);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

select throws_ok($$select idem.run('shop', 'k', null, 'version()', '{}')$$, '22023', null);

select * from finish();
rollback;
