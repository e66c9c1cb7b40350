"""Print what `pyidem doctor` says of databases that are not well: ``python -m tests.doctor.show``.

Each is made on throwaway servers, put wrong in one way, and looked at as its owner would, with `pyidem doctor`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
from psycopg import sql

from pyidem.embedded import Cluster
from tests.cli.support import pyidem
from tests.conftest import SETTINGS
from tests.support.database import OWNER, ROOT, Database, new_database
from tests.support.server import Server, find_server
from tests.support.standby import Standby

Change = Callable[[Database, psycopg.Connection], None]


def execute(*statements: str) -> Change:
    """Return what runs statements as the superuser."""

    def change(_: Database, admin: psycopg.Connection) -> None:
        for statement in statements:
            admin.execute(statement.encode())

    return change


HEALTHY = ["select idem.purge()"]
WRONG: dict[str, Change] = {
    "healthy": execute(*HEALTHY),
    "no pg_cron, and nothing else purges": execute(),
    "a function edited by hand": execute(
        *HEALTHY,
        "create or replace function idem.version() returns text language sql immutable security definer"
        " set search_path = pg_catalog, pg_temp as $$ select '0.1.0'::text /* mine */ $$",
    ),
    "EXECUTE revoked": execute(*HEALTHY, "revoke execute on function idem.reserve from app"),
    "an upgrade is missing": execute(
        *HEALTHY,
        "create or replace function idem.version() returns text language sql immutable security definer"
        " set search_path = pg_catalog, pg_temp as $$ select '0.0.9'::text $$",
        "update idem_private.alembic_version set version_num = 'idem_0000'",
        "do $$ begin perform idem_private.record_objects(); end $$",
    ),
    "testing enabled": execute(*HEALTHY, "select idem.enable_testing()"),
}


def main() -> None:
    """Show all eight."""
    installation = find_server()
    if installation is None:
        raise SystemExit("no PostgreSQL server found: run `make test` once, which installs one or says how")
    with ExitStack() as cleanup:
        server = cleanup.enter_context(Cluster(installation.bindir, settings={**SETTINGS, "fsync": "on"}))
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), server.password))
            admin.execute("create role app login")
        for title, change in WRONG.items():
            with new_database(server) as database:
                database.psql(ROOT / "sql" / "install.sql", user=OWNER)
                with psycopg.connect(database.dsn, autocommit=True) as admin:
                    admin.execute("select idem.grant_client('app')")
                    change(database, admin)
                show(title, database)
                with psycopg.connect(database.dsn, autocommit=True) as admin:
                    admin.execute("drop owned by app")
        with cron_database(server) as database:
            show("the role of the cron job was dropped", database)
        with new_database(server) as database:
            database.psql(ROOT / "sql" / "install.sql", user=OWNER)
            show_standby(database, installation)


def show(title: str, database: Database) -> None:
    """Print what the doctor says, as a reader sees it."""
    done = pyidem(database, "doctor")
    print(f"=== {title} (exit code {done.returncode})\n$ pyidem doctor\n{done.stdout}{done.stderr}", flush=True)


@contextmanager
def cron_database(server: Cluster) -> Iterator[Database]:
    """The database of pg_cron, whose job was made by an owner who has handed all over and gone."""
    with ExitStack() as cleanup:
        database = Database(server, "postgres", cleanup)
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            admin.execute("create extension pg_cron; create role former login")
            for role in ("former", OWNER):
                admin.execute(
                    f"grant create on database postgres to {role}; grant usage on schema cron to {role}".encode()
                )
            admin.execute(f"alter role former password '{server.password}'".encode())
            database.psql(ROOT / "sql" / "install.sql", user="former")
            with psycopg.connect(database.dsn_of("former"), autocommit=True) as former:
                former.execute("select idem.schedule()")
            admin.execute(f"reassign owned by former to {OWNER}; drop owned by former; drop role former".encode())
            yield database


def show_standby(database: Database, installation: Server) -> None:
    """Show what a standby of the server says."""
    settings = {**SETTINGS, "fsync": "on"}
    with Standby(installation.bindir, database.cluster, settings) as standby, ExitStack() as cleanup:
        show("a read-only standby", Database(standby, database.name, cleanup))


if __name__ == "__main__":
    main()
