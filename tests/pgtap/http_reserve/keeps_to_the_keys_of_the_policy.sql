begin;
select plan(8);

insert into idem.policies (name, key_min_length, key_max_length) values ('short', 3, 5);
insert into idem.policies (name, key_pattern) values ('digits', '^[0-9]+$'), ('letters', '^[^ ]+$');

create function pg_temp.outcome(header text, policy text) returns text language sql as $$
    select outcome from idem.http_reserve('shop', header, 'POST', '/', policy => policy)
$$;
select is(pg_temp.outcome('ab', 'short'), 'invalid', 'too short');
select is(pg_temp.outcome('"abc"', 'short'), 'started', 'long enough: the quotes do not count');
select is(pg_temp.outcome('abcde', 'short'), 'started', 'not too long');
select is(pg_temp.outcome('abcdef', 'short'), 'invalid', 'too long');
select is(pg_temp.outcome('"123"', 'digits'), 'started', 'as the pattern says');
select is(pg_temp.outcome('12a', 'digits'), 'invalid', 'not as the pattern says');
select is(pg_temp.outcome(U&'\00e9', 'letters'), 'started', 'a pattern may allow more than ASCII');
select is(pg_temp.outcome(U&'\00e9', 'default'), 'invalid', 'by default it is ASCII');

select * from finish();
rollback;
