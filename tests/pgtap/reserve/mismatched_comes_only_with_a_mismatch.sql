begin;
select plan(1);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('kept', '1 day');
select idem.reserve('shop', 'open', '\x01', fields => '{"/a": "h1"}');
select idem.reserve('shop', 'lapsed', '\x01', 'leased', fields => '{"/a": "h1"}');
select idem.complete('shop', 'old', token)
from idem.reserve('shop', 'old', '\x01', fields => '{"/a": "h1"}', policy => 'kept');
set local idem.clock_offset = '24 hours';
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', '\x01', fields => '{"/a": "h1"}');
create temp table keys (key) as values ('open'), ('lapsed'), ('old'), ('done');

select results_eq(
    $$
        select r.outcome, r.mismatched
        from keys as k cross join lateral idem.reserve('shop', k.key, '\x01', fields => '{"/a": "h2"}') as r
    $$,
    $$values
        ('in_progress', null::text[]), ('unresolved', null), ('expired', null), ('replay', null)
    $$
);

select * from finish();
rollback;
