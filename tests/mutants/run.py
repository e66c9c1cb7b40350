"""Break the SQL on purpose, one line at a time, and see to it that a test notices: ``python -m tests.mutants.run``.

`mutations.toml` lists the mutations. Each is installed in place of the SQL as it is, on a server of its own, and only
the tests that are named to catch it are run: every one of them must fail. A mutation that none of its tests notices has
survived, which ends in exit status 1. When all have been run and caught, the table in tests/README.md is written anew.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.conftest import SQL_VARIABLE
from tests.support.database import ROOT

SQL = ROOT / "sql"
README = ROOT / "tests" / "README.md"
MUTATIONS = Path(__file__).with_name("mutations.toml")
BEGIN = "<!-- mutations: written by `make mutants` -->\n"
END = "<!-- end of mutations -->\n"

_SUITES = {
    "pgtap": "tests/test_pgtap.py::test_pgtap[{}.sql]",
    "isolation": "tests/test_isolation.py::test_isolation[{}]",
}


class BrokenMutationError(Exception):
    """A mutation that cannot be tried: its text is not in the SQL exactly once, or what it makes does not install."""


@dataclass(frozen=True)
class Mutation:
    """A fault to plant.

    ``text`` in ``file`` below sql/ becomes ``becomes``; ``breaks`` says what that takes away, ``guards`` the invariant
    it belongs to, ``caught_by`` the tests that notice.
    """

    name: str
    guards: str
    breaks: str
    file: str
    text: str
    becomes: str
    caught_by: tuple[str, ...]

    def plant(self, directory: Path) -> None:
        """Write sql/ with this fault in it to a directory."""
        shutil.copytree(SQL, directory)
        target = directory / self.file
        target.write_text(self.applied_to(target.read_text()))

    def applied_to(self, source: str) -> str:
        """Return the source with the fault in it."""
        if (times := source.count(self.text)) != 1:
            raise BrokenMutationError(f"{self.name}: its text occurs {times} times in sql/{self.file}, not once")
        return source.replace(self.text, self.becomes)


def mutations() -> list[Mutation]:
    """Return every mutation, in the order of the list."""
    entries = tomllib.loads(MUTATIONS.read_text())["mutation"]
    return [Mutation(**entry | {"caught_by": tuple(entry["caught_by"])}) for entry in entries]


def node_id(test: str) -> str:
    """Return pytest's name of a test: ``pgtap/FUNCTION/BEHAVIOUR``, ``isolation/SPEC``, or a file below tests/."""
    suite, _, rest = test.partition("/")
    return _SUITES[suite].format(rest) if suite in _SUITES else f"tests/{test}"


def failing(tests: Sequence[str], sql: Path) -> list[str]:
    """Run tests on the SQL in a directory and return those of which at least one case fails."""
    with tempfile.TemporaryDirectory(prefix="pyidem-mutants-") as scratch:
        report = Path(scratch) / "report.xml"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "90"),
                *("--junitxml", report, "--basetemp", Path(scratch) / "tmp"),
                *map(node_id, tests),
            ],
            cwd=ROOT,
            env=os.environ | {SQL_VARIABLE: str(sql)},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):
            raise BrokenMutationError(f"pytest ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
        cases = ET.parse(report).findall(".//testcase")
    if any(case.find("error") is not None for case in cases):
        raise BrokenMutationError(f"the tests could not be set up:\n{done.stdout}")
    nodes = [_node_of(case) for case in cases if case.find("failure") is not None]
    failed = {*nodes, *(node.partition("[")[0] for node in nodes)}
    return [test for test in tests if node_id(test) in failed]


def _node_of(case: ET.Element) -> str:
    """Return pytest's name of a case in a JUnit report."""
    return f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}"


def survives(mutation: Mutation) -> str | None:
    """Plant a mutation; return None if every one of its tests caught it, else what is wrong."""
    with tempfile.TemporaryDirectory(prefix="pyidem-mutants-") as scratch:
        directory = Path(scratch) / "sql"
        try:
            mutation.plant(directory)
            noticed = failing(mutation.caught_by, directory)
        except BrokenMutationError as error:
            return str(error)
    unaware = [test for test in mutation.caught_by if test not in noticed]
    return f"SURVIVED {', '.join(unaware)}" if unaware else None


def table(listed: Sequence[Mutation]) -> str:
    """Return the table for tests/README.md."""
    rows = [
        f"| `{mutation.name}` | {mutation.guards} | {mutation.breaks} | {', '.join(map(_shown, mutation.caught_by))} |"
        for mutation in listed
    ]
    return "\n".join(["| mutation | of | what it breaks | caught by |", "|---|---|---|---|", *rows, ""])


def with_table(page: str, listed: Sequence[Mutation]) -> str:
    """Return the page with the table between its markers."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{table(listed)}{END}{after}"


def _shown(test: str) -> str:
    """Shorten a test's name to what finds it."""
    return f"`{test.partition('::')[2] or test}`"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations that are named, or all; return the exit status."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Plant faults in the SQL; each must be caught.")
    parser.add_argument("names", nargs="*", help="only mutations whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="show the mutations and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    options = parser.parse_args(arguments)

    listed = mutations()
    chosen = [one for one in listed if not options.names or any(name in one.name for name in options.names)]
    if not chosen:
        parser.error(f"no mutation is named like {' or '.join(options.names)}; --list shows them")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name}: {mutation.breaks}")
        return 0

    tests = sorted({test for mutation in chosen for test in mutation.caught_by})
    print(f"{len(tests)} tests on the SQL as it is ...", flush=True)
    if broken := failing(tests, SQL):
        print(f"These fail without any mutation: {', '.join(broken)}", file=sys.stderr)
        return 1

    survivors = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for number, (mutation, problem) in enumerate(zip(chosen, pool.map(survives, chosen), strict=True), start=1):
            print(f"[{number}/{len(chosen)}] {mutation.name}: {problem or 'caught'}", flush=True)
            if problem:
                survivors.append(mutation.name)
    if survivors:
        print(f"{len(survivors)} of {len(chosen)} survived: {' '.join(survivors)}", file=sys.stderr)
        return 1
    print(f"All {len(chosen)} were caught.")
    if chosen == listed:
        README.write_text(with_table(README.read_text(), listed))
        print(f"The table in {README.relative_to(ROOT)} is current.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
