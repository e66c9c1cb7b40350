create or replace view idem.policies as
select
    p.name,
    p.ttl,
    p.lease,
    p.on_lapse,
    p.max_attempts,
    p.max_claims,
    p.retry_after,
    p.min_retention,
    p.tombstone,
    p.required,
    p.methods,
    p.key_min_length,
    p.key_max_length,
    p.key_pattern,
    p.release_statuses,
    p.drop_headers,
    p.max_body_bytes,
    p.max_batch,
    p.ignore,
    p.include,
    p.profile,
    p.problem_type_base,
    p.replay_header
from idem_private.policy as p;

comment on view idem.policies is
'Named settings. Insert, update and delete here; a change takes effect at the next call. What does not make sense is refused with 22023.';
