-- The transaction id of an earlier mark may come again in a restored database: the time tells.
begin;
select plan(4);

select idem.once('billing', 'early');
update idem_private.reservation set owner_xid = (pg_current_xact_id()::text::bigint - 1)::text::xid8;
select idem.once('billing', 'restored');
update idem_private.reservation set owned_at = transaction_timestamp() - interval '1 microsecond'
where key = 'restored';
select idem.once('billing', 'mine');
create temp table before as select * from idem_private.reservation where key <> 'mine';

select is(idem.once('billing', 'early'), 'duplicate');
select is(idem.once_undo('billing', '{early,restored}'), 0);
select is(idem.once_undo('billing', '{early,restored,mine}'), 1);
select set_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
