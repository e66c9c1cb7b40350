"""`python -m pyidem.demo.crash`."""

import sys
from typing import Annotated

import typer

from pyidem.demo.crash.story import run


def crash(
    *,
    refunds: Annotated[int, typer.Option(min=3, max=999, help="How many refunds.")] = 18,
    seed: Annotated[int, typer.Option(help="Whom fate strikes.")] = 1,
) -> None:
    """Kill workers while the bank answers, list what nobody knows, and let a sweeper find out.

    In the end the books of shop and bank are compared, to the cent.
    """
    outcome = run(refunds, seed, typer.echo)
    typer.echo(f"\n{'Workers killed (-9)':<24} {outcome.killed:>12,}")
    typer.echo(f"{'Cents paid by the bank':<24} {outcome.cents_at_bank:>12,}")
    typer.echo(f"{'Cents in the books':<24} {outcome.cents_in_books:>12,}\n")
    for violation in outcome.violations:
        typer.echo(f"FAILED: {violation}", err=True)
    if outcome.violations:
        sys.exit(1)
    typer.echo(f"OK: each of {outcome.refunds} refunds was paid once, and shop and bank agree to the cent.")


if __name__ == "__main__":
    typer.run(crash)
