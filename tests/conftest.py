"""The throwaway server and the databases on it.

Each pytest worker has a server of its own, so that its log and its roles are its own too. ``db`` is a fresh database,
``testing_db`` one whose clock can be moved, ``tx`` a connection to a shared one whose changes are rolled back.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.support.database import OWNER, ROOT, TEMPLATE, Database, new_database
from tests.support.server import Server, find_server, is_plain, missing_parts
from tests.support.waiting import Background

SETTINGS = {
    # the data is thrown away
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_prepared_transactions": "20",
    "deadlock_timeout": "200ms",
    "track_functions": "pl",
    "compute_query_id": "on",
    # a test reads the log to see what was an error and in which database
    "log_line_prefix": "%m [%p] %d %a %e ",
    "log_min_messages": "warning",
    "log_error_verbosity": "default",
    "log_lock_waits": "on",
    # the launcher keeps a session in its database, which must therefore be no template and no test's own
    "shared_preload_libraries": "pg_cron,plpgsql_check",
    "cron.database_name": "postgres",
    "cron.use_background_workers": "on",
    "max_worker_processes": "20",
}
SETTINGS_OF_PARTS = {"shared_preload_libraries", "cron.database_name", "cron.use_background_workers"}


@pytest.fixture(scope="session")
def installation() -> Server:
    """The installed server that the tests run on."""
    installation = find_server()
    missing = missing_parts(installation)
    if installation is None or missing:
        pytest.exit(f"missing for the tests: {', '.join(missing)}; `make test` installs them or says how", 3)
    return installation


@pytest.fixture(scope="session")
def server(installation: Server) -> Iterator[Cluster]:
    """A running throwaway server with pg_cron and plpgsql_check loaded, unless it is a plain one."""
    settings = {name: value for name, value in SETTINGS.items() if not (is_plain() and name in SETTINGS_OF_PARTS)}
    with Cluster(installation.bindir, settings=settings) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
        yield cluster


@pytest.fixture(scope="session")
def sources(request: pytest.FixtureRequest) -> Path:
    """The directory that pyidem is installed from: sql/, or what tests/mutants has made of it."""
    directory: Path = getattr(request, "param", ROOT / "sql")
    return directory


@pytest.fixture(scope="session")
def template(server: Cluster, sources: Path) -> Iterator[str]:
    """The name of a template database in which OWNER has installed pyidem, as a reader of the README does."""
    with new_database(server, TEMPLATE, as_template=True) as database:
        database.psql(sources / "install.sql", user=OWNER)
        yield database.name


@pytest.fixture
def empty_db(server: Cluster) -> Iterator[Database]:
    """A fresh database without pyidem."""
    with new_database(server) as database:
        yield database


@pytest.fixture
def db(server: Cluster, template: str) -> Iterator[Database]:
    """A fresh database with pyidem installed."""
    with new_database(server, template=template) as database:
        yield database


@pytest.fixture
def testing_db(db: Database) -> Database:
    """A fresh database in which testing is enabled: see `advance_clock`."""
    db.enable_testing()
    return db


@pytest.fixture(scope="session")
def shared_db(server: Cluster, template: str) -> Iterator[Database]:
    """A database with testing enabled that all tests of a worker share: leave nothing in it."""
    with new_database(server, template=template) as database:
        database.enable_testing()
        yield database


@pytest.fixture
def tx(shared_db: Database) -> Iterator[psycopg.Connection]:
    """A connection whose transaction is rolled back after the test; much cheaper than `db`."""
    with psycopg.connect(shared_db.dsn) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def server_log(server: Cluster) -> Callable[[], str]:
    """A function that returns what the server has logged since the test began."""
    before = len(server.log())
    return lambda: server.log()[before:]


@pytest.fixture
def in_thread() -> Iterator[Callable[[Callable[[], Any]], Background[Any]]]:
    """Start a call in a thread of its own; the test fails if one is still running at its end."""
    started: list[Background[Any]] = []

    def start(call: Callable[[], Any]) -> Background[Any]:
        started.append(Background(call))
        return started[-1]

    yield start
    assert all(background.done() for background in started), "a thread of this test is still running"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be missing, with CI=true, a skip is a failure."""
    report = yield
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("citus") is not None
    if report.skipped and not expected:
        _fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole file that is skipped is no better."""
    report = yield
    if report.skipped:
        _fail_in_ci(report)
    return report


def _fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure with CI=true: {report.longrepr}"
