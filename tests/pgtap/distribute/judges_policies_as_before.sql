begin;
select plan(15);
\ir ../citus.psql
\ir ../refusal.psql

select idem.distribute();
insert into idem.policies (name, ttl) values ('new', '2 days');
select results_eq(
    $$select ttl, lease, on_lapse, max_body_bytes, methods from idem.policies where name = 'new'$$,
    $$values (interval '48 hours', interval '60 seconds', 'hold', 1048576, '{POST,PATCH}'::text[])$$,
    'what is not named has its default, and a day is made exact'
);
select is((idem.reserve('shop', 'k', policy => 'new')).outcome, 'started', 'it takes effect at the next call');
update idem.policies set methods = '{put}' where name = 'new';
select is((select methods from idem.policies where name = 'new'), '{PUT}', 'changed');
select is(
    pg_temp.refusal($$insert into idem.policies (name, ttl) values ('bad', '0')$$), '22023 policy_invalid', 'nonsense'
);
select is(pg_temp.refusal($$update idem.policies set lease = '1 year'$$), '22023 policy_invalid', 'also later');
select is(pg_temp.refusal($$update idem.policies set name = 'other' where name = 'new'$$), '22023 policy_invalid', 'a name');
select is(pg_temp.refusal($$delete from idem.policies where name = 'messages'$$), '22023 policy_shipped', 'a shipped one');
select is(pg_temp.refusal($$delete from idem.policies where name = 'new'$$), '23503 policy_in_use', 'one in use');
select throws_ok($$insert into idem.policies (name) values ('new')$$, '23505', null, 'one that is there');
select idem.complete('shop', 'l', token) from idem.reserve('shop', 'l');
insert into idem.policies (name) values ('gone');
delete from idem.policies where name = 'gone';
select is_empty($$select from idem.policies where name = 'gone'$$, 'deleted');
select is((select count(*) from idem_private.retired_policy), 1::bigint, 'its settings stay for keys under way');
insert into idem.policies (name) values ('gone');
select is_empty('select from idem_private.retired_policy', 'until it is made again');

create role idem_app;
select idem.bind_scope('idem_app', 'shop');
select ok((select bool_and(scopes_bound) from idem_private.policy), 'a binding reaches the hot paths');
update idem.policies set tombstone = '1 day' where name = 'gone';
select ok((select bool_and(scopes_bound) from idem_private.policy), 'a change of a policy leaves it');
select idem.unbind_scope('idem_app');
select ok((select not bool_or(scopes_bound) from idem_private.policy), 'and its end, too');

select * from finish();
rollback;
