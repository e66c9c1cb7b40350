begin;
select plan(4);

create function pay(args jsonb) returns idem.response language sql as
$$select row(201, '[["b", "1"], ["a", "2"], ["b", "1"]]', '\x00ff')::idem.response$$;

create temp table answer as select * from idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}');
select results_eq(
    'select outcome, attempt, status, headers, body, mismatched, retry_after from answer',
    $$values (
        'started', 1, 201, '[["b", "1"], ["a", "2"], ["b", "1"]]'::jsonb, '\x00ff'::bytea, null::text[],
        null::interval
    )$$,
    'its own answer'
);
select results_eq(
    $$select outcome, attempt, status, headers, body, created_at, completed_at, expires_at
      from idem.reserve('shop', 'k', '\x01')$$,
    $$select 'replay', attempt, status, headers, body, created_at, completed_at, expires_at from answer$$,
    'which every later reserve gets'
);
select results_eq(
    $$select outcome, attempt, status, headers, body, created_at, completed_at, expires_at
      from idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}')$$,
    $$select 'replay', attempt, status, headers, body, created_at, completed_at, expires_at from answer$$,
    'and every later run'
);
select results_eq(
    $$select outcome, attempt, status, headers, body, created_at, completed_at, expires_at
      from idem.lookup('shop', 'k')$$,
    $$select 'completed', attempt, status, headers, body, created_at, completed_at, expires_at from answer$$,
    'and lookup'
);

select * from finish();
rollback;
