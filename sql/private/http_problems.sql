-- The one place that says what an outcome is over HTTP, in both dialects.
create or replace function idem_private.http_problems(profile text)
returns table (outcome text, status int, code text, title text, detail text, stripe_type text)
language sql immutable as $$
    select
        p.outcome,
        case when profile = 'stripe' then p.stripe_status else p.status end,
        case when profile = 'stripe' then coalesce(p.stripe_code, p.code) else p.code end,
        p.title,
        p.detail,
        p.stripe_type
    from (
        values
        (
            'missing', 400, 400, 'idempotency_key_missing', null, 'invalid_request_error',
            'Idempotency key missing',
            'This operation needs an Idempotency-Key header: one key for each operation, the same on every attempt.'
        ),
        (
            'invalid', 400, 400, 'idempotency_key_invalid', null, 'invalid_request_error',
            'Idempotency key invalid',
            'The Idempotency-Key header is one string, quoted or bare, that this resource accepts as a key.'
        ),
        (
            'mismatch', 422, 400, 'idempotency_key_reused', null, 'idempotency_error',
            'Idempotency key reused',
            'This key belongs to another request. An attempt repeats the request exactly; another operation, or a'
            ' corrected request, takes a new key.'
        ),
        (
            'in_progress', 409, 409, 'idempotency_request_in_progress', 'idempotency_key_in_use', 'idempotency_error',
            'Request in progress',
            'Another attempt with this key is at work. Try again later, with the same key.'
        ),
        (
            'unresolved', 409, 409, 'idempotency_outcome_unknown', null, 'idempotency_error',
            'Outcome unknown',
            'An earlier attempt with this key stopped half-way, and what it did is not known yet. Try again later, with'
            ' the same key; a new key could do it twice.'
        ),
        (
            'expired', 410, 410, 'idempotency_key_expired', null, 'idempotency_error',
            'Idempotency key expired',
            'This key was used too long ago, and its answer is gone. A new operation takes a new key.'
        )
    ) as p (outcome, status, stripe_status, code, stripe_code, stripe_type, title, detail)
$$;

comment on function idem_private.http_problems(text) is
'Status, code and texts of every outcome that is answered by a problem, in the dialect of a profile.';

revoke all on function idem_private.http_problems(text) from public;
