begin;
select plan(3);

insert into idem.policies (name) values ('new');

create function pg_temp.defaults_of(policy text) returns table (setting text, value text) language sql as $$
    select s.setting, s.value
    from idem.policies as p cross join lateral jsonb_each_text(to_jsonb(p)) as s (setting, value)
    where p.name = policy and s.setting not in ('name', 'drop_headers')
$$;
create temp table expected (setting, value) as values
    ('ttl', '24:00:00'), ('lease', '00:01:00'), ('on_lapse', 'hold'), ('max_attempts', null), ('max_claims', '10'),
    ('retry_after', '00:00:01'), ('min_retention', '01:00:00'), ('tombstone', '00:00:00'), ('required', 'false'),
    ('methods', '["POST", "PATCH"]'), ('key_min_length', '1'), ('key_max_length', '255'), ('key_pattern', null),
    ('release_statuses', '[401, 403, 425, 429]'), ('max_body_bytes', '1048576'), ('max_batch', '200'), ('ignore', null),
    ('include', null), ('profile', 'ietf'), ('problem_type_base', null), ('replay_header', null);

select set_eq($$select * from pg_temp.defaults_of('new')$$, 'table expected', 'a new policy');
select set_eq($$select * from pg_temp.defaults_of('default')$$, 'table expected', 'the policy "default"');
update expected set value = '336:00:00' where setting = 'ttl';
select set_eq($$select * from pg_temp.defaults_of('messages')$$, 'table expected', 'the policy "messages": 14 days');

select * from finish();
rollback;
