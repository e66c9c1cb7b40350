"""Login roles, as an administrator makes them and the owner grants them."""

from collections.abc import Callable

import psycopg
import pytest

from tests.support.database import Database

GRANTS = ["client", "resolver", "monitor", "operator"]

Login = Callable[..., psycopg.Connection]


@pytest.fixture
def login(db: Database) -> Login:
    """Make a role with a grant, bound to these scopes, and connect as it."""

    def connect(grant: str = "client", *prefixes: str) -> psycopg.Connection:
        role = db.create_role(grant)
        with db.connect(user=db.owner, autocommit=True) as owner:
            owner.execute(f"select idem.grant_{grant}(%s)".encode(), [role])
            for prefix in prefixes:
                owner.execute("select idem.bind_scope(%s, %s)", [role, prefix])
        return db.connect(user=role, autocommit=True)

    return connect


@pytest.fixture
def admin(db: Database) -> psycopg.Connection:
    """The superuser."""
    return db.connect(autocommit=True)
