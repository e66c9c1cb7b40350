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
    amount bigint not null check (amount > 0),
    method text not null check (method in ('credit', 'card', 'bank')),
    transfer text,
    made_at timestamptz not null default clock_timestamp()
);

create table quote (
    id bigint generated always as identity primary key,
    amount bigint not null,
    fee bigint not null
);

-- Work that is a write to this database runs in atomic mode, which leaves nothing behind when it is cut short.
insert into idem.policies (name, ttl, required) values ('store_credit', '7 days', true);

-- Work at the provider runs in leased mode. When its owner has fallen silent, the next attempt at a card refund takes
-- over: the provider honours the downstream key, so that asking it again does no harm. A bank transfer waits for a
-- sweeper instead, which finds out what has happened.
insert into idem.policies (name, ttl, required, on_lapse)
values ('card_refund', '7 days', true, 'retry'), ('bank_transfer', '7 days', true, 'hold');

-- A quote is good for two seconds. For a day after that, whoever asks for it again is told that it is over.
insert into idem.policies (name, ttl, lease, min_retention, tombstone, required)
values ('quote', '2 seconds', '1 second', '1 second', '1 day', true);
"""

PROVIDER: Final = """
create table transfer (
    id bigint generated always as identity primary key,
    idempotency_key text not null unique,
    order_no text not null,
    amount bigint not null check (amount > 0)
);

create table call (
    idempotency_key text not null,
    called_at timestamptz not null default clock_timestamp()
);
"""
