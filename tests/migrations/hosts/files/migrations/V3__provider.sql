insert into idem.policies (name, on_lapse) values ('provider', 'retry')
on conflict (name) do update set on_lapse = excluded.on_lapse;
