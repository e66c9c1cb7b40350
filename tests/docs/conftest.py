"""The shop that the examples speak of."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.support.database import OWNER, Database

_TABLES = """
create table orders (id int generated always as identity primary key, amount numeric not null);
create table refunds (id text primary key);
grant select, insert on orders, refunds to app;
"""


@pytest.fixture
def shop(testing_db: Database) -> Iterator[Database]:
    """A database with the tables of the examples and the role app, which is a client of pyidem."""
    with psycopg.connect(testing_db.dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("create role app login password {}").format(testing_db.cluster.password))
        try:
            admin.execute(_TABLES)
            with psycopg.connect(testing_db.dsn_of(OWNER), autocommit=True) as owner:
                owner.execute("select idem.grant_client('app')")
            yield testing_db
        finally:
            admin.execute("drop owned by app; drop role app")
