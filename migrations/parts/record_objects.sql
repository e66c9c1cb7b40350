do $$ begin perform idem_private.record_objects(); end $$;
