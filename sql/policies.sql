insert into idem_private.policy (name) values ('default');

-- Brokers redeliver, and operators replay, days later.
insert into idem_private.policy (name, ttl) values ('messages', '14 days');
