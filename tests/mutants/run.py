"""Break the SQL on purpose, one line at a time, and see to it that a test notices: ``python -m tests.mutants.run``.

`mutations.toml` lists the mutations. The tests that are named to catch them are run once on the SQL as it is, where
they must pass, and once on each mutation that they are named for, where every one must fail. A mutation that one of its
tests does not notice has survived, which ends in exit status 1. When all were run and caught, the table in
tests/README.md is written anew.
"""

import argparse
import io
import shutil
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SQL = ROOT / "sql"
README = ROOT / "tests" / "README.md"
MUTATIONS = Path(__file__).with_name("mutations.toml")
BEGIN = "<!-- mutations: written by `make mutants` -->\n"
END = "<!-- end of mutations -->\n"

_UNCHANGED = "unchanged"
_SUITES = {
    "pgtap": "tests/test_pgtap.py::test_pgtap[{}.sql]",
    "isolation": "tests/test_isolation.py::test_isolation[{}]",
}


class BrokenMutationError(Exception):
    """A mutation that cannot be tried: its text is not in the SQL exactly once."""


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


class Trial:
    """A pytest plugin that runs tests on the SQL as it is, and on each mutation those that are to catch it.

    Attributes:
        survivors: the names of the mutations that were not caught.
        tried: how many mutations have been done with.
    """

    def __init__(self, chosen: Sequence[Mutation], directory: Path) -> None:
        self.survivors: list[str] = []
        self.tried = 0
        self._out = sys.stdout
        self._chosen = {mutation.name: mutation for mutation in chosen}
        self._sources = {_UNCHANGED: SQL} | {name: directory / name for name in self._chosen}
        self._wanted = {mutation.name: {node_id(test) for test in mutation.caught_by} for mutation in chosen}
        self._wanted[_UNCHANGED] = set().union(*self._wanted.values())
        self._runs: dict[str, _Run] = {}
        self._pending: Counter[str] = Counter()
        self._failed: defaultdict[str, set[str]] = defaultdict(set)
        self._not_set_up: set[str] = set()
        self._session: pytest.Session | None = None
        for mutation in chosen:
            mutation.plant(self._sources[mutation.name])

    def run(self) -> None:
        """Run them all, printing each verdict."""
        functions = sorted({_function(node) for node in self._wanted[_UNCHANGED]})
        output = io.StringIO()
        with redirect_stdout(output):
            options = ["-s", "-q", "--tb=short", "--timeout=90", "-p", "no:xdist", "-p", "no:cacheprovider"]
            pytest.main([*options, *functions], [self])
        if self.tried < len(self._chosen):
            print(output.getvalue(), file=sys.stderr)

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test once for each SQL that it is wanted on; the fixture `sources` is where that lies."""
        function = metafunc.definition.nodeid
        names = [name for name in self._sources if function in map(_function, self._wanted[name])]
        if not names:
            return
        directories = [self._sources[name] for name in names]
        metafunc.parametrize("sources", directories, ids=names, indirect=True, scope="session")

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Keep what is on the list: not every file of pgTAP is wanted on every mutation."""
        self._session = session
        runs = {item.nodeid: self._run_of(item) for item in items}
        self._runs = {node: run for node, run in runs.items() if run.tests & self._wanted[run.name]}
        items[:] = [item for item in items if item.nodeid in self._runs]
        self._pending.update(self._runs[item.nodeid].name for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has failed, and say so when all tests of a mutation have been run."""
        name, tests = self._runs[report.nodeid]
        if report.failed and report.when == "setup":
            self._not_set_up.add(name)
        elif report.failed:
            self._failed[name] |= tests
        if report.when == "teardown":
            self._pending[name] -= 1
            if self._pending[name] == 0:
                self._conclude(name)

    def _run_of(self, item: pytest.Item) -> "_Run":
        assert isinstance(item, pytest.Function)
        name = next(name for name, directory in self._sources.items() if directory == item.callspec.params["sources"])
        # what was added here comes last
        test = item.nodeid.removesuffix(f"{name}]")
        test = test.removesuffix("[") if test.endswith("[") else f"{test.removesuffix('-')}]"
        return _Run(name, frozenset({test, _function(test)}))

    def _conclude(self, name: str) -> None:
        if name == _UNCHANGED:
            if self._session and (self._failed[name] or name in self._not_set_up):
                self._session.shouldstop = "The SQL as it is does not pass."
            return
        missed = [test for test in self._chosen[name].caught_by if node_id(test) not in self._failed[name]]
        self.tried += 1
        verdict = "caught"
        if missed or name in self._not_set_up:
            self.survivors.append(name)
            verdict = "NOT INSTALLED" if name in self._not_set_up else f"SURVIVED {', '.join(missed)}"
        print(f"[{self.tried}/{len(self._chosen)}] {name}: {verdict}", file=self._out, flush=True)


class _Run(NamedTuple):
    """A test on one SQL: the name of that, and the test's own, with its parameters and without them."""

    name: str
    tests: frozenset[str]


def _function(node: str) -> str:
    """Return the name of a test without its parameters."""
    return node.partition("[")[0]


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
    parser.add_argument("names", nargs="*", metavar="NAME", help="only mutations whose name contains it")
    parser.add_argument("--list", action="store_true", help="show the mutations and run nothing")
    options = parser.parse_args(arguments)

    listed = mutations()
    chosen = [one for one in listed if not options.names or any(name in one.name for name in options.names)]
    if not chosen:
        parser.error(f"no mutation is named like {' or '.join(options.names)}; --list shows them")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.name}: {mutation.breaks}")
        return 0

    with tempfile.TemporaryDirectory(prefix="pyidem-mutants-") as directory:
        try:
            trial = Trial(chosen, Path(directory))
        except BrokenMutationError as error:
            sys.exit(str(error))
        trial.run()
    if trial.tried < len(chosen):
        print("pytest ended early; its output is above.", file=sys.stderr)
        return 1
    if trial.survivors:
        print(f"{len(trial.survivors)} of {len(chosen)} survived: {' '.join(trial.survivors)}", file=sys.stderr)
        return 1
    print(f"All {len(chosen)} were caught.")
    if chosen == listed:
        README.write_text(with_table(README.read_text(), listed))
        print(f"The table in {README.relative_to(ROOT)} is current.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
