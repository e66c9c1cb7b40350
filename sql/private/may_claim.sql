create or replace function idem_private.may_claim(
    claims int, max_claims int, claim_after timestamptz, at timestamptz
) returns boolean
language sql immutable as $$
    select claims < max_claims and coalesce(claim_after <= at, true)
$$;

comment on function idem_private.may_claim(int, int, timestamptz, timestamptz) is
'Whether a lapsed key is for resolvers now: not put off, and not claimed so often that an operator has to decide.';

revoke all on function idem_private.may_claim(int, int, timestamptz, timestamptz) from public;
