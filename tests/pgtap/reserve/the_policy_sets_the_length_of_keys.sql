begin;
select plan(5);

\ir ../refusal.psql
insert into idem.policies (name, key_min_length, key_max_length) values ('sized', 16, 1024);

select is(
    pg_temp.refusal($$select idem.reserve('shop', repeat('k', 15), policy => 'sized')$$), 'IK001 too_short 16', '15'
);
select is((idem.reserve('shop', repeat('k', 16), policy => 'sized')).outcome, 'started', '16');
select is(
    (idem.reserve(
        'shop', (select left(string_agg(md5(n::text), ''), 1024) from generate_series(1, 32) as n), policy => 'sized'
    )).outcome,
    'started', '1024 that do not compress'
);
select is(
    pg_temp.refusal($$select idem.reserve('shop', repeat('k', 1025), policy => 'sized')$$), 'IK001 too_long 1024',
    '1025'
);
select is(
    pg_temp.refusal($$select idem.reserve('shop', '', policy => 'sized')$$), 'IK001 empty', 'empty is not too short'
);

select * from finish();
rollback;
