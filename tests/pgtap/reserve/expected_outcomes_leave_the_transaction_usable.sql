-- I9. No savepoint: an error would end the transaction.
begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('kept', '1 day');
create temp table work (what text);

select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', '\x01');
select idem.complete('shop', 'old', token) from idem.reserve('shop', 'old', '\x01', policy => 'kept');
select idem.reserve('shop', 'lapsed', '\x01', 'leased');
set local idem.clock_offset = '24 hours 1 second';
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', '\x01');
select idem.reserve('shop', 'open', '\x01');

select lives_ok(
    $$
        do '
        begin
            insert into work select outcome from idem.reserve(''shop'', ''new'', ''\x01'');
            insert into work select outcome from idem.reserve(''shop'', ''done'', ''\x01'');
            insert into work select outcome from idem.reserve(''shop'', ''open'', ''\x01'');
            insert into work select outcome from idem.reserve(''shop'', ''lapsed'', ''\x01'', ''leased'');
            insert into work select outcome from idem.reserve(''shop'', ''done'', ''\x02'');
            insert into work select outcome from idem.reserve(''shop'', ''old'', ''\x01'');
        end'
    $$
);
select results_eq(
    'table work',
    array['started', 'replay', 'in_progress', 'unresolved', 'mismatch', 'expired'],
    'outcomes are rows'
);

select * from finish();
rollback;
