begin;
select plan(1);

set local idem.single_transaction = on;
set local synchronous_commit = remote_apply;
select idem.reserve('shop', 'k', mode => 'leased');

select is(current_setting('synchronous_commit'), 'remote_apply');

select * from finish();
rollback;
