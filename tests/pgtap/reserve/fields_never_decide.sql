begin;
select plan(1);

select idem.complete('shop', 'k', token, 200) from idem.reserve('shop', 'k', '\x01', fields => '{"/amount": "h1"}');

select is(
    (idem.reserve('shop', 'k', '\x01', fields => '{"/amount": "h2"}')).outcome, 'replay', 'the fingerprint alone does'
);

select * from finish();
rollback;
