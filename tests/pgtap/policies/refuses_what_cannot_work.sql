begin;
select plan(57);

select
    case
        when current_setting('server_version_num')::int >= 170000 then 'infinity' else '178000000 years'
    end as endless
\gset
insert into idem.policies (name) values ('mine');
create temp table bad (setting, value) as values
    ('name', ''), ('ttl', '0'), ('ttl', '-1 day'), ('ttl', '1 month -30 days'), ('ttl', :'endless'),
    ('lease', '0'), ('lease', '-1 second'), ('lease', :'endless'),
    ('retry_after', '0'), ('retry_after', '-1 second'), ('retry_after', :'endless'),
    ('min_retention', '-1 second'), ('min_retention', :'endless'),
    ('tombstone', '-1 second'), ('tombstone', :'endless'),
    ('on_lapse', 'forget'), ('on_lapse', 'Hold'), ('on_lapse', ''), ('profile', 'rfc'), ('profile', ''),
    ('max_attempts', '0'), ('max_attempts', '-1'), ('max_claims', '-1'), ('max_batch', '0'), ('max_batch', '-1'),
    ('max_body_bytes', '-1'), ('key_min_length', '0'), ('key_min_length', '-1'), ('key_min_length', '256'),
    ('key_max_length', '0'), ('key_max_length', '1025'), ('key_pattern', '('), ('key_pattern', '[a'),
    ('ignore', '{amount}'), ('ignore', '{/a~2}'), ('include', '{/a,b}'), ('release_statuses', '{99}'),
    ('release_statuses', '{600}'), ('release_statuses', '{null}'), ('min_retention', '0'), ('methods', '{"PO ST"}'),
    ('methods', '{""}'), ('methods', '{null}'), ('drop_headers', '{"a:b"}'), ('drop_headers', '{null}'),
    ('replay_header', ''), ('replay_header', 'a b'), ('problem_type_base', ''),
    ('problem_type_base', 'problems/'), ('problem_type_base', 'https://a b/'), ('problem_type_base', 'https://a/%zz'),
    ('problem_type_base', 'https://a/"'), ('key_pattern', '^(.+)-\1$'), ('key_pattern', '\\\2'),
    ('key_pattern', repeat('a', 1001)), ('ttl', '60 seconds');

select throws_ok(
    format('update idem.policies set %I = %L where name = ''mine''', setting, value),
    '22023', null, setting || ' ' || value
) from bad;
select throws_ok(
    $$insert into idem.policies (name, on_lapse) values ('new', 'forget')$$, '22023', null, 'also when new'
);

select * from finish();
rollback;
