"""A later version of pyidem, for tests: a copy of the checkout with a second revision, made as a developer makes one.

It changes a body, adds an argument with a default to a public function and to a helper that a view uses, adds a column
last in a table and to a view, and adds and removes files.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.migrations.support import Done, cli_environment
from tests.support.database import ROOT

FIRST, SECOND = "idem_0001", "idem_0002"

UP_BY_HAND = "alter table idem_private.reservation add column added text;\n"
DOWN_BY_HAND = "alter table idem_private.reservation drop column added;\n"

NEW_TABLE = "create table idem_private.added (name text primary key);\n"
NEW_FUNCTION = """\
create or replace function idem.added() returns setof idem_private.added
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select * from idem_private.added
$$;

comment on function idem.added() is 'New in the second revision.';

revoke all on function idem.added() from public;
"""


@dataclass(frozen=True)
class Checkout:
    """A directory with pyidem/, sql/ and migrations/."""

    root: Path

    @property
    def sql(self) -> Path:
        return self.root / "sql"

    @property
    def migrations(self) -> Path:
        return self.root / "migrations"

    def frozen(self, revision: str, file: str) -> str:
        return (self.migrations / "frozen" / revision / file).read_text("ascii")

    def pyidem(self, *arguments: str) -> Done:
        """Run this version's command line."""
        return self._python("-m", "pyidem", *arguments)

    def freeze(self, *arguments: str) -> Done:
        """Run this version's migrations/freeze.py."""
        return self._python("migrations/freeze.py", *arguments)

    def must_freeze(self, *arguments: str) -> None:
        """Run migrations/freeze.py; it must succeed."""
        done = self.freeze(*arguments)
        assert done.returncode == 0, done.stderr

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start this version's command line."""
        return subprocess.Popen(
            [sys.executable, "-m", "pyidem", *arguments],
            cwd=self.root,
            env=self._environment | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def edit(self, name: str, pattern: str, replacement: str) -> None:
        """Replace what a pattern finds in a file of sql/; it must find something."""
        path = self.sql / name
        text, found = re.subn(pattern, replacement, path.read_text("ascii"))
        assert found, f"{pattern} is not in sql/{name}"
        path.write_text(text, "ascii")

    def release(self, revision: str) -> None:
        """Mark a revision as released."""
        with (self.migrations / "RELEASED").open("a") as file:
            file.write(f"{revision}\n")

    def write_by_hand(self, revision: str, file: str, statements: str) -> None:
        """Put statements where a revision's text leaves room for them, after what stands there."""
        path = self.migrations / "frozen" / revision / file
        end = "-- End of what is by hand.\n"
        text = path.read_text("ascii")
        assert text.count(end) == 1
        path.write_text(text.replace(end, statements + end), "ascii")

    @property
    def _environment(self) -> dict[str, str]:
        return cli_environment() | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}

    def _python(self, *arguments: str) -> Done:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def copy_of_this_version(directory: Path, *, of: Path = ROOT) -> Checkout:
    """Copy what a revision is made from and run by."""
    for name in ("pyidem", "sql", "migrations"):
        shutil.copytree(of / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Checkout(directory)


def edit_sql(checkout: Checkout) -> None:
    """Make the changes that the second revision carries."""
    checkout.edit("operation/version.sql", r"select '[^']+'", "select 'next'")

    checkout.edit("core/reserve.sql", r"(policy text default 'default')\n\)", r"\1,\n    added text default null\n)")
    checkout.edit("core/reserve.sql", r"(on function idem\.reserve\([^)]+)\)", r"\1, text)")

    checkout.edit("private/real_expiry.sql", r"(min_retention interval)\n\)", r"\1, added text default null\n)")
    checkout.edit("private/real_expiry.sql", r"(on function idem_private\.real_expiry\([^)]+)\)", r"\1, text)")

    checkout.edit("tables/reservation.sql", r"(body bytea,\n)", r"\1    added text,\n")
    checkout.edit("views/keys.sql", r"(u\.reason)\nfrom", r"\1,\n    r.added\nfrom")

    (checkout.sql / "tables" / "added.sql").write_text(NEW_TABLE)
    (checkout.sql / "core" / "added.sql").write_text(NEW_FUNCTION)
    checkout.edit("install.sql", r"(\\ir tables/object\.sql\n)", r"\1\\ir tables/added.sql\n")
    checkout.edit("install.sql", r"(\\ir core/lookup\.sql\n)", r"\1\\ir core/added.sql\n")

    checkout.edit("private/rights.sql", r"(\(values\n)", r"\1        ('idem.added', 'execute', 'client, operator'),\n")

    (checkout.sql / "operation" / "disable_testing.sql").unlink()
    checkout.edit("install.sql", r"\\ir operation/disable_testing\.sql\n", "")


def next_version(directory: Path) -> Checkout:
    """Make the later version: release the first revision, edit sql/, begin the second, write what is by hand."""
    checkout = copy_of_this_version(directory)
    checkout.must_freeze("freeze")
    checkout.release(FIRST)
    edit_sql(checkout)
    checkout.must_freeze("revision", "-m", "A revision for tests")
    checkout.write_by_hand(SECOND, "up.sql", UP_BY_HAND)
    checkout.write_by_hand(SECOND, "down.sql", DOWN_BY_HAND)
    checkout.must_freeze("freeze")
    return checkout
