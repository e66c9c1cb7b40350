"""The environment of the shop's migrations. The server is named by libpq's variables."""

import os

from alembic import context
from sqlalchemy import NullPool, create_engine, text

from pyidem.migrate import include_name
from shop.models import Base, Order

options = {"target_metadata": Base.metadata, "include_schemas": True, "include_name": include_name}
match os.environ.get("SHOP_SCHEMAS"):
    case "default":
        options = {"target_metadata": Order.in_default_schema()}
    case "unfiltered":
        del options["include_name"]

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with create_engine("postgresql+psycopg://", poolclass=NullPool).connect() as connection:
        connection.execute(text("create schema if not exists billing"))
        connection.commit()
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
