"""The command line: `pyidem` or `python -m pyidem`. One file per command."""

import errno
import sys

# Standard output that leads to a file, of which the disk is full, say.
_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
# What the extra `cli` brings.
_PACKAGES = {"typer", "click", "rich", "alembic", "sqlalchemy", "psycopg_pool"}


def main() -> None:
    """Run the command line."""
    try:
        from pyidem.cli.app import app  # noqa: PLC0415 - needs an extra

        app(prog_name="pyidem")  # a command may import more
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        sys.exit(f"pyidem: the command line needs {package}: pip install 'pyidem[cli]'")
    except ImportError as error:
        # psycopg raises it where neither its C extension nor the system's libpq can be loaded.
        if "libpq" not in str(error):
            raise
        sys.exit("pyidem: psycopg finds no libpq: install the system's libpq, or pip install 'pyidem[binary]'")
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        sys.exit(f"pyidem: {error}")
