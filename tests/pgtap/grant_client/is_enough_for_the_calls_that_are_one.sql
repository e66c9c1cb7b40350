begin;
select plan(1);

create role idem_application;
select idem.grant_client('idem_application');
set local idem.single_transaction = on;
create function pay(args jsonb) returns idem.response language sql as $$select idem.json_response(201, '{}')$$;

create temp table answer (what text, outcome text);
grant insert on answer to idem_application;
set local role idem_application;
insert into answer select 'run', outcome from idem.run('shop', 'r', '\x01', 'pay(jsonb)', '{}');
insert into answer select 'replay', outcome from idem.run('shop', 'r', '\x01', 'pay(jsonb)', '{}');
insert into answer select 'once', idem.once('billing', 'm1');
insert into answer select 'once_many', outcome from idem.once_many('billing', '{m1}');
insert into answer select 'once_undo', idem.once_undo('billing', '{m1}')::text;
insert into answer
select 'checkpoint', idem.checkpoint('shop', 'l', token, 'half')::text
from idem.reserve('shop', 'l', mode => 'leased');
reset role;

select results_eq(
    'table answer',
    $$values
        ('run', 'started'), ('replay', 'replay'), ('once', 'first'), ('once_many', 'duplicate'), ('once_undo', '1'),
        ('checkpoint', 'true')$$
);

select * from finish();
rollback;
