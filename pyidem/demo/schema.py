"""The tables of the shop and of its payment provider, each in a database of its own.

Neither the refunds nor the transfers have a constraint that forbids a second one for the same order: what keeps them
single is the idempotency key alone.
"""

from typing import Final

SERVICE_ROLE: Final = "refund_service"

SHOP: Final = """
create table refund (
    id bigint generated always as identity primary key,
    order_no text not null,
    cents bigint not null check (cents > 0),
    method text not null check (method in ('credit', 'card')),
    transfer text,
    made_at timestamptz not null default clock_timestamp()
);

-- Work that is a write to this database runs in atomic mode, which leaves nothing behind when it is cut short.
insert into idem.policies (name, ttl) values ('store_credit', '7 days');

-- Work at the provider runs in leased mode. When its owner falls silent for a second, the next attempt takes over: the
-- provider honours the downstream key, so that asking it again does no harm. A real lease would be longer.
insert into idem.policies (name, ttl, lease, on_lapse) values ('card_refund', '7 days', '1 second', 'retry');
"""

PROVIDER: Final = """
create table transfer (
    id bigint generated always as identity primary key,
    idempotency_key text not null unique,
    order_no text not null,
    cents bigint not null check (cents > 0)
);

create table call (
    idempotency_key text not null,
    called_at timestamptz not null default clock_timestamp()
);
"""
