begin;
select plan(3);

insert into idem.policies (name) values ('mine');

select throws_ok($$update idem.policies set name = 'yours' where name = 'mine'$$, '22023', null, 'of one''s own');
select throws_ok($$update idem.policies set name = 'mine2' where name = 'default'$$, '22023', null, 'shipped');
select lives_ok($$update idem.policies set name = name, ttl = '2 hours'$$, 'to the same name is no renaming');

select * from finish();
rollback;
