begin;
select plan(4);

select is_empty($$select * from idem.once_many('billing', '{}')$$, 'an empty array');
select is_empty($$select * from idem.once_many('billing', null)$$, 'none');
select is_empty('table idem_private.reservation', 'nothing is stored');
select is_empty(
    $$select * from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()$$, 'and nothing locked'
);

select * from finish();
rollback;
