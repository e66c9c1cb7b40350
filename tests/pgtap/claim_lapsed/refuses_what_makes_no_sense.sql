\ir ../refusal.psql

begin;
select plan(9);

select is(pg_temp.refusal('select idem.claim_lapsed(0)'), '22023 max_rows_out_of_range');
select is(pg_temp.refusal('select idem.claim_lapsed(-1)'), '22023 max_rows_out_of_range');
select is(pg_temp.refusal($$select idem.claim_lapsed(lease => '0')$$), '22023 interval_out_of_range');
select is(pg_temp.refusal($$select idem.claim_lapsed(lease => 'infinity')$$), '22023 interval_out_of_range')
where current_setting('server_version_num')::int >= 170000
union all
select pass('no such interval before 17')
where current_setting('server_version_num')::int < 170000;
select is(pg_temp.refusal($$select idem.claim_lapsed(policy => 'typo')$$), 'IK006 no_such_policy');
select is(pg_temp.refusal($$select idem.claim_lapsed(policy => '')$$), 'IK006 no_such_policy');
select is(pg_temp.refusal($$select idem.claim_lapsed(scope => '')$$), 'IK001 empty');
select is(pg_temp.refusal($$select idem.claim_lapsed(key => ' ')$$), 'IK001 blank');
select is(pg_temp.refusal($$select idem.claim_lapsed(scope => e'\x07', key => 'k')$$), 'IK001 not_printable');

select * from finish();
rollback;
