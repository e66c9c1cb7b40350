begin;
select plan(3);

set local idem.single_transaction = on;

select idem.reserve('shop', minutes || '', mode => 'leased', lease => make_interval(mins => minutes))
from unnest('{3,1,5,2,4}'::int[]) as minutes;
set local idem.clock_offset = '1 hour';

select results_eq('select key from idem.claim_lapsed(2)', $$values ('1'), ('2')$$);
select results_eq('select key from idem.claim_lapsed(max_rows => 1)', $$values ('3')$$);
select results_eq('select key from idem.claim_lapsed()', $$values ('4'), ('5')$$, 'ten unless told');

select * from finish();
rollback;
