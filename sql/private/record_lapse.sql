-- Nobody is there when a lease ends, so whoever acts on the lapsed row writes it down. An owner that gave up has done
-- so itself.
create or replace function idem_private.record_lapse(held idem_private.reservation) returns void
language sql volatile as $$
    insert into idem_private.event (scope, key, life, at, event, attempt)
    select held.scope, held.key, held.created_at, idem_private.lapsed_at(held), 'lapsed', held.attempt
    where not exists (
        select from idem_private.event as e
        where e.scope = held.scope and e.key = held.key and e.life = held.created_at
            and e.event in ('lapsed', 'deferred') and e.at >= idem_private.lapsed_at(held)
    )
$$;

comment on function idem_private.record_lapse(idem_private.reservation) is
'Notes when the row of a lapsed key that the caller holds locked lapsed, unless that has been noted.';

revoke all on function idem_private.record_lapse(idem_private.reservation) from public;
