"""A shop with pyidem, a provider in another database, and clients that die."""

from collections.abc import Iterator

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.recovery.protocol import PROVIDER, SHOP, Client, Death, Protocol
from tests.recovery.worker import Workers
from tests.support.database import Database, new_database
from tests.support.waiting import wait_until


class Scene:
    """Both databases, and who works on them."""

    def __init__(self, shop: Database, provider: Database, workers: Workers) -> None:
        self.shop = shop
        self._provider = provider
        self._workers = workers
        self._minutes = 0
        self._clients: list[Client] = []
        self.shop_now = shop.connect(autocommit=True)
        self.provider_now = provider.connect(autocommit=True)
        self.shop_now.execute(SHOP.encode())
        self.provider_now.execute(PROVIDER.encode())

    @property
    def clock(self) -> str:
        """By how much all clients' sessions are ahead."""
        return f"{self._minutes} minutes"

    def dies(self, protocol: str, death: Death, **arguments: object) -> None:
        """Run a protocol until its death."""
        told = self._workers.run(
            protocol, death, shop=self.shop.dsn, provider=self._provider.dsn, clock=self.clock, **arguments
        )
        assert told in ("killed", "lost"), f"{death}: {told}"

    def statements(self, protocol: Protocol) -> int:
        """Run a protocol to its end and return how many statements it has sent."""
        client = self.client()
        client.run(protocol)
        return client.statements

    def client(self) -> Client:
        """A client that lives, in this process."""
        self._clients.append(Client(self.shop.dsn, self._provider.dsn, clock=self.clock))
        return self._clients[-1]

    def close(self) -> None:
        """Close the connections of clients that live."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def let_leases_end(self) -> None:
        """Wait until nothing of the dead is left, and move the clock on."""
        self.close()

        def alone() -> bool:
            left = self.shop_now.execute("select pid from pg_stat_activity where application_name = 'worker'")
            return left.rowcount == 0

        wait_until(alone, "the sessions of the dead to end")
        self._minutes += 2
        self.shop_now.execute("select set_config('idem.clock_offset', %s, false)", [self.clock])

    def effects(self) -> dict[tuple[str, str], int]:
        """How often the provider has done each step of each order."""
        return _counted(self.provider_now, "select order_id, step, count(*) from effect group by 1, 2")

    def bookings(self) -> dict[tuple[str, str], int]:
        """How often the shop has booked each step of each order."""
        return _counted(self.shop_now, "select order_id, step, count(*) from booking group by 1, 2")

    def keys(self, condition: str) -> set[str]:
        """The keys that an operator finds so."""
        found = self.shop_now.execute(f"select key from idem.keys where {condition}".encode()).fetchall()
        return {key for (key,) in found}


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with Workers() as workers:
        yield workers


@pytest.fixture
def scene(testing_db: Database, server: Cluster, workers: Workers) -> Iterator[Scene]:
    with new_database(server) as provider:
        scene = Scene(testing_db, provider, workers)
        yield scene
        scene.close()


def _counted(connection: psycopg.Connection, query: str) -> dict[tuple[str, str], int]:
    return {(order, step): count for order, step, count in connection.execute(query.encode()).fetchall()}
