begin;
select plan(4);

insert into idem.policies (name, ttl, tombstone) values ('other', '1 hour 1 second', '1 day');
select idem.complete('shop', 'k', token, 204) from idem.reserve('shop', 'k', '\x01');

select is((idem.reserve('shop', 'k', '\x01', state => '{"amount": 8}')).status, 204, 'another state');
select is((idem.reserve('shop', 'k', '\x01', fields => '{"/amount": "h"}')).status, 204, 'other fields');
select is((idem.reserve('shop', 'k', '\x01', policy => 'other')).status, 204, 'another policy');
set local idem.single_transaction = on;
select is((idem.reserve('shop', 'k', '\x01', mode => 'leased', lease => '1 hour')).status, 204, 'the other mode');

select * from finish();
rollback;
