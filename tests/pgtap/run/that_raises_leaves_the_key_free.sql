begin;
select plan(5);

create temp table effect (args jsonb);
create function pay(args jsonb) returns idem.response language plpgsql as $$
begin
    insert into effect values (args);
    if args ? 'broken' then
        raise exception 'out of paper' using errcode = 'ZZ001';
    end if;
    return row(201, null, null)::idem.response;
end
$$;

select throws_ok(
    $$select idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{"broken": true}')$$, 'ZZ001', 'out of paper',
    'the caller gets the error of the handler'
);
select is_empty('table effect', 'its work is undone');
select is((idem.lookup('shop', 'k')).outcome, 'absent', 'nothing is stored');
select is((idem.run('shop', 'k', '\x02', 'pay(jsonb)', '{}')).outcome, 'started', 'and any request may have the key');
select results_eq('table effect', $$values ('{}'::jsonb)$$);

select * from finish();
rollback;
