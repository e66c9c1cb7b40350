"""The Typer application: registers the commands."""

from typing import Annotated

import typer

from pyidem import __version__
from pyidem.cli.current import current
from pyidem.cli.doctor import doctor
from pyidem.cli.downgrade import downgrade
from pyidem.cli.list_keys import list_keys
from pyidem.cli.policy import policy
from pyidem.cli.purge import purge
from pyidem.cli.resolve import resolve
from pyidem.cli.schedule import schedule
from pyidem.cli.show import show
from pyidem.cli.sql import sql
from pyidem.cli.stats import stats
from pyidem.cli.sweep import sweep
from pyidem.cli.upgrade import upgrade
from pyidem.demo.app import EPILOG as DEMO_EPILOG
from pyidem.demo.app import demo

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 done in part.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pyidem {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Idempotency keys decided in Postgres: install and operate them."""


app.command()(upgrade)
app.command(context_settings={"ignore_unknown_options": True})(downgrade)  # -1 is a revision
app.command()(current)
app.command()(sql)
app.command()(doctor)
app.command()(stats)
app.command("list")(list_keys)
app.command()(show)
app.command()(resolve)
app.command()(sweep)
app.add_typer(policy, name="policy")
app.command(epilog=DEMO_EPILOG)(demo)
app.command()(purge)
app.command()(schedule)
