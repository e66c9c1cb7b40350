"""Break pyidem as a whole; the model and the history check have to notice: ``python -m tests.mutants.broken``.

`broken.toml` lists the builds. On the SQL as it is neither check may find anything; each broken build is searched by
both until one round has found something or all have passed, and what `broken.toml` says has to have caught it. When all
were run, the table in tests/README.md is written anew.
"""

import argparse
import re
import shutil
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from pyidem.embedded import Cluster
from tests.history.storm import SETTINGS, weather
from tests.model.machine import Stage
from tests.model.test_model import search
from tests.mutants.run import README, SQL, BrokenMutationError
from tests.support.database import OWNER, ROOT, Database, new_database
from tests.support.server import Server, find_server

BUILDS = Path(__file__).with_name("broken.toml")
BEGIN = "<!-- broken builds: written by `make broken` -->\n"
END = "<!-- end of broken builds -->\n"
NEWLINE = "\n"
LONGEST = 100
STORMS = 16
STORM_SECONDS = 15
SEARCHES = 12


@dataclass(frozen=True)
class Edit:
    """A place in sql/ where `text`, which occurs there once, becomes something else."""

    file: str
    text: str
    becomes: str

    def applied_to(self, source: str) -> str:
        """Return the source with the change."""
        if (times := source.count(self.text)) != 1:
            raise BrokenMutationError(f"the text {self.text!r} occurs {times} times in sql/{self.file}, not once")
        return source.replace(self.text, self.becomes)


@dataclass(frozen=True)
class Build:
    """pyidem with a fault in its design."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    caught_by: tuple[str, ...]

    def make(self, directory: Path) -> Path:
        """Write its sql/ to a directory that does not exist yet, and return that."""
        shutil.copytree(SQL, directory)
        for edit in self.edits:
            target = directory / edit.file
            target.write_text(edit.applied_to(target.read_text()))
        return directory


SOUND = Build("as it is", "nothing", (), ())


@dataclass
class Verdict:
    """What each check has found."""

    build: Build
    found: dict[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[str]:
        """The checks that have missed it, or that accuse what is sound."""
        if self.build is SOUND:
            return [name for name in CHECKS if name in self.found]
        return [name for name in self.build.caught_by if name not in self.found]


def builds() -> list[Build]:
    """Return every broken build."""
    return [
        Build(
            entry["name"],
            entry["breaks"],
            tuple(Edit(**edit) for edit in entry["edits"]),
            tuple(entry["caught_by"]),
        )
        for entry in tomllib.loads(BUILDS.read_text())["build"]
    ]


@contextmanager
def prepared(cluster: Cluster, sources: Path) -> Iterator[Database]:
    """A database with pyidem made of these sources."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
    with new_database(cluster) as database:
        database.psql(sources / "install.sql", user=OWNER)
        yield database


def by_the_model(installation: Server, sources: Path) -> str | None:
    """Let the model search, and return what it has found."""
    with Cluster(installation.bindir, settings=SETTINGS) as cluster, prepared(cluster, sources) as database:
        database.enable_testing()
        stage = Stage(database)
        for number in range(1, SEARCHES + 1):
            try:
                search(stage, number, 2, shrink=False)
            except Exception as error:  # noqa: BLE001 - whatever stops the search shows that something is wrong
                return f"after {stage.steps} steps: {difference(error)}"
    return None


def difference(error: Exception) -> str:
    """Return the first line of what was found, or where there is none the assertion that failed."""
    said = str(error).strip().partition(NEWLINE)[0]
    shown = said or str(traceback.extract_tb(error.__traceback__)[-1].line)
    shown = re.sub(r"^(\w+)\(\{.*\}\): ", r"\1: ", shown)  # the call's arguments, which are long
    return shown[:LONGEST].replace("|", "/")


def by_the_history_check(installation: Server, sources: Path) -> str | None:
    """Let clients have it, and return which promises were broken."""
    operations = 0
    for number in range(1, STORMS + 1):
        with tempfile.TemporaryDirectory(prefix="pyidem-history-") as directory:
            outcome = weather(
                installation.bindir, Path(directory), seconds=STORM_SECONDS, seed=f"broken-{number}", sources=sources
            )
        operations += outcome.figures["operations"]
        if outcome.violations:
            promises = Counter(violation.promise for violation in outcome.violations)
            named = ", ".join(f"{promise} ({count})" for promise, count in promises.items())
            return f"after {operations} operations: {named}"
    return None


CHECKS: dict[str, Callable[[Server, Path], str | None]] = {
    "model": by_the_model,
    "history": by_the_history_check,
}


def try_out(build: Build, installation: Server) -> Verdict:
    """Let both checks have a build."""
    verdict = Verdict(build)
    with tempfile.TemporaryDirectory(prefix="pyidem-broken-") as directory:
        sources = build.make(Path(directory) / "sql")
        for name, check in CHECKS.items():
            if found := check(installation, sources):
                verdict.found[name] = found
    return verdict


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the table for tests/README.md."""
    rows = [
        f"| `{verdict.build.name}` | {verdict.build.breaks} | {verdict.found.get('model', 'nothing')} |"
        f" {verdict.found.get('history', 'nothing')} |"
        for verdict in verdicts
    ]
    return "\n".join(
        ["| build | what is broken | the model finds | the history check finds |", "|---|---|---|---|", *rows, ""]
    )


def with_table(page: str, written: str) -> str:
    """Return the page with the table between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{written}{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the builds that are named, or all and the sound one; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="make broken", description="Break pyidem as a whole; both checks must notice."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only builds whose name contains it")
    options = parser.parse_args(arguments)
    listed = [SOUND, *builds()]
    chosen = [one for one in listed if not options.names or any(name in one.name for name in options.names)]
    if not chosen:
        parser.error(f"no build is named like {' or '.join(options.names)}")
    installation = find_server()
    if installation is None:
        sys.exit("there is no PostgreSQL server")

    verdicts = []
    for build in chosen:
        verdict = try_out(build, installation)
        verdicts.append(verdict)
        for name in CHECKS:
            print(f"{build.name}: {name}: {verdict.found.get(name, 'nothing')}", flush=True)
    wrong = [f"{verdict.build.name}: {name}" for verdict in verdicts for name in verdict.wrong]
    if wrong:
        print("\n".join(["Not as listed:", *wrong]), file=sys.stderr)
        return 1
    if chosen == listed:
        README.write_text(with_table(README.read_text(), table(verdicts)))
        print(f"The table in {README.relative_to(ROOT)} is current.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
