begin;
select plan(1);

set local idem.single_transaction = on;
set local synchronous_commit = off;
select idem.reserve('shop', 'k', mode => 'leased');

select isnt(current_setting('synchronous_commit'), 'off');

select * from finish();
rollback;
