begin;
select plan(3);

create function pg_temp.told(statement text) returns text language plpgsql as $$
declare
    detail text;
    hint text;
begin
    execute statement;
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return concat(sqlerrm, detail, hint);
end
$$;

select doesnt_match(
    pg_temp.told($$select idem.reserve('shop', repeat('secret', 1000))$$), 'secret', 'a long key'
);
select doesnt_match(pg_temp.told($$select idem.reserve(repeat('secret', 1000), 'k')$$), 'secret', 'a long scope');
select doesnt_match(pg_temp.told($$select idem.reserve('shop', E'secret\x01')$$), 'secret', 'control characters');

select * from finish();
rollback;
