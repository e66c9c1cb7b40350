begin;
select plan(3);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

select throws_ok($$select idem.reserve('shop', 'k', mode => 'saga')$$, '22023', null, 'an unknown mode');
select throws_ok(
    $$select idem.reserve('shop', 'k', lease => '1 minute')$$, '22023', null, 'a lease without leased mode'
);
select throws_ok($$select idem.reserve('shop', 'k', fields => '[]')$$, '22023', null, 'fields that are no object');

select * from finish();
rollback;
