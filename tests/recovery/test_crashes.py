"""The client is killed, or its backend terminated, before and during every statement of the leased protocol.

The statements are counted by a run that lives; nothing here knows which they are.
"""

from collections.abc import Iterator

import pytest

from tests.recovery.conftest import Scene
from tests.recovery.protocol import KILLED, PROTOCOLS, TERMINATED, WAYS, Death, one_step, sweep

STEPS = {"one_step": ["charge"], "two_steps": ["charge", "mail"]}


def deaths(statements: int) -> Iterator[Death]:
    for at in range(1, statements + 1):
        for what, when in WAYS:
            yield Death(at, what, when)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["one_step", "two_steps"])
def test_under_retry_the_next_attempt_brings_it_to_one_effect_and_one_booking(scene: Scene, protocol: str) -> None:
    attempt = PROTOCOLS[protocol]
    statements = scene.statements(attempt("whole", "again", knows_keys=True))
    orders = {str(death): death for death in deaths(statements)}
    for order, death in orders.items():
        scene.dies(protocol, death, order=order, policy="again", knows_keys=True)
    scene.let_leases_end()

    client = scene.client()
    outcomes = {order: client.run(attempt(order, "again", knows_keys=True)) for order in orders}
    assert set(outcomes.values()) == {"completed", "replay"}
    assert {client.run(attempt(order, "again", knows_keys=True)) for order in orders} == {"replay"}

    once = {(order, step): 1 for order in [*orders, "whole"] for step in STEPS[protocol]}
    assert scene.effects() == once
    assert scene.bookings() == once


@pytest.mark.slow
def test_under_retry_the_next_attempt_may_die_as_well(scene: Scene) -> None:
    statements = scene.statements(one_step("whole", "again", knows_keys=True))
    orders = {
        f"{first}, then {second}": (Death(first, KILLED), Death(second, TERMINATED))
        for first in range(1, statements + 1)
        for second in range(1, statements + 1)
    }
    for order, (first, _) in orders.items():
        scene.dies("one_step", first, order=order, policy="again", knows_keys=True)
    scene.let_leases_end()
    for order, (_, second) in orders.items():
        scene.dies("one_step", second, order=order, policy="again", knows_keys=True)
    scene.let_leases_end()

    client = scene.client()
    assert {client.run(one_step(order, "again", knows_keys=True)) for order in orders} == {"completed"}
    once = {(order, "charge"): 1 for order in [*orders, "whole"]}
    assert scene.effects() == once
    assert scene.bookings() == once


@pytest.mark.slow
def test_under_hold_nothing_is_done_twice_and_whatever_is_unknown_is_listed(scene: Scene) -> None:
    """The provider knows no keys, so any second call of it would show; so would a resolver's mistake."""
    statements = scene.statements(one_step("whole", "ask", knows_keys=False))
    orders = {str(death): death for death in deaths(statements)}
    for order, death in orders.items():
        scene.dies("one_step", death, order=order, policy="ask", knows_keys=False)
    scene.let_leases_end()

    client = scene.client()
    outcomes = {order: client.run(one_step(order, "ask", knows_keys=False)) for order in orders}
    unknown = {order for order, outcome in outcomes.items() if outcome == "unresolved"}
    assert set(outcomes.values()) <= {"completed", "replay", "unresolved"}
    assert scene.keys("unfinished and outcome = 'lapsed'") == unknown
    charged = {order for order, _ in scene.effects()}
    booked = {order for order, _ in scene.bookings()}
    assert booked <= charged
    assert charged - booked <= unknown
    assert set(orders) - unknown <= booked
    assert set(scene.effects().values()) == {1}

    # resolvers ask the provider, and die at every statement as well
    assert len(unknown) > len(WAYS)
    for death in deaths(scene.statements(sweep("ask"))):
        scene.dies("sweep", death, policy="ask")
        scene.let_leases_end()
    client = scene.client()
    assert set(iter(lambda: client.run(sweep("ask")), "nothing")) == {"completed", "released"}

    assert scene.keys("unfinished") == set()
    assert set(scene.effects().values()) == {1}
    assert {client.run(one_step(order, "ask", knows_keys=False)) for order in orders} == {"completed", "replay"}
    once = {(order, "charge"): 1 for order in [*orders, "whole"]}
    assert scene.effects() == once
    assert scene.bookings() == once
