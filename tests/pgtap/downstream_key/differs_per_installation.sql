begin;
select plan(2);

create temp table first as select idem.downstream_key('shop', 'k') as key;
update idem_private.secret set value = sha256('other') || sha256('one');
select isnt(idem.downstream_key('shop', 'k'), (table first), 'by either half of the secret');
update idem_private.secret set outer_key = sha256('other') || sha256('one');
select isnt(idem.downstream_key('shop', 'k'), (table first), 'by both');

select * from finish();
rollback;
