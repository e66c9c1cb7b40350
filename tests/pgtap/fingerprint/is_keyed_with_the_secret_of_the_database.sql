begin;
select plan(7);

create temp table before as
select
    idem.fingerprint('POST', '/', '{"pin": 1234}', 'application/json') as digest,
    idem.fingerprint_fields('{"pin": 1234}', 'application/json') as fields;
select is(idem.fingerprint('POST', '/', '{"pin": 1234}', 'application/json'), digest, 'stable') from before;
update idem_private.secret set value = sha256('a') || sha256('b');

select isnt(idem.fingerprint('POST', '/', '{"pin": 1234}', 'application/json'), digest, 'the digest') from before;
select isnt(idem.fingerprint_fields('{"pin": 1234}', 'application/json'), fields, 'and the hash of a leaf') from before;
select is(length(digest), 16, '128 bits, which cannot be extended to the digest of more') from before;
select isnt(
    idem.fingerprint_fields('{"a": 1}', 'application/json') -> '/a',
    idem.fingerprint_fields('{"b": 1}', 'application/json') -> '/b',
    'equal values do not look equal'
);
select is(
    (select provolatile from pg_proc where oid = 'idem.fingerprint'::regproc), 's',
    'stable to the planner, never immutable'
);
select is(
    (select provolatile from pg_proc where oid = 'idem.fingerprint_fields'::regproc), 's', 'nor the fields'
);

select * from finish();
rollback;
