do $$
begin
    perform idem_private.renew_access();
    perform idem_private.record_objects();
end
$$;
