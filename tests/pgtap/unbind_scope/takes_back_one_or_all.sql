begin;
select plan(5);

create role idem_application;
create role idem_other;
select idem.bind_scope('idem_application', p.prefix) from unnest(array['a', 'b', 'c']) as p (prefix);
select idem.bind_scope('idem_other', 'a');

select idem.unbind_scope('idem_application', 'a');
select set_eq(
    $$select prefix from idem_private.scope_binding where role = 'idem_application'::regrole$$, array['b', 'c'], 'one'
);
select lives_ok($$select idem.unbind_scope('idem_application', 'a')$$, 'which may be repeated');
select idem.unbind_scope('idem_application');
select is_empty(
    $$select prefix from idem_private.scope_binding where role = 'idem_application'::regrole$$, 'all'
);
select is(
    (select string_agg(role || ' ' || prefix, ', ') from idem_private.scope_binding), 'idem_other a',
    'but not those of others'
);
select throws_ok($$select idem.unbind_scope('idem_nobody', 'a')$$, '42704', null, 'a role that does not exist');

select * from finish();
rollback;
