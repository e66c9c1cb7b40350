begin;
select plan(1);

create temp table first as select idem.downstream_key('shop', 'k') as key;
update idem_private.secret set value = sha256('another') || sha256('installation');
select isnt(idem.downstream_key('shop', 'k'), (table first), 'the secret is another');

select * from finish();
rollback;
