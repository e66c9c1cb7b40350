-- I7, I8
begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'hold', '\x01', 'leased');
select idem.reserve('shop', 'retry', '\x01', 'leased', policy => 'again');
select idem.reserve('shop', 'released', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged' where key = 'released';
select idem.release('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '10 years';
select set_eq(
    $$select outcome from idem_private.reservation as r cross join lateral idem.reserve(r.scope, r.key, '\x02')$$,
    array['mismatch'], 'no other request is let in'
);
select is((idem.reserve('shop', 'hold', '\x01', 'leased')).outcome, 'unresolved', 'a held lapse stays unknown');
select is((idem.reserve('shop', 'retry', '\x01', 'leased')).attempt, 2, 'a lapse to retry is at its second attempt');
select results_eq(
    $$select attempt, recovery_point from idem.reserve('shop', 'released', '\x01', 'leased')$$,
    $$values (2, 'charged')$$, 'and so is a released one'
);

select * from finish();
rollback;
