-- The session may have said SET CONSTRAINTS ALL IMMEDIATE, under which the insert itself would be refused.
create or replace function idem_private.defer_check() returns void
language plpgsql volatile as $$
begin
    set constraints idem_private.reservation_completed deferred;
end
$$;

comment on function idem_private.defer_check() is
'Puts the check that an atomic reservation is completed off to the commit of its transaction.';

revoke all on function idem_private.defer_check() from public;
