begin;
select plan(3);

select throws_ok($$select idem.reserve('shop', 'k', lease => '1 minute')$$, '22023', null, 'by default');
select throws_ok(
    $$select idem.reserve('shop', 'k', mode => 'atomic', lease => '1 minute')$$, '22023', null, 'in atomic mode'
);
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
