"""`pyidem policy` lists, shows, makes, changes and deletes policies, each by one statement."""

import json
from typing import Any

import psycopg
import pytest

from tests.migrations.support import Done, cli
from tests.support.database import Database


@pytest.fixture
def dsn(db: Database) -> str:
    """The connection string of an operator."""
    role = db.create_role("operator")
    with psycopg.connect(db.dsn_of(db.owner)) as owner:
        owner.execute("select idem.grant_operator(%s)", [role])
    return db.dsn_of(role)


def policy(*arguments: str, dsn: str) -> Done:
    return cli("policy", *arguments, "--dsn", dsn)


def shown(name: str, dsn: str) -> dict[str, Any]:
    done = policy("show", name, "--json", dsn=dsn)
    assert done.returncode == 0, done.stderr
    settings: dict[str, Any] = json.loads(done.stdout)
    return settings


def stored(name: str, dsn: str) -> dict[str, Any]:
    """The row as SQL has it."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select to_jsonb(p) from idem.policies as p where name = %s", [name]).fetchone()
    assert row is not None
    settings: dict[str, Any] = row[0]
    return settings


def test_list_shows_the_shipped_ones(dsn: str) -> None:
    done = policy("list", dsn=dsn)

    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["name", "default", "messages"]
    assert "14d" in done.stdout


def test_list_as_json_has_every_column(dsn: str) -> None:
    rows = json.loads(policy("list", "--json", dsn=dsn).stdout)

    assert [row["name"] for row in rows] == ["default", "messages"]
    assert set(rows[0]) == set(stored("default", dsn))
    assert (rows[0]["ttl"], rows[0]["methods"], rows[0]["key_pattern"]) == (86400.0, ["POST", "PATCH"], None)


def test_show_has_a_line_for_every_column(dsn: str) -> None:
    done = policy("show", "default", dsn=dsn)

    assert {line.split()[0] for line in done.stdout.splitlines()} == {"column", *stored("default", dsn)}


def test_set_makes_a_policy_and_changes_only_what_is_named(dsn: str) -> None:
    made = policy(
        "set", "provider", "on_lapse=retry", "ttl=7d", "lease=1h30m", "methods=POST, put", "max_claims=3", dsn=dsn
    )
    assert made.returncode == 0, made.stderr
    changed = policy("set", "provider", "lease=5 minutes", "ignore={/a,/b}", "--json", dsn=dsn)
    assert changed.returncode == 0, changed.stderr

    assert json.loads(changed.stdout) == shown("provider", dsn)
    settings = stored("provider", dsn)
    assert (settings["on_lapse"], settings["max_claims"]) == ("retry", 3)
    assert (settings["ttl"], settings["lease"]) == ("168:00:00", "00:05:00")
    assert (settings["methods"], settings["ignore"]) == (["POST", "PUT"], ["/a", "/b"])
    assert {name: value for name, value in settings.items() if value != stored("default", dsn)[name]}.keys() == {
        "name", "on_lapse", "ttl", "lease", "methods", "max_claims", "ignore",
    }  # fmt: skip


def test_set_without_settings_makes_one_with_the_defaults_and_changes_none(dsn: str) -> None:
    assert policy("set", "plain", dsn=dsn).returncode == 0
    assert stored("plain", dsn) == stored("default", dsn) | {"name": "plain"}
    policy("set", "plain", "lease=1s", dsn=dsn)
    assert policy("set", "plain", dsn=dsn).returncode == 0

    assert stored("plain", dsn)["lease"] == "00:00:01"


def test_set_knows_null_and_default(dsn: str) -> None:
    policy("set", "mine", "key_pattern=^[0-9]+$", "lease=1s", "methods=PUT", dsn=dsn)
    done = policy("set", "mine", "key_pattern=null", "lease=default", "methods=DEFAULT", dsn=dsn)

    assert done.returncode == 0, done.stderr
    assert stored("mine", dsn) == stored("default", dsn) | {"name": "mine"}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("ttl=0", "ttl: above zero"),
        ("ttl=1s", "longer than lease"),
        ("key_pattern=(", "key_pattern"),
        ("max_attempts=0", "max_attempts: at least 1"),
        ("lease=soon", "soon"),
    ],
)
def test_what_cannot_work_is_refused_in_a_line_and_changes_nothing(setting: str, said: str, dsn: str) -> None:
    before = stored("default", dsn)
    done = policy("set", "default", setting, dsn=dsn)

    assert done.returncode == 1
    assert done.stderr.startswith("pyidem: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert stored("default", dsn) == before


@pytest.mark.parametrize("setting", ["ttl", "name=other", "no_such=1"])
def test_wrong_usage_exits_with_2(setting: str, dsn: str) -> None:
    assert policy("set", "default", setting, dsn=dsn).returncode == 2


def test_show_of_one_that_is_not_there_fails(dsn: str) -> None:
    done = policy("show", "none", dsn=dsn)

    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no policy 'none'" in done.stderr


def test_delete_takes_one_that_no_key_remembers(dsn: str) -> None:
    policy("set", "mine", dsn=dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("select idem.once('billing', 'm', 'mine')")
    assert policy("delete", "mine", "--yes", dsn=dsn).returncode == 1
    assert stored("mine", dsn)["name"] == "mine"
    with psycopg.connect(dsn) as connection:
        connection.execute("select idem.forget('billing')")
    done = policy("delete", "mine", "--yes", dsn=dsn)

    assert done.returncode == 0, done.stderr
    assert policy("show", "mine", dsn=dsn).returncode == 1


def test_delete_asks_first(dsn: str) -> None:
    policy("set", "mine", dsn=dsn)
    done = policy("delete", "mine", dsn=dsn)

    assert done.returncode == 1
    assert "--yes" in done.stderr
    assert stored("mine", dsn)["name"] == "mine"


def test_who_may_not_is_told_which_grant_it_takes(db: Database) -> None:
    done = policy("list", dsn=db.dsn_of(db.create_role()))

    assert done.returncode == 1
    assert "idem.grant_operator" in done.stderr
