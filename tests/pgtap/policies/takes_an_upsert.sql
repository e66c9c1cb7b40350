begin;
select plan(6);

insert into idem.policies (name, ttl) values ('mine', '2 hours')
on conflict (name) do update set ttl = excluded.ttl, on_lapse = 'retry';
select results_eq(
    $$select ttl, on_lapse from idem.policies where name = 'mine'$$,
    $$values (interval '2 hours', 'hold')$$, 'it inserts'
);

insert into idem.policies (name, ttl) values ('mine', '3 hours')
on conflict (name) do update set ttl = excluded.ttl, on_lapse = 'retry';
select results_eq(
    $$select ttl, on_lapse from idem.policies where name = 'mine'$$,
    $$values (interval '3 hours', 'retry')$$, 'or updates'
);

insert into idem.policies (name, ttl) values ('mine', '4 hours') on conflict (name) do nothing;
select is((select ttl from idem.policies where name = 'mine'), interval '3 hours', 'or does nothing');

-- An upsert is offered with the defaults of what it does not name, which do not count where it updates.
insert into idem.policies (name, lease, key_max_length) values ('short', '5 seconds', 500);
insert into idem.policies (name, ttl, key_min_length) values ('short', '30 seconds', 300)
on conflict (name) do update set ttl = excluded.ttl, key_min_length = excluded.key_min_length;
select results_eq(
    $$select ttl, lease, key_min_length from idem.policies where name = 'short'$$,
    $$values (interval '30 seconds', interval '5 seconds', 300)$$, 'what counts is the row that is there then'
);
select throws_ok(
    $$
        insert into idem.policies (name, ttl) values ('short', '5 seconds')
        on conflict (name) do update set ttl = excluded.ttl
    $$,
    '22023', 'policy ''short'': ttl: must be longer than lease', 'as one with its other columns'
);
select throws_ok(
    $$insert into idem.policies (name, ttl) values ('shorter', '30 seconds')$$,
    '22023', 'policy ''shorter'': ttl: must be longer than lease', 'or with the defaults where it is new'
);

select * from finish();
rollback;
