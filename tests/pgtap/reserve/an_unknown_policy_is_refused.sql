begin;
select plan(5);

select throws_ok($$select idem.reserve('shop', 'k', policy => 'none')$$, 'IK006', null, 'a name that nobody has made');
select throws_ok($$select idem.reserve('shop', 'k', policy => '')$$, 'IK006', null, 'no name');
select throws_ok($$select idem.reserve('shop', 'k', policy => 'Default')$$, 'IK006', null, 'another case');
select throws_ok($$select idem.reserve('shop', 'k', policy => repeat('x', 100000))$$, 'IK006', null, 'a long one');
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');
select throws_ok(
    $$select idem.reserve('shop', 'k', policy => 'none')$$, 'IK006', null, 'whatever the outcome would be'
);

select * from finish();
rollback;
