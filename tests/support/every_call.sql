-- Every call on keys, scopes, requests and policies, in one transaction of a database that honours the settings of test
-- suites: what one leaves is there for the next. A tilde after a text is where a test may put a COLLATE clause.
set local idem.single_transaction = on;
create function public.pay(args jsonb) returns idem.response language sql as
'select 201, null::jsonb, null::bytea';
insert into idem.policies (name, required, ignore) values ('kind', true, '{/x}');
select outcome, status, convert_from(body, 'UTF8')
from idem.http_reserve('shop'~, '"Key"'~, 'post'~, '/a?B'~, '{"b/c": [1.50, 2]}', 'Application/JSON; x=y'~,
    policy => 'kind'~);
select idem.fingerprint('post'~, '/a?B'~, '{"b/c": [1.50, 2], "d": 1e70}', 'Application/JSON'~, '{/b~1c/0}'~,
    '{/b~1c,/D}'~);
select idem.fingerprint('post'~, '/a?B'~, 'a=%41&B=2+', 'application/x-www-form-urlencoded'~, ignore => '{/a}'~);
select idem.fingerprint('post'~, '/a?B'~, E'--Ab\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n--Ab--',
    'Multipart/form-data; boundary=Ab'~);
select idem.fingerprint_fields('{"b/c": [1.50, 2], "b/c": 1}', 'Application/JSON'~, '{/b~1c/0}'~, '{/b~1c,/D}'~);
select idem.fingerprint_fields('a=%41&B=2+', 'application/x-www-form-urlencoded'~, include => '{/a}'~);
select
    r.outcome,
    idem.http_complete('shop'~, 'h'~, r.token, 201, '[["Date", "x"], ["Connection", "X"], ["x", "1"], ["A", "b"]]', 'x')
from idem.http_reserve('shop'~, 'h'~, 'POST'~, '/'~, policy => 'kind'~) as r;
select outcome, headers from idem.http_reserve('shop'~, 'h'~, 'POST'~, '/'~, policy => 'kind'~);
select outcome from idem.http_reserve('shop'~, 'H'~, 'GET'~, '/'~, policy => 'kind'~);
select outcome
from idem.reserve('shop'~, 'l'~, mode => 'leased'~, policy => 'kind'~, lease => '1 microsecond',
    fields => '{"/a": 1}');
select outcome, mismatched from idem.reserve('shop'~, 'l'~, 'x', policy => 'kind'~, fields => '{"/A": 1}');
select key, claims from idem.claim_lapsed(scope => 'shop'~, key => 'l'~, policy => 'kind'~, lease => '1 microsecond');
select key, claims from idem.claim_lapsed(scope => 'shop'~);
select idem.resolve('shop'~, 'l'~, 'complete'~, 'asked'~, force => true, status => 201);
select event, reason from idem.history('shop'~, 'l'~) order by at;
select idem.forget('shop'~, 'l'~);
select idem.downstream_key('shop'~, 'l'~, 'Step'~);
select idem.policy_document('kind'~);
select idem.bind_scope('postgres'~, 'shop'~), idem.unbind_scope('postgres'~, 'SHOP'~);
select idem.unbind_scope('postgres'~, 'shop'~);
select idem.grant_client('pg_monitor'~), idem.grant_resolver('pg_monitor'~), idem.grant_monitor('pg_monitor'~);
select idem.grant_operator('pg_monitor'~), idem.revoke_access('pg_monitor'~);
insert into idem.policies (name, key_pattern, methods, drop_headers, profile, on_lapse)
values ('new'~, '^x'~, array['get'~], array['Date'~], 'stripe'~, 'retry'~);
select * from idem.policies where name = 'new';
select outcome from idem.lookup('shop'~, 'h'~);
select idem.complete('shop'~, 'c'~, r.token, 201) from idem.reserve('shop'~, 'c'~, policy => 'kind'~) as r;
select outcome, status from idem.reserve('shop'~, 'c'~, policy => 'kind'~);
select idem.defer('shop'~, 'xt'~, r.token, reason => 'Late'~)
from idem.reserve('shop'~, 'xt'~, mode => 'leased'~, policy => 'new'~) as r;
select
    r.attempt,
    idem.checkpoint('shop'~, 'xt'~, r.token, 'Half'~),
    idem.checkpoint('shop'~, 'xt'~, r.token, 'Half'~),
    idem.release('shop'~, 'xt'~, r.token)
from idem.reserve('shop'~, 'xt'~, mode => 'leased'~, policy => 'new'~) as r;
select attempt, recovery_point from idem.reserve('shop'~, 'xt'~, mode => 'leased'~, policy => 'new'~);
select outcome from idem.http_reserve('shop'~, 'xt'~, 'Get'~, '/'~, policy => 'new'~);
select outcome, status from idem.http_reserve('shop'~, 'y'~, 'Get'~, '/'~, policy => 'new'~);
select idem.once('shop'~, 'xo'~, policy => 'new'~), idem.once('shop'~, 'xo'~, policy => 'new'~);
select outcome from idem.once_many('shop'~, '{xo,xp}'~, policy => 'new'~);
select (idem.run('shop'~, 'xr'~, null, 'public.pay(jsonb)', '{}', 'new'~)).outcome from generate_series(1, 2);
select idem.forget('shop'~, 'h'~);
