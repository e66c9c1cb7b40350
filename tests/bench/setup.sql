-- The work that every operation does, and the pattern that everybody writes by hand to do it once.
create table orders (id bigint generated always as identity primary key, amount int not null, note text not null);

create table hand (
    scope text not null,
    key text not null,
    fingerprint bytea not null,
    created_at timestamptz not null default now(),
    completed_at timestamptz,
    status int,
    headers jsonb,
    body bytea,
    primary key (scope, key)
);

create index on hand (created_at);

create table handled (
    scope text not null,
    key text not null,
    created_at timestamptz not null default now(),
    primary key (scope, key)
);

create index on handled (created_at);

create function pay(args jsonb) returns idem.response language plpgsql as $$
declare
    response idem.response;
begin
    insert into orders (amount, note) values (1, 'benchmark');
    response.status := 201;
    response.headers := '[["content-type", "application/json"]]';
    response.body := '{"id": 1234567, "amount": 1}';
    return response;
end
$$;

-- What replays and key look-ups read, and an attempt that others find in progress.
do $$
declare
    owner record;
begin
    for number in 1..10000 loop
        insert into hand (scope, key, fingerprint, completed_at, status, headers, body) values (
            'client', 'stored-' || number, sha256('request'), now(), 201,
            '[["content-type", "application/json"]]', '{"id": 1234567, "amount": 1}'
        );
        select * into owner from idem.reserve('client', 'stored-' || number, sha256('request'));
        perform idem.complete(
            'client', 'stored-' || number, owner.token, 201,
            '[["content-type", "application/json"]]', '{"id": 1234567, "amount": 1}'
        );
    end loop;
end
$$;

select idem.reserve('client', 'busy', sha256('request'), 'leased', '1 day');

vacuum analyze;
