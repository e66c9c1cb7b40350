begin;
select plan(10);
\ir ../refusal.psql

select is(pg_temp.refusal($$select idem.fingerprint(null, '/')$$), '22023 null', 'no method');
select is(pg_temp.refusal($$select idem.fingerprint('POST', null)$$), '22023 null', 'no path');
select is(
    pg_temp.refusal(format($$select idem.fingerprint('POST', '/', ignore => %L)$$, pointers)),
    '22023 pointer_invalid',
    pointers::text
)
from (values (array['a']), (array['/a~2']), (array['/a~']), (array['/a', null]), (array['#/a'])) as p (pointers);
select is(
    pg_temp.refusal($$select idem.fingerprint('POST', '/', include => '{a}')$$), '22023 pointer_invalid',
    'include as well'
);
select is(
    pg_temp.refusal($$select idem.fingerprint_fields('', ignore => '{a}')$$), '22023 pointer_invalid',
    'of the fields as well'
);
select is(
    pg_temp.refusal($$select idem.fingerprint_fields('', include => '{a}')$$), '22023 pointer_invalid',
    'and their include'
);

select * from finish();
rollback;
