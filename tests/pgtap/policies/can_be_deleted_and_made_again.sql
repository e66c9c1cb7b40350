begin;
select plan(4);

insert into idem.policies (name, ttl) values ('mine', '2 hours');
select idem.complete('shop', 'a', token) from idem.reserve('shop', 'a', policy => 'mine');
delete from idem_private.reservation;

select lives_ok($$delete from idem.policies where name = 'mine'$$, 'once no key has it');
select throws_ok($$select idem.reserve('shop', 'a', policy => 'mine')$$, 'IK006', null, 'then it is unknown');
insert into idem.policies (name, ttl) values ('mine', '3 hours');
select is(
    (select expires_at - created_at from idem.reserve('shop', 'a', policy => 'mine')), interval '3 hours', 'and new'
);
delete from idem_private.reservation;
select lives_ok($$delete from idem.policies where name = 'mine'$$, 'it can be deleted again');

select * from finish();
rollback;
