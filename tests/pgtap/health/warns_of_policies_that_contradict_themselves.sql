begin;
select plan(12);
\ir ../check.psql

select is(pg_temp.health('policies'), 'true: no policy contradicts itself', 'those that are shipped');
insert into idem.policies (name) values ('odd''s');

update idem.policies set on_lapse = 'retry', max_attempts = 1 where name = 'odd''s';
select is(pg_temp.health('policies'), 'false: odd''s retries after a lapse, but allows one attempt');
select pg_temp.carry_out_fix('policies');
select matches(pg_temp.health('policies'), '^true: ');

update idem.policies set ttl = '10 minutes' where name = 'odd''s';
select is(
    pg_temp.health('policies'),
    'false: odd''s keeps keys for min_retention (01:00:00), which is longer than ttl (00:10:00)'
);
select pg_temp.carry_out_fix('policies');
select matches(pg_temp.health('policies'), '^true: ');

update idem.policies set retry_after = '1 day' where name = 'odd''s';
select is(pg_temp.health('policies'), 'false: odd''s asks clients to come back when the answer is gone');
select pg_temp.carry_out_fix('policies');
select matches(pg_temp.health('policies'), '^true: ');

update idem.policies set ttl = '2 days', lease = '2 hours' where name = 'odd''s';
select is(pg_temp.health('policies'), 'false: odd''s says in_progress for 02:00:00 after a crash');
select pg_temp.carry_out_fix('policies');
select matches(pg_temp.health('policies'), '^true: ');

update idem.policies set required = true, methods = '{}' where name = 'odd''s';
select is(pg_temp.health('policies'), 'false: odd''s requires a key, but covers no method');
update idem.policies set on_lapse = 'retry', max_attempts = 1 where name = 'odd''s';
select matches(pg_temp.health('policies'), 'covers no method; odd''s retries', 'all that there is');
select pg_temp.carry_out_fix('policies');
select matches(pg_temp.health('policies'), '^true: ');

select * from finish();
rollback;
