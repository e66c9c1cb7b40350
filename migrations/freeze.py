"""Copy sql/ into the frozen text that migrations run, or into one plain file for other migration tools."""

import hashlib
import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from alembic.script import ScriptDirectory

from pyidem import __version__

MIGRATIONS = Path(__file__).resolve().parent
SQL = MIGRATIONS.parent / "sql"
FROZEN = MIGRATIONS / "frozen"
CHECKSUMS = MIGRATIONS / "CHECKSUMS"

# Run around the revisions, not by them: by env.py and by Alembic.
NOT_FROZEN = {"preamble.sql", "stamp.sql"}

HEADER = "-- Made from sql/ by `make freeze`; do not edit.\n"
DOLLAR_QUOTED = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
CREATED = re.compile(
    r"^create (?:or replace |constraint |unique )*(?P<kind>\w+) (?P<name>[\w.]+)(?P<rest>[^;]*);",
    re.MULTILINE | re.DOTALL,
)

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.command()
def freeze(
    *, check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when something is stale.")] = False
) -> None:
    """Write sql/ into the frozen text of the newest revision, and the checksums of all."""
    stale = [path for path, text in generated().items() if not path.exists() or path.read_text("ascii") != text]
    if check:
        for path in stale:
            print(f"{path.relative_to(MIGRATIONS.parent)} is stale: run `make freeze`", file=sys.stderr)
        raise typer.Exit(1 if stale else 0)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[path], "ascii", newline="\n")
        print(f"wrote {path.relative_to(MIGRATIONS.parent)}")


@app.command("sql")
def build(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("dist") / f"pyidem-{__version__}.sql",
) -> None:
    """Build one plain SQL file without psql commands: the whole installation as one transaction."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(single_file(), "ascii", newline="\n")
    print(f"wrote {path}")


def generated() -> dict[Path, str]:
    """Return every generated file with the text that it should have."""
    revision = FROZEN / str(ScriptDirectory(str(MIGRATIONS)).get_current_head())
    frozen = {path: path.read_text("ascii") for path in FROZEN.glob("*/*.sql")}
    frozen |= {revision / "up.sql": up(), revision / "down.sql": down()}
    sums = (
        f"{hashlib.sha256(text.encode()).hexdigest()}  {path.relative_to(MIGRATIONS)}\n"
        for path, text in sorted(frozen.items())
    )
    return {**frozen, CHECKSUMS: "".join(sums)}


def up() -> str:
    """Return the text that builds everything but the version table and its schema."""
    return HEADER + "".join(section(name) for name in manifest() if name not in NOT_FROZEN)


def down() -> str:
    """Return the drops of what `up` creates, in reverse; without CASCADE, so that objects of others stop it."""
    drops: list[str] = []
    for name in manifest():
        if name not in NOT_FROZEN:
            drops += [drop(match) for match in CREATED.finditer(DOLLAR_QUOTED.sub("''", source(name)))]
    return HEADER + "\n" + "".join(reversed(drops))


def drop(created: re.Match[str]) -> str:
    """Return the statement that undoes one CREATE; functions are not overloaded and need no argument list."""
    match created["kind"]:
        case "index":
            return ""  # goes with its table
        case "trigger" | "policy" | "rule":
            table = re.search(r"\s(?:on|to) (\w+\.\w+)", created["rest"])
            assert table, created[0]
            return f"drop {created['kind']} {created['name']} on {table[1]};\n"
        case kind:
            return f"drop {kind} {created['name']};\n"


def single_file() -> str:
    """Return install.sql with its files in place and without psql commands."""
    text = (SQL / "install.sql").read_text("ascii")
    text = text[text.index("\nbegin;\n") :]
    text = re.sub(r"^\\ir (\S+)\n", lambda line: section(line[1]), text, flags=re.MULTILINE)
    return f"-- pyidem {__version__}: the whole installation as one transaction, for any tool that runs SQL.\n{text}"


def manifest() -> list[str]:
    """Return the files that install.sql includes, in load order."""
    return re.findall(r"^\\ir (\S+)$", (SQL / "install.sql").read_text("ascii"), re.MULTILINE)


def section(name: str) -> str:
    """Return one file under a heading."""
    return f"\n-- sql/{name}\n{source(name)}"


def source(name: str) -> str:
    """Return one file of sql/, or exit saying what cannot be frozen in it."""
    text = (SQL / name).read_bytes().decode("utf-8")
    for pattern, complaint in (
        (r"[^\x00-\x7f]", "a character outside ASCII"),
        (r"[\t\r]", "a tab or carriage return"),
        (r"^\\", "a psql command"),
        (r"[^\n]\Z|;\s+\n\Z", "no single newline at its end"),
        (r"[^;\n]\n\Z", "no semicolon at its end"),
    ):
        if found := re.search(pattern, text, re.MULTILINE if complaint == "a psql command" else 0):
            line = text.count("\n", 0, found.start()) + 1
            raise SystemExit(f"sql/{name}:{line}: {complaint}")
    return text


if __name__ == "__main__":
    app()
