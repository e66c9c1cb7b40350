-- It is what a mark of idem.once has for a token: a mark has no owner.
begin;
select plan(4);

\ir ../refusal.psql
select idem.once('shop', 'marked');

select is(
    pg_temp.refusal(format(
        $$select idem.reserve('shop', %L, mode => %L, token => '00000000-0000-0000-0000-000000000000')$$, key, mode
    )),
    '22023 token_not_random', concat_ws(' ', mode, key)
)
from (values ('k', null), ('k', 'leased'), ('marked', 'atomic')) as t (key, mode);
select is((idem.lookup('shop', 'k')).outcome, 'absent');

select * from finish();
rollback;
