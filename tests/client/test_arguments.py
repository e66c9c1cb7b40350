"""Arguments of a wrong type are refused at once, the same way whatever the driver would have made of them."""

from datetime import timedelta
from typing import Any

import pytest

from tests.client.flavours import Client, OpenClient


@pytest.mark.parametrize("heartbeat", [5, 1, 0, None, "30 s"])
def test_a_heartbeat_is_a_bool_or_a_timedelta(client: Client, scope: str, heartbeat: Any) -> None:
    for mode in ("leased", "claim"):
        with pytest.raises(TypeError, match="heartbeat must be"):
            getattr(client.idem, mode)(scope, "k", heartbeat=heartbeat)
    assert client.lookup(scope, "k").outcome == "absent"


@pytest.mark.parametrize("heartbeat", [timedelta(0), timedelta(seconds=-1)])
def test_there_is_time_between_two_heartbeats(client: Client, scope: str, heartbeat: timedelta) -> None:
    with pytest.raises(ValueError, match="above zero"):
        client.idem.leased(scope, "k", heartbeat=heartbeat)


@pytest.mark.parametrize("flavour", ["sync-pool", "async-pool"])
def test_a_heartbeat_comes_before_the_lease_is_over(open_client: OpenClient, scope: str, flavour: str) -> None:
    client = open_client(flavour)
    lease = timedelta(seconds=30)
    for heartbeat in (lease, lease * 2):
        with pytest.raises(ValueError, match="shorter than the lease"):
            client.idem.leased(scope, "k", lease=lease, heartbeat=heartbeat)
        with pytest.raises(ValueError, match="shorter than the lease"):
            client.idem.claim(scope, "k", lease=lease, heartbeat=heartbeat)
    with client.leased(scope, "k", lease=lease, heartbeat=lease / 2) as op:
        op.complete()


@pytest.mark.parametrize("length", [30, 1.5, "30 s"])
def test_a_length_of_time_is_a_timedelta(client: Client, scope: str, length: Any) -> None:
    for argument in ("lease", "wait"):
        with pytest.raises(TypeError, match=f"{argument} must be a timedelta"):
            client.idem.leased(scope, "k", **{argument: length})
    with pytest.raises(TypeError, match="lease must be a timedelta"):
        client.idem.claim(scope, "k", lease=length, heartbeat=timedelta(seconds=5))


@pytest.mark.parametrize("fingerprint", ["3a7bd3e2", 5])
def test_a_fingerprint_is_bytes(client: Client, scope: str, fingerprint: Any) -> None:
    with pytest.raises(TypeError, match="fingerprint must be bytes"):
        client.idem.atomic(scope, "k", fingerprint=fingerprint)
