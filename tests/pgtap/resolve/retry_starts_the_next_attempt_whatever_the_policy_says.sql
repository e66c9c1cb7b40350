begin;
select plan(5);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse, max_attempts) values ('once', 'retry', 1);
select idem.reserve('shop', policy, '\x01', 'leased', state => '1', policy => policy)
from unnest('{default,once}'::text[]) as policy;
set local idem.clock_offset = '2 minutes';

select is((idem.reserve('shop', 'once', '\x01', 'leased')).outcome, 'unresolved', 'its attempts are used up');
select is(idem.resolve('shop', key, 'retry', 'asked'), true) from unnest('{default,once}'::text[]) as key;
select results_eq(
    $$
        select r.outcome, r.attempt, r.state
        from unnest('{default,once}'::text[]) as key, idem.reserve('shop', key, '\x01', 'leased') as r
    $$,
    $$values ('started', 2, '1'::jsonb), ('started', 2, '1'::jsonb)$$
);
set local idem.clock_offset = '4 minutes';
select is((idem.reserve('shop', 'once', '\x01', 'leased')).outcome, 'unresolved', 'this once');

select * from finish();
rollback;
