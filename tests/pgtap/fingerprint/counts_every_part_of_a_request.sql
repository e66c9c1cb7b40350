begin;
select plan(14);

create temp table base as
select idem.fingerprint('POST', '/a?b=c', 'd', 'text/plain') as digest;

select is(idem.fingerprint('post', '/a?b=c', 'd', 'text/plain'), digest, 'a method in lower case') from base;
select is(idem.fingerprint('POST', '/a?b=c', 'd', 'Text/Plain; charset=utf-8'), digest, 'parameters of the type')
from base;
select isnt(idem.fingerprint('PUT', '/a?b=c', 'd', 'text/plain'), digest, 'another method') from base;
select isnt(idem.fingerprint('POST', '/A?b=c', 'd', 'text/plain'), digest, 'another path') from base;
select isnt(idem.fingerprint('POST', '/a?b=%63', 'd', 'text/plain'), digest, 'a path is not decoded') from base;
select isnt(idem.fingerprint('POST', '/a?b=d', 'd', 'text/plain'), digest, 'another query') from base;
select isnt(idem.fingerprint('POST', '/a', 'd', 'text/plain'), digest, 'no query') from base;
select isnt(idem.fingerprint('POST', '/a?b=c', 'e', 'text/plain'), digest, 'another body') from base;
select isnt(idem.fingerprint('POST', '/a?b=c', 'd', 'text/html'), digest, 'another type') from base;
select isnt(idem.fingerprint('POST', '/a?b=c', 'd'), digest, 'no type') from base;
select is(idem.fingerprint('POST', '/'), idem.fingerprint('POST', '/', ''), 'no body equals an empty one');
select is(idem.fingerprint('POST', '/', 'a', ''), idem.fingerprint('POST', '/', 'a'), 'an empty type is none');
select isnt(
    idem.fingerprint('POST', 'T/', 'a'), idem.fingerprint('POSTT', '/', 'a'),
    'the method ends where the path begins'
);
select isnt(
    idem.fingerprint('POST', '/a', '', 'text/plain'), idem.fingerprint('POST', '/atext/plain', ''),
    'the path ends where the type begins'
);

select * from finish();
rollback;
