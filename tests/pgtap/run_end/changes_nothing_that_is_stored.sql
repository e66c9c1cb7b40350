-- In whatever state a key is, run_end without its token, or with another, stores nothing; nor does run_begin help.
begin;
select plan(24);

\ir ../refusal.psql
set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, tombstone) values ('again', 'retry', '0'), ('kept', 'hold', '1 day');
select idem.reserve('shop', 'atomic', '\x01');
select idem.reserve('shop', 'live', '\x01', 'leased', '2 days');
select idem.reserve('shop', 'held', '\x01', 'leased');
select idem.reserve('shop', 'lapsed', '\x01', 'leased', policy => 'again');
select idem.complete('shop', 'completed', token, 200, '[["a", "b"]]', 'x')
from idem.reserve('shop', 'completed', '\x01', policy => 'messages');
select idem.complete('shop', 'tombstone', token, 200) from idem.reserve('shop', 'tombstone', '\x01', policy => 'kept');
select idem.once('shop', 'marked');
select idem.reserve('shop', 'released', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
select idem.release('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
select is(
    pg_temp.refusal(format($$select idem.run_end('shop', %L, '\x01', null, row(500, null, null))$$, key)),
    'IK002 not_the_owner', key || ' without a token'
) from before;
select is(
    pg_temp.refusal(format(
        $$select idem.run_end('shop', %L, '\x01', 'cccccccc-cccc-4ccc-8ccc-cccccccccccc', row(500, null, null))$$, key
    )),
    'IK002 not_the_owner', key || ' with another token'
) from before;
select is(
    pg_temp.refusal(
        $$select idem.run_end(
            'shop', 'released', '\x01', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(500, null, null)
        )$$
    ),
    'IK002 not_the_owner', 'a released key with the token that has released it'
);
select is(
    pg_temp.refusal(
        $$select idem.run_end('shop', 'marked', null, '00000000-0000-0000-0000-000000000000', row(500, null, null))$$
    ),
    'IK002 not_the_owner', 'a mark, which has no token'
);
select is(
    pg_temp.refusal($$select idem.run_end('shop', 'none', null, gen_random_uuid(), row(500, null, null))$$),
    'IK003 no_such_reservation', 'a token without a reservation'
);
select is(
    (select count(*) from before as b where idem.run_begin('shop', b.key)),
    0::bigint, 'run_begin starts nothing'
);
select is(
    pg_temp.refusal($$select idem.run_end('shop', 'lapsed', '\x02', null, row(500, null, null))$$),
    'IK002 not_the_owner', 'and run_end after it stores nothing'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select isnt_empty('table before');
select is((select count(*) from before), 8::bigint, 'in every state');

select * from finish();
rollback;
