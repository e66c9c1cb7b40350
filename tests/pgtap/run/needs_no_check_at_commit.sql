-- Where the session has made the check immediate, the one write is finished already.
begin;
select plan(2);

create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';

set constraints all immediate;
select is((idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}')).outcome, 'started');
select is((idem.lookup('shop', 'k')).outcome, 'completed');

select * from finish();
rollback;
