create or replace function idem_private.record_objects() returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    delete from idem_private.object;
    insert into idem_private.object select * from idem_private.present_objects();
$$;

comment on function idem_private.record_objects() is 'Takes what both schemas hold now for what they should hold; the last step of every migration.';

revoke all on function idem_private.record_objects() from public;
