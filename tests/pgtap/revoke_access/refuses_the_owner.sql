begin;
\ir ../refusal.psql
select plan(2);

select is(
    pg_temp.refusal(format('select idem.revoke_access(%L)', nspowner::regrole)), '22023 role_is_the_owner',
    'which would lose its own functions'
)
from pg_namespace
where nspname = 'idem';
select is(has_function_privilege(nspowner, 'idem.version()', 'execute'), true) from pg_namespace where nspname = 'idem';

select * from finish();
rollback;
