"""With CI=true nothing may be missing, so a skipped test fails; Citus alone is excused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.database import ROOT

SKIPS = {
    "a test": "import pytest\ndef test_one(): pytest.skip('no such part')\n",
    "a whole file": "import pytest\npytest.importorskip('no_such_module')\n",
    "a test without parameters": "import pytest\n@pytest.mark.parametrize('x', [])\ndef test_one(x): pass\n",
}
EXCUSED = {
    "citus": "import pytest\n@pytest.mark.citus\ndef test_one(): pytest.skip('no Citus')\n",
    "an expected failure": "import pytest\n@pytest.mark.xfail\ndef test_one(): assert False\n",
}


def run_pytest(directory: Path, test: str, ci: str) -> int:
    """Run one test file under our conftest; return pytest's exit status."""
    (directory / "test_it.py").write_text(test)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-c",
        ROOT / "pyproject.toml",
    ]
    done = subprocess.run(
        [*command, "--rootdir", directory, directory / "test_it.py"],
        cwd=ROOT,
        env=os.environ | {"CI": ci},
        check=False,
        capture_output=True,
    )
    return done.returncode


@pytest.mark.parametrize("test", SKIPS.values(), ids=SKIPS)
def test_a_skip_fails_in_ci(test: str, tmp_path: Path) -> None:
    assert run_pytest(tmp_path, test, ci="true") in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}


@pytest.mark.parametrize("test", EXCUSED.values(), ids=EXCUSED)
def test_what_is_excused_does_not_fail_in_ci(test: str, tmp_path: Path) -> None:
    assert run_pytest(tmp_path, test, ci="true") == pytest.ExitCode.OK


@pytest.mark.parametrize("test", [SKIPS["a test"]], ids=["a test"])
def test_a_skip_is_allowed_elsewhere(test: str, tmp_path: Path) -> None:
    assert run_pytest(tmp_path, test, ci="") == pytest.ExitCode.OK
