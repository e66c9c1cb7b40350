begin;
select plan(1);

create role idem_application;
select idem.grant_client('idem_application');
set local idem.single_transaction = on;

create temp table answer (what text, outcome text);
grant insert on answer to idem_application;
set local role idem_application;
insert into answer select 'reserve', outcome from idem.reserve('shop', 'a', '\x01');
insert into answer select 'leased', outcome from idem.reserve(
    'shop', 'l', null, 'leased', '1 hour', '{"/a": "h"}', '1', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'messages'
);
insert into answer
select 'extend', (idem.extend('shop', 'l', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa') is not null)::text;
insert into answer select 'defer', idem.defer('shop', 'l', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')::text;
insert into answer select 'lookup', outcome from idem.lookup('shop', 'l');
insert into answer select 'release', idem.release('shop', 'l', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')::text;
insert into answer select 'complete', idem.complete('shop', 'c', token, 201, '[["a", "b"]]', 'x')::text
from idem.reserve('shop', 'c');
insert into answer select 'key', (idem.downstream_key('shop', 'a') is not null)::text;
insert into answer select 'version', (idem.version() is not null)::text;
reset role;

select results_eq(
    'table answer',
    $$values
        ('reserve', 'started'), ('leased', 'started'), ('extend', 'true'), ('defer', 'true'), ('lookup', 'lapsed'),
        ('release', 'true'), ('complete', 'true'), ('key', 'true'), ('version', 'true')
    $$
);

select * from finish();
rollback;
