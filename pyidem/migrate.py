"""Install, upgrade and remove pyidem's schemas, from Python or from a host project's own migrations.

The schema is built by the SQL text in `migrations/frozen`; Alembic keeps track of it in its own version table,
`idem_private.alembic_version`, so that a host project's Alembic history is never touched. This module needs the extra
`pyidem[migrate]`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, Literal, Protocol, TextIO

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, text

__all__ = [
    "PRIVATE_SCHEMA",
    "SCHEMAS",
    "HasContext",
    "connect",
    "count_keys",
    "current",
    "downgrade",
    "downgrade_op",
    "execute",
    "forgets_keys",
    "head",
    "include_name",
    "prepared",
    "resource",
    "run_frozen",
    "script_directory",
    "sql",
    "upgrade",
    "upgrade_op",
]

PRIVATE_SCHEMA = "idem_private"
SCHEMAS = frozenset({"idem", PRIVATE_SCHEMA})

# Saved in the database rather than read by Python, so that the same text works offline.
_SAVE_SETTINGS = """\
do $$ begin
    perform pg_catalog.set_config('idem.outer_search_path', pg_catalog.current_setting('search_path'), true);
    perform pg_catalog.set_config('idem.outer_lock_timeout', pg_catalog.current_setting('lock_timeout'), true);
end $$;
"""
_RESTORE_SETTINGS = """\
do $$ begin
    perform pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('idem.outer_lock_timeout'), true);
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('idem.outer_search_path'), true);
end $$;
"""

# Offline, Alembic creates the version table without looking; a downgrade to base has left it behind, empty.
_DROP_EMPTY_VERSION_TABLE = """\
do $$ begin
    if to_regclass('idem_private.alembic_version') is not null then
        if exists (select from idem_private.alembic_version) then
            raise duplicate_object using
                message = 'pyidem is installed already',
                hint = 'Render the way from the installed revision: pyidem sql --from REVISION.';
        end if;
        drop table idem_private.alembic_version;
    end if;
end $$;
"""


def resource(name: Literal["sql", "migrations"]) -> Path:
    """Return the folder of SQL or of migrations: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    packaged = package / name
    return packaged if packaged.is_dir() else package.parent / name


def head() -> str:
    """Return the newest revision."""
    revision = script_directory().get_current_head()
    if revision is None:
        raise FileNotFoundError(f"no revision in {resource('migrations') / 'versions'}")
    return revision


def upgrade(database: str | Connection = "", revision: str = "head") -> list[str]:
    """Bring a database to a revision and return the revisions that were applied.

    `database` is anything libpq accepts (a URI, `key=value` pairs, or empty for the `PG*` environment) or an open
    SQLAlchemy connection on psycopg, whose transaction is then left to the caller. Everything happens in one
    transaction; parallel calls wait for each other and the later ones find nothing to do.
    """
    return _migrate(command.upgrade, database, revision)


def downgrade(database: str | Connection = "", revision: str = "base") -> list[str]:
    """Take a database back to a revision and return the revisions that were undone.

    `base` removes every object but the version table and forgets all keys. Objects of others that depend on pyidem's
    are never dropped: the downgrade then fails with SQLSTATE 2BP01.
    """
    return _migrate(command.downgrade, database, revision)


def current(database: str | Connection = "") -> str | None:
    """Return the revision of a database, or None where pyidem is not installed. Changes nothing."""
    with connect(database) as connection:
        context = MigrationContext.configure(connection, opts={"version_table_schema": PRIVATE_SCHEMA})
        return context.get_current_revision()


def sql(from_: str = "base", to: str = "head", stream: TextIO | None = None) -> str:
    """Render the SQL that leads from one revision to another, without connecting.

    Returns the text, one transaction without psql commands, and also writes it to `stream`.
    """
    output = StringIO()
    config = _config(output_buffer=output)
    if _is_ancestor(to, of=from_):
        command.downgrade(config, f"{from_}:{to}", sql=True)
    else:
        command.upgrade(config, to if from_ == "base" else f"{from_}:{to}", sql=True)
    if stream is not None:
        stream.write(output.getvalue())
    return output.getvalue()


class HasContext(Protocol):
    """What is used of Alembic's `op`, the module or an `Operations`."""

    def get_context(self) -> MigrationContext:
        """Return the context of the migration that is running."""


def upgrade_op(op: HasContext, from_: str, to: str) -> None:
    """Upgrade inside a revision of the host project, online or offline.

    Both revisions are written out, because a revision must do the same whatever pyidem is installed later:
    `upgrade_op(op, "base", "idem_0001")`.
    """
    _run_inside(op.get_context(), from_, to, "up", _path(to, from_)[::-1])


def downgrade_op(op: HasContext, from_: str, to: str) -> None:
    """Undo `upgrade_op(op, to, from_)` inside the host revision's `downgrade`."""
    _run_inside(op.get_context(), from_, to, "down", _path(from_, to))


def include_name(name: str | None, type_: str, parent_names: Any) -> bool:  # noqa: ARG001
    """Keep pyidem's schemas out of the host's autogenerate: `context.configure(include_name=include_name)`."""
    return not (type_ == "schema" and name in SCHEMAS)


def forgets_keys(database: str | Connection, revision: str) -> bool:
    """Tell whether a downgrade to `revision` ends at base, where every key is forgotten."""
    if revision == "base":
        return True
    if not re.fullmatch(r"-\d+", revision):
        return False
    installed = current(database)
    steps = len(list(script_directory().iterate_revisions(installed, "base"))) if installed else 0
    return int(revision[1:]) >= steps


def count_keys(database: str | Connection) -> int:
    """Count the stored keys, in any state; 0 where pyidem is not installed."""
    with connect(database) as connection:
        if connection.scalar(text("select to_regclass('idem.keys') is null")):
            return 0
        return connection.scalar(text("select count(*) from idem.keys")) or 0


# Used by migrations/: env.py and the revisions.


def script_directory() -> ScriptDirectory:
    """Return Alembic's view of `migrations/`."""
    return ScriptDirectory.from_config(_config())


@contextmanager
def connect(database: str | Connection) -> Iterator[Connection]:
    """Yield a SQLAlchemy connection: a new one by libpq's rules, or the given one."""
    if isinstance(database, Connection):
        yield database
        return
    dsn = re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", database)
    # psycopg reads the string itself, so that services, sockets and several hosts work as in libpq.
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
    with engine.connect() as connection:
        yield connection


def execute(context: MigrationContext, statements: str) -> None:
    """Run SQL text as it stands, or write it where Alembic renders offline.

    Alembic's own `op.execute` would take `:word` for a parameter, and psycopg `%` for a placeholder.
    """
    if context.as_sql:
        context.impl.static_output(statements)
    else:
        assert context.connection is not None
        context.connection.exec_driver_sql(statements, execution_options={"no_parameters": True})


def run_frozen(context: MigrationContext, revision: str, direction: Literal["up", "down"]) -> None:
    """Run the frozen text of one revision."""
    execute(context, (resource("migrations") / "frozen" / revision / f"{direction}.sql").read_text("ascii"))


@contextmanager
def prepared(context: MigrationContext, *, restore: bool) -> Iterator[None]:
    """Hold the migrators' lock and settings, with the private schema in place, until the transaction ends.

    `restore` puts the settings back at the end, for a transaction that belongs to somebody else.
    """
    if restore:
        execute(context, _SAVE_SETTINGS)
    execute(context, (resource("sql") / "preamble.sql").read_text("ascii"))
    if context.as_sql and not context.get_current_heads():
        execute(context, _DROP_EMPTY_VERSION_TABLE)
    yield
    if restore:
        execute(context, _RESTORE_SETTINGS)


def _config(**attributes: Any) -> Config:
    config = Config(output_buffer=attributes.pop("output_buffer", None))
    config.set_main_option("script_location", str(resource("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes.update(attributes)
    return config


def _migrate(run: Callable[[Config, str], None], database: str | Connection, revision: str) -> list[str]:
    steps: list[str] = []

    def note(*, step: Any, **_: Any) -> None:
        steps.append(step.up_revision_id)

    with connect(database) as connection:
        run(_config(connection=connection, owned=connection is not database, on_version_apply=note), revision)
    return steps


def _is_ancestor(revision: str, *, of: str) -> bool:
    if revision == "base":
        return True
    script = script_directory()
    resolved = script.get_revision(revision)
    return of != "base" and resolved in list(script.iterate_revisions(of, "base"))[1:]


def _path(newer: str, older: str) -> list[str]:
    """Return the revisions from the newer one down to the older one, without the latter."""
    script = script_directory()
    for name in (newer, older):
        if name != "base" and name != script.get_revision(name).revision:
            raise ValueError(f"write the revision out in full, not as {name!r}")
    return [step.revision for step in script.iterate_revisions(newer, older)]


def _run_inside(
    context: MigrationContext, from_: str, to: str, direction: Literal["up", "down"], revisions: list[str]
) -> None:
    with prepared(context, restore=True):
        for revision in revisions:
            run_frozen(context, revision, direction)
        execute(context, _record(from_, to))


def _record(from_: str, to: str) -> str:
    """Return the SQL that writes our own version row, which Alembic cannot do in the host's history."""
    if from_ == "base":
        return (resource("sql") / "stamp.sql").read_text("ascii").replace(head(), to)
    change = (  # both are known revisions
        f"delete from idem_private.alembic_version where version_num = '{from_}'"  # noqa: S608
        if to == "base"
        else f"update idem_private.alembic_version set version_num = '{to}' where version_num = '{from_}'"  # noqa: S608
    )
    return f"""\
do $$ begin
    {change};
    if not found then
        raise object_not_in_prerequisite_state using message = 'pyidem is not at revision {from_}';
    end if;
end $$;
"""
