begin;
select plan(3);

create role idem_application;
create role idem_other;
select idem.grant_client('idem_application');
select idem.grant_client('idem_other');
create function who(args jsonb) returns idem.response language sql as
$$select row(200, null, convert_to(current_user, 'UTF8'))::idem.response$$;
create function peek(args jsonb) returns idem.response language sql as
$$select row(200, null, (select token::text::bytea from idem_private.reservation limit 1))::idem.response$$;
create function closed(args jsonb) returns idem.response language sql as 'select row(200, null, null)::idem.response';
revoke all on function closed(jsonb) from public;

create temp table answer (what text, told text);
grant insert on answer to idem_application;
create function pg_temp.told(handler regprocedure) returns text language plpgsql as $$
begin
    return convert_from((idem.run('shop', handler::text, null, handler, '{}')).body, 'UTF8');
exception when others then
    return sqlstate;
end
$$;
set local role idem_application;
insert into answer values
    ('who', pg_temp.told('who(jsonb)')), ('peek', pg_temp.told('peek(jsonb)')),
    ('closed', pg_temp.told('closed(jsonb)'));
reset role;

select is((select told from answer where what = 'who'), 'idem_application', 'it is the caller');
select is((select told from answer where what = 'peek'), '42501', 'which may not read the tables of pyidem');
select is((select told from answer where what = 'closed'), '42501', 'nor call a handler that it may not call');

select * from finish();
rollback;
