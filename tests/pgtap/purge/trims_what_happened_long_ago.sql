begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '2 minutes';
select idem.complete('shop', 'k', token, 201) from idem.reserve('shop', 'k');
select isnt_empty($$select * from idem.history('shop', 'k')$$, 'a takeover was noted');
set local idem.clock_offset = '80 days';
select idem.purge();
select isnt_empty($$select * from idem_private.event$$, 'what happened is known for longer than the key');
set local idem.clock_offset = '100 days';
select idem.purge();
select is_empty($$select * from idem_private.event$$);

select * from finish();
rollback;
