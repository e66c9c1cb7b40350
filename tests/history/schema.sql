-- What the clients of the storm work on. An effect is a business write: it says which attempt made it, and the answer
-- that was stored with it. There is no constraint that would keep a second one out.
create table public.effect (
    op text not null,
    key text not null,
    kind text not null,
    life timestamptz,
    attempt int,
    token uuid,
    fingerprint text,
    status int,
    headers jsonb,
    body bytea,
    transaction_began timestamptz not null default now(),
    work_began timestamptz not null default clock_timestamp(),
    completed timestamptz
);

-- The handler of idem.run. The row of a first attempt is written after it, so its life is known only in a takeover.
create function public.handle(args jsonb) returns idem.response language plpgsql as $$
declare
    answer idem.response := row((args ->> 'status')::int, args -> 'headers', decode(args ->> 'body', 'hex'));
begin
    insert into public.effect (op, key, kind, life, fingerprint, status, headers, body)
    select
        args ->> 'op', args ->> 'key', 'run', l.created_at, args ->> 'fingerprint',
        answer.status, answer.headers, answer.body
    from idem.lookup('storm', args ->> 'key') as l;
    return answer;
end
$$;
