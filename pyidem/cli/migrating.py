"""What the commands that install share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pyidem.cli.common import describe, fail


@contextmanager
def migrating() -> Iterator[Any]:
    """Yield `pyidem.migrate`; turn the errors that a user can meet into a message and exit code 1.

    It is not imported before, since Alembic and SQLAlchemy would make every other command wait.
    """
    from alembic.script.revision import RevisionError  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415

    from pyidem import migrate  # noqa: PLC0415

    try:
        yield migrate
    except (CommandError, RevisionError) as error:
        fail(str(error))
    except psycopg.Error as error:
        fail(describe(error))
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):
            raise
        fail(describe(error.orig))
