"""The connection of the commands that operate pyidem: they call its functions, read its views, and do nothing else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from pyidem._calls import Call
from pyidem.cli.common import describe, fail

T = TypeVar("T")
Connection = psycopg.Connection[dict[str, Any]]


@contextmanager
def connected(dsn: str, *, right: str = "grant_operator") -> Iterator[Connection]:
    """Open a connection in autocommit mode; errors of the database become a message and exit code 1.

    `right` is the function of `idem` that grants a role what the command needs.
    """
    with (
        explained(dsn, right=right),
        psycopg.connect(
            dsn, autocommit=True, fallback_application_name="pyidem", row_factory=dict_row, prepare_threshold=None
        ) as connection,
    ):
        yield connection


@contextmanager
def explained(dsn: str, *, right: str) -> Iterator[None]:
    """Turn errors of the database into a message that says what to do, and exit code 1."""
    try:
        yield
    except (errors.InvalidSchemaName, errors.UndefinedTable):
        fail(f"pyidem is not installed in database {_names(dsn)[1]}. Install it: pyidem upgrade")
    except (errors.UndefinedFunction, errors.UndefinedColumn) as error:
        fail(f"{describe(error)}\n  The database has another version of pyidem than this program: pyidem upgrade")
    except errors.InsufficientPrivilege as error:
        user, database = _names(dsn)
        grant = f"select idem.{right}('{user}');"
        fail(f"{describe(error)}\n  The owner of pyidem in {database} can grant it: {grant}")
    except psycopg.Error as error:
        fail(describe(error))


def call(connection: Connection, wanted: Call[T]) -> T:
    """Make one function call, in a transaction of its own."""
    return wanted.decode(connection.execute(wanted.sql.encode(), wanted.params).fetchall())


def read(connection: Connection, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Read a view."""
    return connection.execute(query.encode(), parameters).fetchall()


def _names(dsn: str) -> tuple[str, str]:
    """Return user and database as libpq takes them from the string and the environment."""
    given = {each.keyword.decode(): each.val.decode() for each in pq.Conninfo.get_defaults() if each.val}
    given |= {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    user = given.get("user", "?")
    return user, given.get("dbname", user)
