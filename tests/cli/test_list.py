"""`pyidem list`: what is stuck, and anything else that is asked for."""

import psycopg
import pytest

from tests.cli.support import pyidem, pyidem_json, stick
from tests.support.database import Database


@pytest.fixture
def keys(db: Database) -> Database:
    """A key in each state, and three that are stuck."""
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("insert into idem.policies (name, on_lapse, max_claims) values ('again', 'retry', 1)")
        connection.execute("select idem.reserve('client:1', 'working', mode => 'leased')")
        connection.execute(
            "select idem.complete('client:1', 'done', token, 201, body => 'the answer')"
            " from idem.reserve('client:1', 'done')"
        )
    stick(db, ("client:1", "stuck"), ("client:2", "stuck"))
    stick(db, ("client:1", "again"), policy="again")
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute(
            "update idem_private.reservation set created_at = created_at - interval '2 hours' where scope = 'client:2'"
        )
    return db


def listed(database: Database, *arguments: str) -> list[tuple[str, str]]:
    return [(row["scope"], row["key"]) for row in pyidem_json(database, "list", *arguments)]


def test_by_default_it_lists_what_is_stuck_the_oldest_first(keys: Database) -> None:
    done = pyidem(keys, "list")
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["scope", "key", "state", "policy", "attempt", "age", "claims", "waits", "for", "reason"]
    assert [row.split()[:4] for row in rows] == [
        ["client:2", "stuck", "lapsed", "default"],
        ["client:1", "stuck", "lapsed", "default"],
        ["client:1", "again", "lapsed", "again"],
    ]
    assert rows[0].split(maxsplit=6)[5] == "2h"
    assert all(row.rstrip().endswith("the provider timed out") for row in rows)
    assert "a sweeper, or a person" in rows[0]
    assert "a sweeper, or the next attempt" in rows[2]


def test_json_has_the_same_rows_with_all_that_is_known(keys: Database) -> None:
    rows = pyidem_json(keys, "list")
    assert [(row["scope"], row["key"]) for row in rows] == [
        ("client:2", "stuck"),
        ("client:1", "stuck"),
        ("client:1", "again"),
    ]
    assert rows[0]["state"] == "lapsed"
    assert 7200 <= rows[0]["age"] < 7300
    assert rows[0]["reason"] == "the provider timed out"
    assert rows[0]["waits_for"] == "a sweeper, or a person"
    assert not {"token", "body"} & rows[0].keys()


def test_states_can_be_chosen(keys: Database) -> None:
    assert listed(keys, "--state", "completed") == [("client:1", "done")]
    assert listed(keys, "--state", "in_progress") == [("client:1", "working")]
    assert listed(keys, "--state", "released") == []
    assert len(listed(keys, "--state", "all")) == 5
    done = pyidem(keys, "list", "--state", "completed")
    assert done.stdout.split()[:6] == ["scope", "key", "state", "policy", "attempt", "age"]
    assert "201" in done.stdout
    assert "the answer" not in done.stdout


def test_filters_can_be_combined(keys: Database) -> None:
    assert listed(keys, "--scope", "client:1") == [("client:1", "stuck"), ("client:1", "again")]
    assert listed(keys, "--policy", "again") == [("client:1", "again")]
    assert listed(keys, "--older-than", "1h") == [("client:2", "stuck")]
    assert listed(keys, "--older-than", "1h", "--scope", "client:1") == []
    assert listed(keys, "--older-than", "3h") == []


def test_what_resolvers_have_given_up_waits_for_a_person(keys: Database) -> None:
    with psycopg.connect(keys.dsn, autocommit=True) as connection:
        connection.execute("select idem.defer(scope, key, token) from idem.claim_lapsed(policy => 'again')")
    (row,) = pyidem_json(keys, "list", "--policy", "again")
    assert (row["claims"], row["max_claims"], row["waits_for"]) == (1, 1, "a person")


def test_a_limit_says_that_there_are_more(keys: Database) -> None:
    done = pyidem(keys, "list", "--limit", "2")
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == "These are the first 2 of more: give --limit 0 for all.\n"
    assert listed(keys, "--limit", "3") == listed(keys, "--limit", "0")
    assert pyidem(keys, "list", "--limit", "3").stderr == ""


def test_where_nothing_is_stuck_it_says_so(db: Database) -> None:
    done = pyidem(db, "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No key is stuck.\n")
    assert pyidem_json(db, "list") == []


def test_keys_are_shown_as_they_are_and_cannot_steer_the_terminal(db: Database) -> None:
    stick(db, ("[bold]scope[/bold]", "k" * 255))
    done = pyidem(db, "list")
    assert "[bold]scope[/bold]" in done.stdout
    assert "k" * 255 in done.stdout
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments", [("--state", "stuck"), ("--older-than", "1 hour"), ("--limit", "-1"), ("--nonsense",)]
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = pyidem(None, "list", *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr


@pytest.mark.parametrize("command", [("list",), ("show", "s", "k")])
def test_a_role_without_rights_is_told_how_to_get_them(command: tuple[str, ...], db: Database) -> None:
    role = db.create_role("nobody")
    done = pyidem(db, *command, user=role)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"select idem.grant_operator('{role}');" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("show", "s", "k"),
        ("resolve", "--all", "--action", "retry", "--reason", "testing"),
        ("sweep", "--resolver", "json:dumps"),
    ],
)
def test_without_server_or_installation_it_says_so_in_a_line(command: tuple[str, ...], empty_db: Database) -> None:
    done = pyidem(None, *command, "--dsn", "host=127.0.0.1 port=1")
    assert done.returncode == 1
    assert done.stderr.startswith("pyidem: cannot connect: ")
    assert done.stderr.count("\n") == 1
    done = pyidem(empty_db, *command)
    assert done.returncode == 1
    assert done.stderr == f"pyidem: pyidem is not installed in database {empty_db.name}. Install it: pyidem upgrade\n"


def test_a_monitor_may_list(keys: Database) -> None:
    role = keys.create_role("watcher")
    with keys.connect(user=keys.owner, autocommit=True) as owner:
        owner.execute("select idem.grant_monitor(%s)", [role])
    done = pyidem(keys, "list", user=role)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 4
