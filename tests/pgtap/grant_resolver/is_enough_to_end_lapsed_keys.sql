begin;
select plan(1);

create role idem_sweeper;
select idem.grant_resolver('idem_sweeper');
set local idem.single_transaction = on;
select idem.reserve('shop', n || '', mode => 'leased', lease => make_interval(mins => n)) from generate_series(1, 3) as n;
set local idem.clock_offset = '1 hour';
create temp table claimed of idem.lapsed_reservation;
create temp table answer (what text, outcome text);
grant select, insert on claimed, answer to idem_sweeper;

set local role idem_sweeper;
insert into claimed select * from idem.claim_lapsed();
insert into answer select 'extend', (idem.extend(scope, key, token) is not null)::text from claimed where key = '1';
insert into answer select 'checkpoint', idem.checkpoint(scope, key, token, 'half')::text from claimed where key = '1';
insert into answer select 'complete', idem.complete(scope, key, token, 201)::text from claimed where key = '1';
insert into answer select 'release', idem.release(scope, key, token)::text from claimed where key = '2';
insert into answer select 'defer', idem.defer(scope, key, token)::text from claimed where key = '3';
insert into answer
select 'key', (idem.downstream_key(scope, key) = downstream_key)::text from claimed where key = '3';
insert into answer select 'lookup', outcome from idem.lookup('shop', '3');
reset role;

select results_eq(
    'table answer',
    $$values
        ('extend', 'true'), ('checkpoint', 'true'), ('complete', 'true'), ('release', 'true'), ('defer', 'true'),
        ('key', 'true'), ('lookup', 'lapsed')
    $$
);

select * from finish();
rollback;
