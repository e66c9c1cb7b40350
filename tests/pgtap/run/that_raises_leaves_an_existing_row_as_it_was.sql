begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create function broken(args jsonb) returns idem.response language plpgsql as
$$begin raise exception 'out of paper' using errcode = 'ZZ001'; end$$;
select idem.reserve('shop', 'lapsed', '\x01', 'leased', policy => 'again');
select idem.complete('shop', 'expired', token, 201) from idem.reserve('shop', 'expired', '\x01');

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
select throws_ok($$select idem.run('shop', 'lapsed', '\x01', 'broken(jsonb)', '{}')$$, 'ZZ001', null);
select throws_ok($$select idem.run('shop', 'expired', '\x01', 'broken(jsonb)', '{}')$$, 'ZZ001', null);
select set_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
