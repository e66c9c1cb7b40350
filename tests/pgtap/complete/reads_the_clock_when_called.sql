-- I13
begin;
select plan(1);

create temp table first as select * from idem.reserve('shop', 'k');
set local idem.clock_offset = '10 minutes';
select idem.complete('shop', 'k', token) from first;

select ok(
    (
        select l.completed_at - f.created_at between interval '10 minutes' and interval '11 minutes'
        from first as f, idem.lookup('shop', 'k') as l
    )
);

select * from finish();
rollback;
