begin;
select plan(1);

set local synchronous_commit = off;
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

select is(current_setting('synchronous_commit'), 'off');

select * from finish();
rollback;
