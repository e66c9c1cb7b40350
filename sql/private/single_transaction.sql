create or replace function idem_private.single_transaction() returns boolean
language sql stable as $$
    select
        case
            when coalesce(current_setting('idem.single_transaction', true), '') = '' then false
            when idem_private.testing_enabled() then current_setting('idem.single_transaction', true)::boolean
            else false
        end
$$;

comment on function idem_private.single_transaction() is
'Whether leased mode may run inside one transaction, as test suites that roll back need it.';

revoke all on function idem_private.single_transaction() from public;
