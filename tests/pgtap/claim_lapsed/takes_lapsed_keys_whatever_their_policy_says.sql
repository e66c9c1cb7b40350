begin;
select plan(1);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse, max_attempts) values ('again', 'retry', null), ('once', 'retry', 1);
select idem.reserve('shop', policy, mode => 'leased', policy => policy)
from unnest('{default,again,once}'::text[]) as policy;
set local idem.clock_offset = '2 minutes';

select set_eq('select key from idem.claim_lapsed()', '{default,again,once}'::text[]);

select * from finish();
rollback;
