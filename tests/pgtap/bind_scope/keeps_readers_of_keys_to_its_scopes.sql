begin;
select plan(4);

create role idem_watch;
select idem.grant_monitor('idem_watch');
select idem.bind_scope('idem_watch', 'client:1');
set local idem.single_transaction = on;
select idem.reserve(s.scope, 'k', mode => 'leased')
from unnest(array['client:1', 'client:2', 'client:1:b', 'client:10']) as s (scope);

create temp table seen (scope text, how text);
grant all on seen to idem_watch;
grant create on schema public to idem_watch;
set local role idem_watch;
-- so cheap that the planner would rather ask it than the binding
create function public.peek(scope text) returns boolean language plpgsql cost 0.0000001 as
$$begin insert into seen values (scope, 'peeked'); return true; end$$;
insert into seen select scope, 'listed' from idem.keys;
select count(*) from idem.keys where public.peek(scope);
select count(*) from idem.keys where unfinished and public.peek(scope);
reset role;

select set_eq($$select scope from seen where how = 'listed'$$, array['client:1', 'client:1:b'], 'what is listed');
select set_eq(
    $$select scope from seen where how = 'peeked'$$, array['client:1', 'client:1:b'],
    'what a function in its WHERE is shown'
);
select idem.unbind_scope('idem_watch');
select is((select count(*) from idem.keys), 4::bigint, 'who is bound nowhere');
set local role idem_watch;
select is((select count(*) from idem.keys), 4::bigint, 'sees all');
reset role;

select * from finish();
rollback;
