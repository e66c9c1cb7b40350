"""`python -m pyidem.demo`."""

import importlib.util
import sys


def main() -> None:
    """Run the demonstration, or say what it lacks."""
    for package in ("typer", "rich"):
        if importlib.util.find_spec(package) is None:
            sys.exit(f"pyidem.demo: needs {package}: pip install 'pyidem[demo]'")
    import typer  # noqa: PLC0415 - needs the extra

    from pyidem.demo.app import EPILOG, demo  # noqa: PLC0415

    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(epilog=EPILOG)(demo)
    app(prog_name="python -m pyidem.demo")


if __name__ == "__main__":
    main()
