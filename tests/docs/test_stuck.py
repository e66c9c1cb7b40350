"""The README's way out of a stuck key, step by step: the commands are typed as printed and answer as printed.

Differences in times, in UUIDs and in blanks at the end of a line do not count.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pyidem import Swept
from tests.docs.blocks import README, Fence, fences
from tests.docs.examples import count, defined_by, insert_order, insert_refund
from tests.support.database import OWNER, Database

HOURS_AGO = " options='-c idem.clock_offset=-3h'"
BLOCKS = fences(README, "console")
_VARIES = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@pytest.fixture
def readme(shop: Database) -> Iterator[dict[str, Any]]:
    """The names that the README's Python blocks define, three hours ago."""
    names = defined_by(
        README, shop, dsn=shop.dsn_of("app") + HOURS_AGO, insert_order=insert_order, insert_refund=insert_refund
    )
    with names["pool"]:
        yield names


@pytest.fixture
def stuck(readme: dict[str, Any], shop: Database) -> dict[str, Any]:
    """The stuck key of the section: the provider made the refund, and its answer was lost."""
    with psycopg.connect(shop.dsn_of(OWNER), autocommit=True) as owner:
        owner.execute("select idem.grant_resolver('app')")
        for block in fences(README, "sql"):
            if "idem.policies" in block.text:
                owner.execute(block.text.encode())
    readme["provider"].fails_after_the_work = True
    with pytest.raises(TimeoutError):
        readme["refund"]("client:42", "8e03978e", {"charge": "ch_1"})
    readme["provider"].fails_after_the_work = False
    return readme


@pytest.fixture
def operator(shop: Database) -> Iterator[dict[str, str]]:
    """The environment of a role that may operate."""
    with psycopg.connect(shop.dsn, autocommit=True) as admin:
        admin.execute(f"create role oncall login password '{shop.cluster.password}'")
        with psycopg.connect(shop.dsn_of(OWNER), autocommit=True) as owner:
            owner.execute("select idem.grant_operator('oncall')")
        try:
            programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            yield shop.environment | {"PGUSER": "oncall", "PGTZ": "UTC", "PATH": programs}
        finally:
            admin.execute("drop owned by oncall; drop role oncall")


def test_one_key_is_settled_as_printed(stuck: dict[str, Any], operator: dict[str, str], shop: Database) -> None:
    for block in blocks("one"):
        replayed(block, operator)

    answer = stuck["refund"]("client:42", "8e03978e", {"charge": "ch_1"})
    assert (answer.status, answer.body) == (201, b'{"id": "re_0"}')
    assert stuck["provider"].calls == 1
    with psycopg.connect(shop.dsn) as connection:
        decided = connection.execute(
            "select by_role, reason from idem.history('client:42', '8e03978e') where event = 'resolved'"
        ).fetchall()
    assert decided == [("oncall", "the provider made refund re_0")]


@pytest.mark.usefixtures("stuck")
def test_300_keys_are_settled_as_printed(operator: dict[str, str], shop: Database) -> None:
    with psycopg.connect(shop.dsn_of("app") + HOURS_AGO, autocommit=True) as app:
        every = "generate_series(1, 300) as n"
        named = "'client:' || n % 7, 'refund-' || lpad(n::text, 3, '0')"
        app.execute(
            f"select idem.reserve({named}, mode => 'leased', policy => 'provider', token => md5(n::text)::uuid)"
            f" from {every}"
        )
        app.execute(f"select idem.defer({named}, md5(n::text)::uuid, reason => 'TimeoutError') from {every}")

    for block in blocks("many"):
        replayed(block, operator)

    with psycopg.connect(shop.dsn) as connection:
        states = connection.execute("select outcome, count(*) from idem.keys group by outcome order by 1").fetchall()
    assert states == [("lapsed", 1), ("released", 300)]


def test_a_program_settles_it(stuck: dict[str, Any], shop: Database) -> None:
    assert stuck["sweeper"].run_once() == Swept(completed=1)

    answer = stuck["refund"]("client:42", "8e03978e", {"charge": "ch_1"})
    assert (answer.status, answer.body) == (201, b'{"id":"re_0_ch_1"}')
    assert len(stuck["provider"].made) == count(shop, "refunds") == 1


def blocks(name: str) -> list[Fence]:
    found = [block for block in BLOCKS if block.options == (name,)]
    assert found
    return found


def replayed(block: Fence, environment: dict[str, str]) -> None:
    """Type the commands of a block, and compare what they print."""
    shown = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                line[2:],
                shell=True,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            shown += [line, *done.stdout.splitlines()]
    expected, actual = normalised(block.text.splitlines()), normalised(shown)
    assert expected == actual, "\n".join(unified_diff(expected, actual, block.place, "typed", lineterm=""))


def normalised(lines: list[str]) -> list[str]:
    return [_VARIES.sub("<varies>", line.rstrip()) for line in lines]
