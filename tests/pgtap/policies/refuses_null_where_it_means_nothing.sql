-- By the name of the column, and not by a constraint that prints the row.
begin;
select plan(20);

insert into idem.policies (name) values ('mine');
create temp table needed (setting) as values
    ('name'), ('ttl'), ('lease'), ('on_lapse'), ('max_claims'), ('retry_after'), ('min_retention'), ('tombstone'),
    ('required'), ('methods'), ('key_min_length'), ('key_max_length'), ('release_statuses'), ('drop_headers'),
    ('max_body_bytes'), ('max_batch'), ('profile');
create temp table optional (setting) as values
    ('max_attempts'), ('key_pattern'), ('ignore');

select throws_ok(
    format('update idem.policies set %I = null where name = ''mine''', setting), '22023', null, setting
) from needed;
select lives_ok(format('update idem.policies set %I = null where name = ''mine''', setting), setting) from optional;

select * from finish();
rollback;
