"""Databases and sessions that are set up as others are: other isolation, other language, other encoding, a pooler."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyidem.embedded import Cluster
from tests.support.database import OWNER, ROOT, Database, new_database
from tests.support.pgbouncer import pgbouncer


@dataclass(frozen=True)
class Surroundings:
    """What is different: settings of the database, its encoding, that of the client, a PgBouncer in between."""

    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    encoding: str = "UTF8"
    client_encoding: str | None = None
    pooled: bool = False


GERMAN = "de_DE.UTF-8"
SURROUNDINGS = {
    "pgbouncer": Surroundings(pooled=True),
    "repeatable read": Surroundings({"default_transaction_isolation": "repeatable read"}),
    "serializable": Surroundings({"default_transaction_isolation": "serializable"}),
    "serializable behind pgbouncer": Surroundings({"default_transaction_isolation": "serializable"}, pooled=True),
    "summer time": Surroundings({"timezone": "Europe/Berlin"}),
    "client in latin 1": Surroundings(client_encoding="LATIN1"),
    "database in latin 1": Surroundings(encoding="LATIN1"),
    # the setting is for the connections of the tests themselves, which would be given bytes
    "database in sql_ascii": Surroundings({"client_encoding": "UTF8"}, encoding="SQL_ASCII", client_encoding="UTF8"),
    "german messages": Surroundings({"lc_messages": GERMAN}),
}


@contextmanager
def surrounded(server: Cluster, template: str, around: Surroundings) -> Iterator[Database]:
    """A fresh database with pyidem in it, in these surroundings."""
    with ExitStack() as stack:
        if around.encoding == "UTF8":
            database = stack.enter_context(new_database(server, template=template))
        else:
            database = stack.enter_context(encoded(server, around.encoding))
            database.psql(ROOT / "sql" / "install.sql", user=OWNER)
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            for name, value in around.settings.items():
                admin.execute(
                    sql.SQL("alter database {} set {} to {}").format(
                        sql.Identifier(database.name), sql.Identifier(name), value
                    )
                )
        yield database


@contextmanager
def entrance(database: Database, around: Surroundings) -> Iterator[str]:
    """The connection string that an application there has."""
    with ExitStack() as stack:
        dsn = database.dsn
        if around.pooled:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyidem-pooler-"))
            dsn = stack.enter_context(pgbouncer(dsn, Path(directory), connections=4))
        if around.client_encoding is not None:
            dsn = make_conninfo(dsn, client_encoding=around.client_encoding)
        yield dsn


@contextmanager
def encoded(server: Cluster, encoding: str) -> Iterator[Database]:
    """An empty database in another encoding."""
    name = f"in_{encoding.lower()}_{os.getpid()}"
    with psycopg.connect(server.dsn(), autocommit=True) as admin, ExitStack() as cleanup:
        admin.execute(
            sql.SQL("create database {} encoding {} locale 'C' template template0 owner {}").format(
                sql.Identifier(name), sql.Literal(encoding), sql.Identifier(OWNER)
            )
        )
        cleanup.callback(admin.execute, sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        yield Database(server, name, cleanup)


def has_german_messages(server_major: int) -> bool:
    """Tell whether they are installed: the server's translations, and what the locale is made of (package locales)."""
    translated = Path(f"/usr/share/locale/de/LC_MESSAGES/postgres-{server_major}.mo")
    return translated.exists() and Path("/usr/share/i18n/locales/de_DE").exists()


@contextmanager
def german_locale() -> Iterator[None]:
    """While it is entered a server can be started that knows the locale, which is made for it alone."""
    with tempfile.TemporaryDirectory(prefix="pyidem-locale-") as directory:
        Path(directory).chmod(0o755)
        made = Path(directory) / GERMAN
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", made], check=True, capture_output=True)
        before = os.environ.get("LOCPATH")
        os.environ["LOCPATH"] = directory
        try:
            yield
        finally:
            del os.environ["LOCPATH"]
            if before is not None:
                os.environ["LOCPATH"] = before
