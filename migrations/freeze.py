"""Copy sql/ into the frozen text that migrations run, or into one plain file for other migration tools."""

import hashlib
import re
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from alembic.script import ScriptDirectory

from migrations.step import LAST, Tree, by_hand, part, removal, section, sections, step, to_do
from pyidem import __version__

MIGRATIONS = Path(__file__).resolve().parent
SQL = MIGRATIONS.parent / "sql"
FROZEN = MIGRATIONS / "frozen"
CHECKSUMS = MIGRATIONS / "CHECKSUMS"
RELEASED = MIGRATIONS / "RELEASED"

# Run around the revisions, not by them: by env.py and by Alembic.
NOT_FROZEN = {"preamble.sql", "stamp.sql"}

HEADER = "-- Made from sql/ by `make freeze`; do not edit.\n"
HEADER_OF_STEP = "-- Made from sql/ by `make freeze`; edit only what is marked as by hand.\n"
HEADER_OF_ALL = "-- All of sql/ at this revision, by `make freeze`: what the next one is compared with. Never run.\n"

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.command()
def freeze(
    *, check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when something is stale.")] = False
) -> None:
    """Write sql/ into the frozen text of the newest revision, and the checksums of all."""
    complaints = broken_promises()
    texts = generated()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("ascii") != text]
    if check:
        complaints += [f"{shown(path)} is stale: run `make freeze`" for path in stale]
    if complaints:
        fail("\n".join(complaints))
    if not check:
        for path in stale:
            write(path, texts[path])


@app.command()
def revision(message: Annotated[str, typer.Option("--message", "-m", help="What it changes, in a few words.")]) -> None:
    """Begin a revision that leads from the newest one, which must be released, to what is in sql/."""
    message = message.strip().rstrip(".")
    previous = head()
    if not message:
        fail('say what the revision changes: make revision m="..."')
    if previous not in released():
        fail(f"{previous} is not released yet: `make freeze` writes it anew from sql/")
    before, now = frozen_tree(previous), tree()
    if before == now:
        fail(f"sql/ is what {previous} froze: there is nothing to revise")

    name = f"{previous[:-4]}{int(previous[-4:]) + 1:04}"
    script = ScriptDirectory(str(MIGRATIONS), file_template="%(rev)s").generate_revision(name, message, head=previous)
    assert script is not None
    print(f"wrote {shown(Path(script.path))}")
    stamp = SQL / "stamp.sql"
    write(stamp, stamp.read_text("ascii").replace(f"'{previous}'", f"'{name}'"))
    for file, text in steps(before, now, up_by_hand=to_do(before, now), down_by_hand=to_do(now, before)).items():
        write(FROZEN / name / file, text)
    write(CHECKSUMS, checksums(frozen_files()))
    print(f"Now write what is marked as by hand in up.sql and down.sql of {name}, then run `make freeze test`.")


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
    newest = head()
    frozen = frozen_files()
    if newest not in released():
        frozen |= {FROZEN / newest / file: text for file, text in texts_of(newest).items()}
    return {**frozen, CHECKSUMS: checksums(frozen)}


def texts_of(name: str) -> dict[str, str]:
    """Return the files of the newest revision: made from sql/, but for what was written into them by hand."""
    previous = scripts().get_revision(name).down_revision
    if previous is None:
        return first(tree())
    assert isinstance(previous, str)
    kept = {file: by_hand((FROZEN / name / file).read_text("ascii")) for file in ("up.sql", "down.sql")}
    return steps(frozen_tree(previous), tree(), up_by_hand=kept["up.sql"], down_by_hand=kept["down.sql"])


def first(now: Tree) -> dict[str, str]:
    """Return the files of a revision that builds everything but the version table and its schema."""
    return {"up.sql": whole(HEADER, now) + last(), "down.sql": f"{HEADER}\n{part('unschedule')}\n{removal(now)}"}


def steps(before: Tree, now: Tree, *, up_by_hand: str, down_by_hand: str) -> dict[str, str]:
    """Return the files of a revision that leads from one state of sql/ to another."""
    return {
        "up.sql": HEADER_OF_STEP + step(before, now, up_by_hand) + last(),
        "down.sql": HEADER_OF_STEP + step(now, before, down_by_hand) + last(),
        "all.sql": whole(HEADER_OF_ALL, now),
    }


def last() -> str:
    """Return the end of every revision's text."""
    return LAST + part("last")


def whole(header: str, now: Tree) -> str:
    """Return all files in one text."""
    return header + "".join(section(name, text) for name, text in now.items())


def broken_promises() -> list[str]:
    """Return what is wrong with released revisions: their text has changed, or sql/ has gone on without a new one."""
    newest, kept, frozen = head(), released(), frozen_files()
    complaints = []
    for path, sum_ in recorded().items():
        if path.parent.name in kept and path not in frozen:
            complaints.append(f"{shown(path)} is missing, but was released: bring it back")
        elif path.parent.name in kept and digest(frozen[path]) != sum_:
            complaints.append(f"{shown(path)} was changed after its release: bring back what was released")
    if not complaints and newest in kept and frozen_tree(newest) != tree():
        complaints.append(f'sql/ has changed since {newest} was released: run make revision m="..."')
    return complaints


def checksums(frozen: dict[Path, str]) -> str:
    """Return the text of CHECKSUMS, in which the lines of released revisions stay as they are."""
    kept = {path: sum_ for path, sum_ in recorded().items() if path.parent.name in released()}
    sums = {path: digest(text) for path, text in frozen.items()} | kept
    return "".join(f"{sum_}  {path.relative_to(MIGRATIONS).as_posix()}\n" for path, sum_ in sorted(sums.items()))


def recorded() -> dict[Path, str]:
    """Return the checksums in CHECKSUMS."""
    lines = CHECKSUMS.read_text("ascii").splitlines()
    return {MIGRATIONS / file: sum_ for sum_, file in (line.split("  ") for line in lines)}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def released() -> set[str]:
    """Return the revisions that were part of a release."""
    return set(re.findall(r"^(\w+)$", RELEASED.read_text("ascii"), re.MULTILINE))


def head() -> str:
    """Return the newest revision."""
    return str(scripts().get_current_head())


def scripts() -> ScriptDirectory:
    """Return Alembic's view of the revisions."""
    return ScriptDirectory(str(MIGRATIONS))


def frozen_files() -> dict[Path, str]:
    """Return the frozen text as it stands."""
    return {path: path.read_text("ascii") for path in sorted(FROZEN.glob("*/*.sql"))}


def frozen_tree(name: str) -> Tree:
    """Return sql/ as it was at a revision; the first one's up.sql is all of it."""
    all_ = FROZEN / name / "all.sql"
    return sections((all_ if all_.exists() else FROZEN / name / "up.sql").read_text("ascii"))


def tree() -> Tree:
    """Return what revisions make of sql/ as it is."""
    return {name: source(name) for name in manifest() if name not in NOT_FROZEN}


def single_file() -> str:
    """Return install.sql with its files in place and without psql commands."""
    text = (SQL / "install.sql").read_text("ascii")
    text = text[text.index("\nbegin;\n") :]
    text = re.sub(r"^\\ir (\S+)\n", lambda line: section(line[1], source(line[1])), text, flags=re.MULTILINE)
    return f"-- pyidem {__version__}: the whole installation as one transaction, for any tool that runs SQL.\n{text}"


def manifest() -> list[str]:
    """Return the files that install.sql includes, in load order."""
    return re.findall(r"^\\ir (\S+)$", (SQL / "install.sql").read_text("ascii"), re.MULTILINE)


def source(name: str) -> str:
    """Return one file of sql/, or exit saying what cannot be frozen in it."""
    text = (SQL / name).read_bytes().decode("utf-8")
    for pattern, complaint in (
        (r"[^\x00-\x7f]", "a character outside ASCII"),
        (r"[\t\r]", "a tab or carriage return"),
        (r"(?m)^\\", "a psql command"),
        (r"(?m)^-- sql/\S+$", "a heading of frozen text"),
        (r"[^\n]\Z|;\s+\n\Z", "no single newline at its end"),
        (r"[^;\n]\n\Z", "no semicolon at its end"),
    ):
        if found := re.search(pattern, text):
            line = text.count("\n", 0, found.start()) + 1
            fail(f"sql/{name}:{line}: {complaint}")
    return text


def write(path: Path, text: str) -> None:
    """Write a generated file and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "ascii", newline="\n")
    print(f"wrote {shown(path)}")


def shown(path: Path) -> Path:
    return path.relative_to(MIGRATIONS.parent)


def fail(message: str) -> NoReturn:
    """Say what is wrong and exit with 1."""
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    app()
