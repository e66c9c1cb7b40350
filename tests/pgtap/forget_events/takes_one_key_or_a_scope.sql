begin;
select plan(4);

set local idem.single_transaction = on;

select idem.release(scope, key, token)
from unnest('{shop,bank}'::text[]) as scope, unnest('{a,b,B}'::text[]) as key,
    idem.reserve(scope, key, mode => 'leased');

select is(idem_private.forget_events('shop', 'b'), 1::bigint, 'a key');
select is(idem_private.forget_events('shop', null), 2::bigint, 'a scope');
select is(idem_private.forget_events('Bank', null), 0::bigint);
select is((select count(*) from idem_private.event), 3::bigint, 'nothing of others');

select * from finish();
rollback;
