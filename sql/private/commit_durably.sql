create or replace function idem_private.commit_durably() returns void
language plpgsql volatile as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

comment on function idem_private.commit_durably() is
'Makes the commit of this transaction wait for the disk, also where the session has synchronous_commit off: the caller acts on it outside of the database.';

revoke all on function idem_private.commit_durably() from public;
