"""`python -m pyidem.demo`."""

import sys

# What the extra `demo` brings.
_PACKAGES = {"typer", "click", "rich", "alembic", "sqlalchemy", "psycopg_pool"}


def main() -> None:
    """Run the demonstration, or say what it lacks."""
    if sys.platform == "win32":
        sys.exit("pyidem.demo: runs on Linux and macOS; on Windows use the Windows Subsystem for Linux")
    try:
        from pyidem.demo.app import app  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        sys.exit(f"pyidem.demo: needs {package}: pip install 'pyidem[demo]'")
    except ImportError as error:
        # psycopg raises it where neither its C extension nor the system's libpq can be loaded.
        if "libpq" not in str(error):
            raise
        sys.exit("pyidem.demo: psycopg finds no libpq: pip install 'pyidem[demo]'")
    app(prog_name="python -m pyidem.demo")


if __name__ == "__main__":
    main()
