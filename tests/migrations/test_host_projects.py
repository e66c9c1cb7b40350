"""Every way to install, as a project of somebody else's goes it: on disk, with its own tool, by the commands that the
page on migrations shows."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pyidem import migrate
from pyidem.embedded import Cluster
from tests.docs.blocks import MIGRATIONS, fences
from tests.migrations.support import catalog, is_installed
from tests.support.calls import complete, lookup, reserve
from tests.support.database import OWNER, ROOT, Database, new_database

HOSTS = Path(__file__).parent / "hosts"


@dataclass(frozen=True)
class Project:
    """A directory in which commands are typed, with the database of libpq's variables."""

    directory: Path
    database: Database
    user: str = OWNER

    def run(self, block: str, **variables: str) -> str:
        """Type the commands of one block of the page, each of which must succeed; return what they print."""
        return self.type("\n".join(typed(block)), **variables)

    def type(self, commands: str, *, fails: bool = False, **variables: str) -> str:
        """Type commands; return what they print, errors included."""
        programs = [str(self.database.cluster.bindir), str(Path(sys.executable).parent), os.environ["PATH"]]
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            check=False,
            cwd=self.directory,
            env=self.environment | {"PATH": os.pathsep.join(programs)} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode != 0) == fails, f"{commands}\n{done.stdout}"
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        unset = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYIDEM", "PYTHON"))}
        return unset | self.database.environment | {"PGUSER": self.user, "COLUMNS": "200", "NO_COLOR": "1"}

    def write(self, name: str, *, below: str = "") -> None:
        """Write the file that the page shows under this name."""
        (found,) = [each.text for each in fences(MIGRATIONS, "python") if each.options == (name,)]
        (self.directory / below / name).write_text(found)


def typed(block: str) -> list[str]:
    """Return the commands of a block of the page."""
    (found,) = [each.text for each in fences(MIGRATIONS, "sh") if each.options == (block,)]
    return found.splitlines()


def project(kind: str, database: Database, tmp_path: Path) -> Project:
    shutil.copytree(HOSTS / kind, tmp_path / kind, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(tmp_path / kind, database)


def query(database: Database, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database.dsn) as connection:
        return connection.execute(statement.encode()).fetchall()


@pytest.fixture
def checkout(empty_db: Database, tmp_path: Path) -> Project:
    """A directory with the folder sql/, as in a checkout."""
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    return Project(tmp_path, empty_db)


@pytest.mark.parametrize(("way", "removal"), [("psql", "uninstall"), ("pyidem", "downgrade")])
def test_by_hand_with_rights_and_the_doctor_until_it_is_removed(way: str, removal: str, checkout: Project) -> None:
    database = checkout.database
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("create role app login password {}").format(database.cluster.password))
    try:
        checkout.run(way)
        assert is_installed(database)
        # on a server whose data is thrown away, and that nothing purges
        checked = checkout.type("\n".join(typed("after")), fails=True)
        failing = {line.split()[0] for line in checked.splitlines() if " FAILS " in line}
        assert failing == {"purge_job", "durability"}
        with psycopg.connect(database.dsn_of("app")) as app:
            assert lookup(app, "k").outcome == "absent"
        checkout.run(removal)
        assert query(database, "select to_regnamespace('idem') is null") == [(True,)]
    finally:
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            admin.execute("drop owned by app; drop role app")


# Alembic


@pytest.fixture
def shop(empty_db: Database, tmp_path: Path) -> Project:
    """A project with Alembic, whose first revision is applied."""
    project_ = project("alembic", empty_db, tmp_path)
    with psycopg.connect(empty_db.dsn, autocommit=True) as admin:
        admin.execute(f"grant create on schema public to {OWNER}".encode())
    project_.type("alembic upgrade head")
    return project_


def assert_nothing_is_proposed(shop: Project) -> None:
    """Let autogenerate write a revision, which must be empty."""
    said = shop.type("alembic revision --autogenerate -m proposed")
    (written,) = (shop.directory / "migrations" / "versions").glob("*_proposed.py")
    assert written.read_text().count("    pass\n") == 2, written.read_text()
    assert "warning" not in said.lower()
    written.unlink()


def test_pyidem_beside_alembic(shop: Project, db: Database) -> None:
    shop.run("pyidem")
    shop.run("alembic")
    assert catalog(shop.database) == catalog(db)
    assert query(shop.database, "select version_num from public.alembic_version") == [("0001",)]

    assert_nothing_is_proposed(shop)
    shop.type("alembic check", SHOP_SCHEMAS="default")
    # what the filter is for
    assert "remove_table" in shop.type("alembic check", SHOP_SCHEMAS="unfiltered", fails=True)


def test_pyidem_as_a_revision_of_alembic_and_one_that_calls_it(shop: Project, db: Database) -> None:
    for name in ("versions/0002_pyidem.py", "versions/0003_provider.py"):
        shop.write(name, below="migrations")
    shop.run("alembic")
    assert catalog(shop.database) == catalog(db)
    assert query(shop.database, "select version_num from public.alembic_version") == [("0003",)]
    assert query(shop.database, "select on_lapse from idem.policies where name = 'provider'") == [("retry",)]
    assert_nothing_is_proposed(shop)
    assert migrate.upgrade(shop.database.dsn_of(OWNER)) == []

    shop.type("alembic downgrade 0001")
    assert query(shop.database, "select to_regnamespace('idem') is null") == [(True,)]
    shop.type("alembic upgrade head")
    assert catalog(shop.database) == catalog(db)


# Django


def test_django(empty_db: Database, db: Database, tmp_path: Path) -> None:
    host = project("django", empty_db, tmp_path)
    with psycopg.connect(empty_db.dsn, autocommit=True) as admin:
        admin.execute(f"grant create on schema public to {OWNER}".encode())
    host.run("django-files")
    host.write("shop/migrations/0002_pyidem.py")
    host.run("django")
    assert catalog(empty_db) == catalog(db)
    assert is_installed(empty_db)
    assert migrate.upgrade(empty_db.dsn_of(OWNER)) == []

    host.type("python manage.py migrate shop 0001")
    assert query(empty_db, "select to_regnamespace('idem') is null") == [(True,)]
    host.type("python manage.py migrate")
    assert catalog(empty_db) == catalog(db)


# Files


def test_files_that_psql_runs_one_after_the_other(empty_db: Database, db: Database, tmp_path: Path) -> None:
    host = project("files", empty_db, tmp_path)
    with psycopg.connect(empty_db.dsn, autocommit=True) as admin:
        admin.execute(f"grant create on schema public to {OWNER}".encode())
    making, running = typed("files")
    assert running.endswith("-f migrations/V2__pyidem.sql")
    assert running.removesuffix("migrations/V2__pyidem.sql") in (host.directory / "migrate.sh").read_text()
    host.type(making)
    said = host.type("sh migrate.sh")
    assert said.splitlines() == [
        f"migrated V{number}" for number in ("1__orders.sql", "2__pyidem.sql", "3__provider.sql")
    ]
    assert catalog(empty_db) == catalog(db)
    assert host.type("sh migrate.sh") == ""


# Dumps


@pytest.fixture
def used(db: Database) -> Database:
    """A database with keys in several states, a grant and a binding."""
    role = db.create_role("app")
    with psycopg.connect(db.dsn_of(OWNER), autocommit=True) as owner:
        owner.execute("select idem.grant_client(%s), idem.bind_scope(%s, 'shop')", [role, role])
        owner.execute("insert into idem.policies (name, on_lapse) values ('provider', 'retry')")
    with psycopg.connect(db.dsn_of(role), autocommit=True) as app:
        with app.transaction():
            complete(app, "done", reserve(app, "done", fingerprint=b"f").token, status=201, body=b"\x00")
        reserve(app, "alive", mode="leased", lease="1 hour")
        reserve(app, "lost", mode="leased", lease="1 millisecond", policy="provider")
    return db


@pytest.fixture
def copy(server: Cluster) -> Iterator[Database]:
    """An empty database to restore into."""
    with new_database(server) as database:
        yield database


def role_of(database: Database) -> str:
    with psycopg.connect(database.dsn) as connection:
        (row,) = connection.execute("select role::text from idem_private.access").fetchall()
    return str(row[0])


def downstream_key(database: Database) -> list[tuple[object, ...]]:
    return query(database, "select idem.downstream_key('shop', 'done')")


def doctor(host: Project, copy: Database) -> dict[str, dict[str, object]]:
    """Type what the page says to do after a restore, and return the checks that fail."""
    *commands, last = typed("restored")
    host.type("\n".join(commands), COPY=copy.name)
    done = host.type(f"{last} --json", COPY=copy.name, fails=True)
    return {check["check_name"]: check for check in json.loads(done)["checks"] if check["ok"] is False}


def test_a_restored_dump_goes_on_as_the_original_would(used: Database, copy: Database, tmp_path: Path) -> None:
    host = Project(tmp_path, used, used.cluster.user)
    host.run("restore", COPY=copy.name)

    assert catalog(copy) == catalog(used)
    assert downstream_key(copy) == downstream_key(used)
    failing = doctor(Project(tmp_path, used), copy)
    assert set(failing) == {"purge_job", "durability"}
    with psycopg.connect(copy.dsn_of(role_of(copy)), autocommit=True) as app:
        assert reserve(app, "done", fingerprint=b"f").body == b"\x00"
        assert reserve(app, "done", fingerprint=b"g").outcome == "mismatch"
        assert lookup(app, "alive").outcome == "in_progress"
        taken = reserve(app, "lost", mode="leased", policy="provider")
        assert (taken.outcome, taken.attempt) == ("started", 2)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            lookup(app, "done", scope="elsewhere")


@pytest.fixture
def restorer(used: Database, copy: Database) -> Iterator[str]:
    """A role that owns the copy, and does not own the original."""
    role = used.create_role("restorer")
    with psycopg.connect(copy.dsn, autocommit=True) as admin:
        admin.execute(f"alter database {copy.name} owner to {role}".encode())
        yield role
        admin.execute(f"alter database {copy.name} owner to {OWNER}".encode())
        admin.execute(f"drop owned by {role}".encode())


def test_another_role_can_restore_it_and_go_on_as_its_owner(
    restorer: str, used: Database, copy: Database, tmp_path: Path
) -> None:
    dump, restore = typed("restore-no-owner")
    Project(tmp_path, used, used.cluster.user).type(dump)
    host = Project(tmp_path, used, restorer)
    host.type(restore, COPY=copy.name)

    assert query(copy, "select nspowner::regrole::text from pg_namespace where nspname = 'idem'") == [(restorer,)]
    assert set(doctor(host, copy)) == {"purge_job", "durability"}
    with psycopg.connect(copy.dsn_of(role_of(copy)), autocommit=True) as app:
        assert reserve(app, "done", fingerprint=b"f").body == b"\x00"


def test_without_privileges_everybody_could_call_and_the_page_says_what_helps(
    restorer: str, used: Database, copy: Database, tmp_path: Path
) -> None:
    dump, restore = typed("restore-no-owner")
    Project(tmp_path, used, used.cluster.user).type(dump)
    host = Project(tmp_path, used, restorer)
    host.type(restore.replace("--no-owner", "--no-owner --no-privileges"), COPY=copy.name)

    failing = doctor(host, copy)
    assert set(failing) == {"drift", "grants", "purge_job", "durability"}
    host.run("restored-without-privileges", COPY=copy.name)
    with psycopg.connect(copy.dsn_of(restorer), autocommit=True) as owner:
        owner.execute(str(failing["grants"]["fix"]).encode())
        left = owner.execute("select check_name from idem.health() where not ok").fetchall()
    assert set(left) == {("purge_job",), ("durability",)}
