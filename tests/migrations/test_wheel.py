"""The built wheel is whole: it brings sql/ and migrations/ and installs from them."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from pyidem import migrate
from tests.migrations.support import catalog, is_installed, owner_dsn, program
from tests.support.database import ROOT, Database

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `pyidem` command of an environment into which the wheel was installed.

    Its dependencies are those of this environment: their folder is put on the path, where the editable pyidem is not.
    """
    folder = tmp_path_factory.mktemp("with space") / "venv"
    venv.create(folder, with_pip=False)
    purelib = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--quiet", "--no-deps", str(wheel)]
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "pyidem"


def test_the_wheel_has_the_very_files_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    files = [
        path
        for folder in (migrate.resource("sql"), migrate.resource("migrations"))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]

    assert files
    for path in files:
        assert packed.get(f"pyidem/{path.relative_to(ROOT).as_posix()}") == path.read_bytes(), path


def test_it_installs_and_prints_from_its_own_files(installed: Path, empty_db: Database, db: Database) -> None:
    where = "from pyidem import migrate; print(migrate.resource('sql'), migrate.resource('migrations'))"
    assert program(installed.with_name("python"), "-P", "-c", where).stdout.count(str(installed.parents[1])) == 2

    upgraded = program(installed, "upgrade", "--dsn", owner_dsn(empty_db))
    assert upgraded.returncode == 0, upgraded.stderr
    assert is_installed(empty_db)
    assert catalog(empty_db) == catalog(db)
    assert program(installed, "sql").stdout == migrate.sql()
