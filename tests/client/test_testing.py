"""The fixtures for applications, in applications: one on pytest, one on Django."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.client.flavours import asyncpg_url
from tests.support.database import ROOT, Database, new_database

HERE = Path(__file__).parent


@pytest.fixture
def app_db(server: Cluster, template: str) -> Iterator[Database]:
    """A database of an application's own, in which testing is not enabled yet."""
    with new_database(server, template=template) as database:
        with psycopg.connect(database.dsn) as connection:
            connection.execute("create table orders (id int generated always as identity, name text)")
        yield database


def run(command: list[str], database: Database, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the application's tests from the checkout."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        **database.environment,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    return subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )


def pytest_command(folder: Path) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-W", "error", "-o", "asyncio_mode=auto"]
    options += ["-o", "asyncio_default_fixture_loop_scope=function"]
    return ["-m", "pytest", *options, "-c", os.devnull, "--rootdir", str(folder), str(folder)]


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_application_on_pytest_passes_and_leaves_nothing(app_db: Database, driver: str) -> None:
    url = asyncpg_url(app_db.dsn).set(drivername=f"postgresql+{driver}").render_as_string(hide_password=False)
    done = run(pytest_command(HERE / "sample_app"), app_db, APP_TEST_DSN=app_db.dsn, APP_TEST_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    with psycopg.connect(app_db.dsn) as connection:
        assert connection.execute("select key from idem.keys where key not like 'session %'").fetchall() == []
        assert connection.execute("select name from orders").fetchall() == []


def test_an_application_on_django_passes(app_db: Database) -> None:
    command = ["-W", "error", "-m", "django", "test", "--settings", "tests.client.sample_django.settings"]
    done = run([*command, "tests.client.sample_django.tests"], app_db)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 6 tests" in done.stderr


def test_without_a_database_the_fixture_says_what_to_define(tmp_path: Path, app_db: Database) -> None:
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['pyidem.testing']\n")
    (tmp_path / "test_app.py").write_text("def test_it(idem_connection): pass\n")
    done = run(pytest_command(tmp_path), app_db)
    assert done.returncode != 0
    assert "define a session fixture idem_dsn" in done.stdout


def test_only_the_owner_of_the_database_may_enable_testing(tmp_path: Path, app_db: Database) -> None:
    (tmp_path / "conftest.py").write_text(
        "import os, pytest\npytest_plugins = ['pyidem.testing']\n"
        "@pytest.fixture(scope='session')\ndef idem_dsn(): return os.environ['APP_TEST_DSN']\n"
    )
    (tmp_path / "test_app.py").write_text("def test_it(idem_connection): pass\n")
    role = app_db.create_role()
    with psycopg.connect(app_db.dsn) as connection:
        connection.execute(f"grant usage on schema idem to {role}".encode())
        connection.execute(f"grant execute on function idem.enable_testing() to {role}".encode())
    done = run(pytest_command(tmp_path), app_db, APP_TEST_DSN=app_db.dsn_of(role))
    assert done.returncode != 0
    assert "only the owner of the database may enable testing" in done.stdout
