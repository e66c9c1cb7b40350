begin;
select plan(3);

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

select * from finish();
rollback;
