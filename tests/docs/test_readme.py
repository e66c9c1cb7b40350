"""What the README tells readers to type works as it says."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.docs.blocks import CLIENT, README, fences
from tests.docs.examples import count, defined_by, insert_order, insert_refund
from tests.support.database import OWNER, ROOT, Database

PROGRAMS = Path(sys.executable).parent
MAKE = [block for block in fences(README, "sh") if block.text.startswith("make ")]
INSTALL = [block for block in fences(README, "sh") if block not in MAKE]


@pytest.fixture
def readme(shop: Database) -> Iterator[dict[str, Any]]:
    """The names that the README's Python blocks define."""
    names = defined_by(README, shop, insert_order=insert_order, insert_refund=insert_refund)
    with names["pool"]:
        yield names


def test_a_retried_order_is_made_once_and_answered_alike(readme: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = readme["create_order"]("client:1", key, b"amount=100")
    again = readme["create_order"]("client:1", key, b"amount=100")

    assert first == again
    assert (first.status, first.body) == (201, b'{"id":1}')
    assert ("Location", "/orders/1") in first.headers
    assert count(shop, "orders") == 1


def test_an_order_under_a_used_key_is_answered_with_a_problem_document(readme: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    made, _ = readme["post_order"]("client:1", key, b"amount=100")
    refused, problem = readme["post_order"]("client:1", key, b"amount=999")

    assert (made, refused, problem["code"]) == (201, 422, "idempotency_key_reused")
    assert count(shop, "orders") == 1


def test_an_order_over_http_is_made_once(readme: dict[str, Any], shop: Database) -> None:
    headers = {"idempotency-key": str(uuid4()), "x-client": "client:1"}

    async def post() -> list[httpx.Response]:
        transport = httpx.ASGITransport(readme["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
            return [await client.post("/orders", headers=headers, content=b"amount=100") for _ in range(3)]

    answers = asyncio.run(post())

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert answers[2].headers["idempotency-replayed"] == "true"
    assert count(shop, "orders") == 1


def test_a_retried_refund_is_made_once(readme: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = readme["refund"]("client:1", key, {"charge": "ch_1"})
    again = readme["refund"]("client:1", key, {"charge": "ch_1"})

    assert first == again
    assert readme["provider"].calls == 1
    assert count(shop, "refunds") == 1


def test_a_refund_whose_answer_was_lost_is_not_called_a_second_time(readme: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())
    readme["provider"].fails_after_the_work = True

    with pytest.raises(TimeoutError):
        readme["refund"]("client:1", key, {"charge": "ch_1"})
    with pytest.raises(readme["IdempotencyError"]) as refused:
        readme["refund"]("client:1", key, {"charge": "ch_1"})

    assert (refused.value.status, refused.value.code) == (409, "idempotency_outcome_unknown")
    assert readme["provider"].calls == 1
    assert count(shop, "refunds") == 0


def test_sql_statements_run_for_the_owner(shop: Database) -> None:
    blocks = fences(README, "sql")
    assert blocks
    with psycopg.connect(shop.dsn_of(OWNER), autocommit=True) as connection:
        for block in blocks:
            connection.execute(block.text.encode())


def test_the_policy_of_the_readme_holds_for_the_next_call(shop: Database) -> None:
    statement = next(block.text for block in fences(README, "sql") if "idem.policies" in block.text)
    with psycopg.connect(shop.dsn_of(OWNER), autocommit=True) as connection:
        connection.execute(statement.encode())
        lease = connection.execute(
            "select lease_until - created_at from idem.reserve('s', 'k', mode => 'leased', policy => 'provider')"
        ).fetchone()

    assert lease is not None
    assert lease[0].total_seconds() == 120


@pytest.mark.parametrize("block", INSTALL, ids=lambda block: block.text.split()[0])
def test_the_ways_to_install_work_for_a_role_that_may_create_schemas(
    block: Any, empty_db: Database, tmp_path: Path
) -> None:
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    environment = empty_db.environment | {"PGUSER": OWNER}
    search_path = os.pathsep.join([str(empty_db.cluster.bindir), str(PROGRAMS), os.environ["PATH"]])
    typed = [line for line in block.text.splitlines() if not line.startswith("pip install")]

    run(" && ".join(typed), tmp_path, environment | {"PATH": search_path})
    for file in tmp_path.glob("*.sql"):
        empty_db.psql(file, user=OWNER)

    with psycopg.connect(empty_db.dsn_of(OWNER)) as connection:
        assert connection.execute("select outcome from idem.lookup('s', 'k')").fetchone() == ("absent",)


def test_make_sql_writes_a_file_that_installs(empty_db: Database, tmp_path: Path) -> None:
    file = tmp_path / "pyidem.sql"
    python, target = shlex.quote(sys.executable), shlex.quote(str(file))
    make = [
        "make",
        "--old-file=.venv/dev.stamp",
        "--old-file=.venv/bin/python",
        f"PY={python}",
        "sql",
        f"ARGS={target}",
    ]
    run(shlex.join(make), ROOT, {})

    empty_db.psql(file, user=OWNER)

    with psycopg.connect(empty_db.dsn_of(OWNER)) as connection:
        assert connection.execute("select outcome from idem.lookup('s', 'k')").fetchone() == ("absent",)


@pytest.mark.parametrize("document", [README, CLIENT], ids=["readme", "client"])
def test_the_extras_that_are_named_exist(document: Path) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = re.findall(r"pip install '(?:pyidem|\.)\[([a-z,]+)\]'", document.read_text())

    assert named
    assert {extra for names in named for extra in names.split(",")} <= extras.keys()


@pytest.mark.parametrize("target", [line.split()[1] for block in MAKE for line in block.text.splitlines()])
def test_the_make_targets_that_are_named_exist(target: str) -> None:
    run(f"make --dry-run {target}", ROOT, {})


def run(command: str, directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        shell=True,
        check=False,
        cwd=directory,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout
