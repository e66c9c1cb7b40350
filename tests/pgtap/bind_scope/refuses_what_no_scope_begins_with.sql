begin;
\ir ../refusal.psql
select plan(7);

create role idem_application;

select is(pg_temp.refusal($$select idem.bind_scope('idem_application', null)$$), '22023 prefix_unfit 255', 'null');
select is(pg_temp.refusal($$select idem.bind_scope('idem_application', '')$$), '22023 prefix_unfit 255', 'empty');
select is(pg_temp.refusal($$select idem.bind_scope('idem_application', '  ')$$), '22023 prefix_unfit 255', 'blank');
select is(
    pg_temp.refusal($$select idem.bind_scope('idem_application', E'a\nb')$$), '22023 prefix_unfit 255',
    'control characters'
);
select is(
    pg_temp.refusal($$select idem.bind_scope('idem_application', repeat('a', 256))$$), '22023 prefix_unfit 255',
    'too long'
);
select lives_ok($$select idem.bind_scope('idem_application', repeat('a', 255))$$, 'the longest');
select throws_ok($$select idem.bind_scope('idem_nobody', 'a')$$, '42704', null, 'a role that does not exist');

select * from finish();
rollback;
