begin;
select plan(4);

\ir ../refusal.psql
insert into idem.policies (name, key_pattern) values ('uuid', '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');

select is(
    (idem.reserve('shop', '8e03978e-40d5-43e8-bc93-6894a57f9324', policy => 'uuid')).outcome, 'started', 'it matches'
);
select is(
    pg_temp.refusal($$select idem.reserve('shop', '8E03978E-40D5-43E8-BC93-6894A57F9324', policy => 'uuid')$$),
    'IK001 pattern', 'it does not'
);
select is(
    pg_temp.refusal($$select idem.reserve('shop', E'8e03978e-40d5-43e8-bc93-6894a57f9324\n', policy => 'uuid')$$),
    'IK001 not_printable', 'a line feed is never allowed'
);
select is((idem.reserve('shop', 'anything')).outcome, 'started', 'other policies are not concerned');

select * from finish();
rollback;
