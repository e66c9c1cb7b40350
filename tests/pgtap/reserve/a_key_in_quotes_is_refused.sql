-- It looks like a raw header, and would be another key than the one that the header names.
begin;
select plan(4);

\ir ../refusal.psql

select is(pg_temp.refusal($$select idem.reserve('shop', '"8e03978e"')$$), 'IK001 quoted', 'quoted');
select is(pg_temp.refusal($$select idem.reserve('shop', '""')$$), 'IK001 quoted', 'nothing in quotes');
select is(pg_temp.refusal($$select idem.reserve('shop', '"a\"b"')$$), 'IK001 quoted', 'with an escape');
select is((idem.reserve('shop', 'say "hi" twice')).outcome, 'started', 'quotes inside are characters as any other');

select * from finish();
rollback;
