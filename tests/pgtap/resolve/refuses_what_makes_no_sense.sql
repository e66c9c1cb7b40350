\ir ../refusal.psql

begin;
select plan(13);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

select is(pg_temp.refusal($$select idem.resolve(null, 'k', 'retry', 'asked')$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.resolve('shop', '', 'retry', 'asked')$$), 'IK001 empty');
select is(pg_temp.refusal($$select idem.resolve('shop', 'k', 'undo', 'asked')$$), '22023 unknown_action');
select is(pg_temp.refusal($$select idem.resolve('shop', 'k', null, 'asked')$$), '22023 unknown_action');
select is(pg_temp.refusal($$select idem.resolve('shop', 'k', 'retry', null)$$), '22023 reason_missing');
select is(pg_temp.refusal($$select idem.resolve('shop', 'k', 'retry', e' \n\t')$$), '22023 reason_missing');
select is(
    pg_temp.refusal($$select idem.resolve('shop', 'k', 'retry', 'asked', status => 201)$$),
    '22023 answer_without_complete'
);
select is(
    pg_temp.refusal($$select idem.resolve('shop', 'k', 'release', 'asked', headers => '[]')$$),
    '22023 answer_without_complete'
);
select is(
    pg_temp.refusal($$select idem.resolve('shop', 'k', 'release', 'asked', body => '')$$),
    '22023 answer_without_complete'
);
select is(
    pg_temp.refusal($$select idem.resolve('shop', 'k', 'complete', 'asked', headers => '{"a": "b"}')$$),
    '22023 headers_not_pairs'
);
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is_empty($$select * from idem_private.event where event = 'resolved'$$, 'nothing is recorded');
select lives_ok($$select idem.resolve('shop', 'k', 'retry', 'asked')$$, 'what does make sense');

select * from finish();
rollback;
