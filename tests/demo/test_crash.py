"""The second part of the demonstration: what dead workers left is found out, and what does harm is convicted."""

import subprocess
import sys

import pytest

from pyidem.demo.crash.story import run


@pytest.mark.slow
def test_a_sweeper_finds_out_what_the_dead_have_left_and_the_books_agree_to_the_cent() -> None:
    command = [sys.executable, "-m", "pyidem.demo.crash", "--refunds", "9", "--seed", "3"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert "3 x 409 idempotency_outcome_unknown" in done.stdout
    listed = done.stdout.partition("$ pyidem list\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[2] for line in listed[1:]] == ["lapsed"] * 3
    assert "\n2 completed, 1 released\n" in done.stdout
    cents = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Cents")]
    assert len(cents) == 2
    assert cents[0] == cents[1] != "0"
    assert done.stdout.endswith("OK: each of 9 refunds was paid once, and shop and bank agree to the cent.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resolver", "broken"),
    [
        ("pay_again", "the bank has not paid each refund once"),
        ("believe", "bank and books do not agree"),
        ("despair", "the sweeper has not settled each of them"),
    ],
)
def test_a_resolver_that_does_harm_is_convicted(resolver: str, broken: str) -> None:
    outcome = run(6, 3, lambda _: None, resolver=f"tests.demo.bad_resolvers:{resolver}")

    assert broken in outcome.violations
