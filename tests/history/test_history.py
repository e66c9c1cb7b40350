"""Clients and server are killed, connections lost, answers lost: every history that is recorded keeps the promises."""

import time
from pathlib import Path

import pytest

from tests.history.storm import Outcome, weather
from tests.mutants.broken import builds
from tests.support.server import Server
from tests.support.soak import MINUTES, SEED

STORM_SECONDS = 60

if MINUTES > 0:

    @pytest.mark.timeout(0)
    def test_long_storms_break_no_promise(installation: Server, tmp_path: Path) -> None:
        end = time.monotonic() + MINUTES * 60
        number, total = SEED, Outcome()
        while time.monotonic() < end and not total.violations:
            directory = tmp_path / str(number)
            directory.mkdir()
            total += weather(installation.bindir, directory, seconds=STORM_SECONDS, seed=str(number))
            print(f"storm {number}\n{total.report()}", flush=True)
            number += 1
        assert not total.violations

else:

    @pytest.mark.slow
    def test_a_storm_breaks_no_promise(installation: Server, tmp_path: Path) -> None:
        outcome = weather(installation.bindir, tmp_path, seconds=12, seed=str(SEED))
        print(outcome.report())
        assert not outcome.violations, outcome.report()
        assert outcome.figures["answers seen"] > 0
        assert outcome.figures["clients killed"] > 0


def test_a_storm_over_a_build_without_an_arbiter_breaks_them(installation: Server, tmp_path: Path) -> None:
    """The whole of it, from the clients to the verdict, notices two owners of one key."""
    broken = next(build for build in builds() if build.name == "no-arbiter").make(tmp_path / "sql")
    for number in range(1, 6):  # on a slow machine few clients meet in so short a storm
        directory = tmp_path / str(number)
        directory.mkdir()
        outcome = weather(installation.bindir, directory, seconds=5, seed=f"broken-{number}", sources=broken)
        if outcome.violations:
            break
    promises = {violation.promise for violation in outcome.violations}
    assert {"one effect", "started again"} & promises, promises
