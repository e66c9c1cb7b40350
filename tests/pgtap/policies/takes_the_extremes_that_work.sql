begin;
select plan(14);

insert into idem.policies (name) values ('mine');
create temp table good (setting, value) as values
    ('tombstone', '0'), ('tombstone', '10 years'), ('lease', '1 microsecond'), ('ttl', '10 years'),
    ('max_attempts', '1'), ('key_max_length', '1024'), ('key_max_length', '1'), ('max_body_bytes', '0'),
    ('max_batch', '1'), ('ignore', '{"",/,/a~0b~1c/0}'), ('key_pattern', '^[0-9]+$'),
    ('key_pattern', '^a\\2$'), ('problem_type_base', 'https://api.example/problems/'), ('problem_type_base', 'urn:p:');

select lives_ok(
    format('update idem.policies set %I = %L where name = ''mine''', setting, value), setting || ' ' || value
) from good;

select * from finish();
rollback;
