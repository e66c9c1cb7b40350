begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('kept', '1 day');
select idem.reserve('shop', 'leased', '\x01', 'leased', '1 hour', '{"/pin": "stored"}', '"stored"');
select idem.complete('shop', 'done', token, 201, '[["x", "stored"]]', 'stored')
from idem.reserve('shop', 'done', '\x01', fields => '{"/pin": "stored"}', state => '"stored"', policy => 'kept');

select doesnt_match(
    idem.reserve('shop', 'leased', '\x02', fields => '{"/pin": "given"}')::text,
    'stored|given|73746f726564', 'in progress'
);
select doesnt_match(
    idem.reserve('shop', 'done', '\x02', fields => '{"/pin": "given"}')::text, 'stored|given|73746f726564', 'completed'
);

select * from finish();
rollback;
