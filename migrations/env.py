"""Alembic environment of pyidem: one transaction, our own version table in our own private schema.

Run through `pyidem upgrade` or `pyidem.migrate`, or by Alembic itself; then the database is `-x dsn=...`, PYIDEM_DSN,
or what the PG* variables say.
"""

import os
from typing import Any

from alembic import context

from pyidem import migrate

attributes = context.config.attributes


def run(*, restore: bool, **options: Any) -> None:
    context.configure(
        version_table_schema=migrate.PRIVATE_SCHEMA, on_version_apply=attributes.get("on_version_apply"), **options
    )
    migration = context.get_context()
    with context.begin_transaction():
        if migration.opts.get("dont_mutate"):
            context.run_migrations()
        else:
            with migrate.prepared(migration, restore=restore):
                context.run_migrations()


if context.is_offline_mode():
    run(restore=False, dialect_name="postgresql", literal_binds=True)
elif "connection" in attributes:
    run(restore=not attributes.get("owned", False), connection=attributes["connection"])
else:
    dsn = context.get_x_argument(as_dictionary=True).get("dsn", os.environ.get("PYIDEM_DSN", ""))
    with migrate.connect(dsn) as connection:
        run(restore=False, connection=connection)
