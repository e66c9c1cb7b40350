begin;
select plan(5);

insert into idem.policies (name, ttl) values ('short', '2 hours');
select idem.once('billing', 'm1');
select idem.once('billing', 'm2', 'short');
select idem.once('billing', 'm3', null);
select idem.once('billing', key => 'm4', policy => 'default');

select set_eq(
    $$select key::text, policy::text, expires_at - created_at from idem.keys$$,
    $$values
        ('m1', 'messages', interval '336 hours'), ('m2', 'short', '2 hours'), ('m3', 'messages', '336 hours'),
        ('m4', 'default', '24 hours')$$,
    'by default, and where it is null, 14 days'
);
set local idem.clock_offset = '335 hours 59 minutes';
select is(idem.once('billing', 'm1'), 'duplicate');
set local idem.clock_offset = '336 hours';
select is(idem.once('billing', 'm1'), 'first');
update idem.policies set ttl = '30 days' where name = 'messages';
select idem.once('billing', 'm5');
select is(
    (select expires_at - created_at from idem.keys where key = 'm5'), interval '720 hours',
    'a change counts from the next call on'
);
select is((select expires_at - created_at from idem.keys where key = 'm1'), interval '336 hours', 'and not before');

select * from finish();
rollback;
