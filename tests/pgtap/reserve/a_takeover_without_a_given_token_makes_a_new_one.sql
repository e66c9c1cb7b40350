begin;
select plan(1);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create temp table first as select * from idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 hour';

select ok(
    (select s.token <> f.token from first as f, idem.reserve('shop', 'k', mode => 'leased') as s)
);

select * from finish();
rollback;
