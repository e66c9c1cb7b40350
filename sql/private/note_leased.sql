create or replace function idem_private.note_leased(scope text, key text, renewed boolean) returns void
language plpgsql volatile as $$
#variable_conflict use_column
begin
    insert into idem_private.unfinished as u (scope, key)
    values (note_leased.scope, note_leased.key)
    on conflict (scope, key) do update set
        claims = case when note_leased.renewed then u.claims else 0 end,
        claim_after = case when note_leased.renewed then u.claim_after end,
        reason = case when note_leased.renewed then u.reason end;
    perform set_config(
        'idem_private.last_leased', jsonb_build_array(note_leased.scope, note_leased.key)::text, true
    );
end
$$;

comment on function idem_private.note_leased(text, text, boolean) is
'Lists a key as unfinished: the last write of a leased reserve (see idem_private.begin_leased).';

revoke all on function idem_private.note_leased(text, text, boolean) from public;
