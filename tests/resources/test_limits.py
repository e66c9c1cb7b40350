"""Where the server has no room left the error says so, nothing is lost that was promised, and it goes on afterwards."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.conftest import SETTINGS, SETTINGS_OF_PARTS
from tests.support.calls import complete, lookup, once_many, reserve, set_policy
from tests.support.database import OWNER, ROOT, Database
from tests.support.server import Server

PLAIN = {name: value for name, value in SETTINGS.items() if name not in SETTINGS_OF_PARTS}
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def confined(installation: Server) -> Iterator[Cluster]:
    """A server of its own with a small lock table."""
    with Cluster(
        installation.bindir, settings=PLAIN | {"max_connections": "10", "max_locks_per_transaction": "10"}
    ) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
        yield cluster


@pytest.fixture(scope="module")
def confined_db(confined: Cluster) -> Iterator[Database]:
    with psycopg.connect(confined.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create database confined owner {}").format(sql.Identifier(OWNER)))
    with ExitStack() as cleanup:
        database = Database(confined, "confined", cleanup)
        database.psql(ROOT / "sql" / "install.sql", user=OWNER)
        yield database


def answer_of(database: Database, key: str) -> tuple[str, bytes | None]:
    with psycopg.connect(database.dsn) as connection:
        row = reserve(connection, key)
        connection.rollback()
        return row.outcome, row.body


def store(database: Database, key: str, body: bytes) -> None:
    with psycopg.connect(database.dsn) as connection:
        token = reserve(connection, key).token
        complete(connection, key, token, status=201, body=body)


def store_until_it_is_full(database: Database) -> tuple[dict[str, bytes], str, psycopg.Error]:
    """What was stored, and the key and the error of the first that was not."""
    random, stored = Random(1), {}
    for number in range(200):
        key, body = str(uuid4()), random.randbytes(MEGABYTE // 2)
        try:
            store(database, key, body)
        except psycopg.Error as error:
            return stored, key, error
        stored[key] = body
        assert number < 199, "there was room for everything"
    raise AssertionError


def expect_nothing_lost(database: Database, room: Callable[[], None], codes: set[str], words: str) -> None:
    """Fill it up, see that all is as it should be, make room, and see that it goes on."""
    with psycopg.connect(database.dsn) as owner:
        first = reserve(owner, f"leased {words}", mode="leased", lease="1 hour").token
    stored, refused, error = store_until_it_is_full(database)
    assert stored
    assert error.sqlstate in codes, error
    assert words in str(error)
    for key, body in stored.items():
        assert answer_of(database, key) == ("replay", body)
    with psycopg.connect(database.dsn) as connection:
        assert lookup(connection, refused).outcome == "absent"
        assert lookup(connection, f"leased {words}").outcome == "in_progress"
    too_much = Random(2).randbytes(20 * MEGABYTE)
    with psycopg.connect(database.dsn) as owner, pytest.raises(psycopg.Error) as refusal:
        complete(owner, f"leased {words}", first, status=201, body=too_much)
    assert refusal.value.sqlstate in codes

    room()
    store(database, refused, b"after all")
    assert answer_of(database, refused) == ("replay", b"after all")
    with psycopg.connect(database.dsn) as owner:
        assert complete(owner, f"leased {words}", first, status=201)
    for key, body in stored.items():
        assert answer_of(database, key) == ("replay", body)


def test_files_that_may_not_grow_refuse_new_answers_and_lose_none(confined: Cluster, confined_db: Database) -> None:
    """A limit on the size of files, which every system has, in place of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # just above a segment of the log, which is written at its full length
    resource.setrlimit(resource.RLIMIT_FSIZE, (17 * MEGABYTE, hard))
    try:
        confined.restart()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    expect_nothing_lost(confined_db, confined.restart, {"53100", "58030", "54000", "XX000"}, "could not extend file")


def test_a_batch_that_finds_the_lock_table_full_is_refused_and_marks_nothing(confined_db: Database) -> None:
    keys = [str(number) for number in range(20_000)]
    with psycopg.connect(confined_db.dsn, autocommit=True) as admin:
        set_policy(admin, "messages", max_batch=len(keys))
    with psycopg.connect(confined_db.dsn) as consumer:
        assert once_many(consumer, keys[:3]) == [(key, "first") for key in keys[:3]]
        consumer.commit()
        with pytest.raises(psycopg.errors.OutOfMemory, match="out of shared memory") as refusal:
            once_many(consumer, keys)
        assert "max_locks_per_transaction" in (refusal.value.diag.message_hint or "")
        consumer.rollback()
        assert once_many(consumer, keys[:5]) == [
            *[(key, "duplicate") for key in keys[:3]],
            *[(key, "first") for key in keys[3:5]],
        ]
        consumer.commit()
    with psycopg.connect(confined_db.dsn) as connection:
        assert connection.execute("select count(*) from idem.keys where policy = 'messages'").fetchone() == (5,)


def may_mount() -> bool:
    """Whether this user may have a file system of his own: root, where the system lets it."""
    with TemporaryDirectory(prefix="pyidem-") as probe:  # its own: workers collect tests side by side
        mounted = mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", probe)
        if mounted:
            subprocess.run(["umount", probe], check=True)
    return mounted


def mount(*arguments: str) -> bool:
    return shutil.which("mount") is not None and (
        subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode == 0
    )


@contextmanager
def read_only(cluster: Cluster, directory: Path) -> Iterator[None]:
    """The server finds the file system read-only when it starts, as after an error of the disk."""
    for option in ("ro", "rw"):
        cluster._end_process("fast")
        assert mount("-o", f"remount,{option}", str(directory))
        cluster._launch()
        if option == "ro":
            yield


# Only root may mount; the tests above need nobody's leave.
if may_mount():

    @pytest.fixture
    def small_disk(confined: Cluster) -> Iterator[Path]:
        """A file system of 8 MB, for a tablespace."""
        directory = confined.directory / "small"
        directory.mkdir()
        assert mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(directory))
        try:
            tablespace = directory / "tablespace"
            tablespace.mkdir()
            owner = (confined.directory / "data").stat()
            os.chown(tablespace, owner.st_uid, owner.st_gid)
            yield tablespace
        finally:
            confined.restart()
            subprocess.run(["umount", "-l", directory], check=True)
            directory.rmdir()

    @pytest.fixture
    def db_on_small_disk(confined_db: Database, small_disk: Path) -> Iterator[Database]:
        with psycopg.connect(confined_db.dsn, autocommit=True) as admin:
            admin.execute("truncate idem_private.reservation, idem_private.unfinished")
            admin.execute(sql.SQL("create tablespace small location {}").format(str(small_disk)))
            admin.execute("alter table idem_private.reservation set tablespace small")
        yield confined_db
        with psycopg.connect(confined_db.dsn, autocommit=True) as admin:
            admin.execute("alter table idem_private.reservation set tablespace pg_default")
            admin.execute("drop tablespace small")

    def test_a_full_disk_refuses_new_answers_and_loses_none(db_on_small_disk: Database, small_disk: Path) -> None:
        def room() -> None:
            assert mount("-o", "remount,size=64m", str(small_disk.parent))

        expect_nothing_lost(db_on_small_disk, room, {"53100"}, "No space left on device")

    def test_a_read_only_file_system_is_named_and_nothing_is_lost(
        confined: Cluster, db_on_small_disk: Database, small_disk: Path
    ) -> None:
        store(db_on_small_disk, "before", b"kept")
        with (
            read_only(confined, small_disk.parent),
            psycopg.connect(db_on_small_disk.dsn) as connection,
            pytest.raises(psycopg.Error, match="Read-only file system"),
        ):
            reserve(connection, "meanwhile")
        assert answer_of(db_on_small_disk, "before") == ("replay", b"kept")
        assert answer_of(db_on_small_disk, "meanwhile") == ("started", None)
