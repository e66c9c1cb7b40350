begin;
select plan(2);

select idem.reserve('shop', 'with', '\x01', fields => '{"/amount": "h1"}');
select idem.reserve('shop', 'without', '\x01');

select results_eq(
    $$select outcome, mismatched from idem.reserve('shop', 'with', '\x02')$$,
    $$values ('mismatch', null::text[])$$, 'the attempt does not say'
);
select results_eq(
    $$select outcome, mismatched from idem.reserve('shop', 'without', '\x02', fields => '{"/amount": "h1"}')$$,
    $$values ('mismatch', null::text[])$$, 'the owner did not say'
);

select * from finish();
rollback;
