"""`pyidem resolve`: a person decides, about one key or about many, and sees first what is going to be done."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cli.support import at_terminal, outcome, pyidem, pyidem_json, stick
from tests.support.database import OWNER, Database

COMPLETE = ("--action", "complete", "--reason", "the provider says so", "--status", "201")
RETRY = ("--action", "retry", "--reason", "the provider knows nothing of it")


def stored(database: Database, key: str = "k") -> Any:
    with psycopg.connect(database.dsn) as connection:
        return connection.execute("select status, headers, body from idem.lookup('s', %s)", [key]).fetchone()


def test_an_answer_is_stored_and_the_decision_is_on_record(db: Database) -> None:
    stick(db, ("s", "k"))
    answer = ("--header", "Location: /refunds/1", "--header", "X-A: 1", "--header", "X-A: 2", "--body", '{"id": 1}')

    done = pyidem(db, "resolve", "s", "k", *COMPLETE, *answer, "--yes")

    assert (done.returncode, done.stderr) == (0, "")
    assert "the work was done; every attempt with such a key gets status 201 and a body of 9 bytes" in done.stdout
    assert done.stdout.endswith("\nResolved 1 key.\n")
    assert stored(db) == (201, [["Location", "/refunds/1"], ["X-A", "1"], ["X-A", "2"]], b'{"id": 1}')
    event = next(each for each in pyidem_json(db, "show", "s", "k")["history"] if each["event"] == "resolved")
    assert (event["by_role"], event["reason"]) == (OWNER, "the provider says so")


def test_a_body_can_be_any_file(db: Database, tmp_path: Path) -> None:
    stick(db, ("s", "k"), ("s", "empty"))
    (tmp_path / "body").write_bytes(bytes(range(256)))
    (tmp_path / "empty").touch()
    for key, name in (("k", "body"), ("empty", "empty")):
        assert pyidem(db, "resolve", "s", key, *COMPLETE, "--body-file", name, "--yes", cwd=tmp_path).returncode == 0
    assert stored(db)[2] == bytes(range(256))
    assert stored(db, "empty")[2] == b""


def test_without_answer_there_is_none(db: Database) -> None:
    stick(db, ("s", "k"))
    pyidem(db, "resolve", "s", "k", "--action", "complete", "--reason", "why", "--yes")
    assert stored(db) == (None, None, None)


@pytest.mark.parametrize(("action", "state"), [("release", "absent"), ("retry", "released")])
def test_the_work_may_run_again(action: str, state: str, db: Database) -> None:
    stick(db, ("s", "k"))
    done = pyidem(db, "resolve", "s", "k", "--action", action, "--reason", "why", "--yes")
    assert done.returncode == 0
    assert outcome(db, "s", "k") == state


def test_a_dry_run_shows_the_keys_and_changes_nothing(db: Database) -> None:
    stick(db, ("s", "a"), ("s", "b"))
    done = pyidem(db, "resolve", "--all", *COMPLETE, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:3]] == [["s", "a", "lapsed"], ["s", "b", "lapsed"]]
    assert "complete 2 keys: the work was done" in done.stdout
    assert pyidem_json(db, "resolve", "--all", *COMPLETE, "--dry-run") == {
        "dry_run": True,
        "keys": [{"scope": "s", "key": key, "attempt": 1, "result": "would_be_resolved"} for key in "ab"],
    }
    assert outcome(db, "s", "a") == outcome(db, "s", "b") == "lapsed"


def test_300_stuck_keys_are_settled_in_one_command_after_a_dry_run(db: Database) -> None:
    stick(db, *[("stuck", f"{number:03}") for number in range(300)], ("other", "k"))

    tried = pyidem(db, "resolve", "--scope", "stuck", *COMPLETE, "--dry-run")
    assert "... and 295 more" in tried.stdout
    assert "complete 300 keys" in tried.stdout
    assert len(pyidem_json(db, "list", "--limit", "0")) == 301

    done = pyidem(db, "resolve", "--scope", "stuck", *COMPLETE, "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Resolved 300 keys.")
    assert [row["scope"] for row in pyidem_json(db, "list")] == ["other"]
    assert len(pyidem_json(db, "list", "--state", "completed", "--limit", "0")) == 300


def test_the_filters_are_those_of_list(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("insert into idem.policies (name) values ('mine')")
    stick(db, ("s", "old"), ("s", "new"))
    stick(db, ("s", "mine"), policy="mine")
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute(
            "update idem_private.reservation set created_at = now() - interval '1 day' where key = 'old'"
        )
    for arguments in (("--older-than", "1h"), ("--policy", "mine")):
        pyidem(db, "resolve", *arguments, *COMPLETE, "--yes")
    assert [row["key"] for row in pyidem_json(db, "list")] == ["new"]


def test_only_stuck_keys_are_meant_by_all(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("select idem.reserve('s', 'working', mode => 'leased')")
    done = pyidem(db, "resolve", "--all", *RETRY, "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No key is stuck.\n")
    assert outcome(db, "s", "working") == "in_progress"


@pytest.mark.parametrize(("answer", "code", "state"), [("n", 1, "lapsed"), ("y", 0, "released")])
def test_at_a_terminal_it_asks(answer: str, code: int, state: str, db: Database) -> None:
    stick(db, ("s", "k"))
    done = at_terminal(db, answer, "resolve", "s", "k", *RETRY)
    assert "retry 1 key: the next attempt runs the work again, with the same downstream key." in done.stdout
    assert "Go on? [y/N]" in done.stdout
    assert done.returncode == code
    assert outcome(db, "s", "k") == state


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_where_nobody_can_be_asked_it_wants_a_yes(json_: tuple[str, ...], db: Database) -> None:
    stick(db, ("s", "k"))
    done = pyidem(db, "resolve", "s", "k", *RETRY, *json_)
    assert done.returncode == 1
    assert "Give --yes to go on." in done.stderr
    assert outcome(db, "s", "k") == "lapsed"


def test_one_that_is_refused_does_not_stop_the_others(db: Database) -> None:
    stick(db, *[("s", str(number)) for number in range(5)])
    with psycopg.connect(db.dsn) as connection:
        connection.execute(
            "create function refuse() returns trigger language plpgsql as"
            " $$begin raise exception 'not this one'; end$$;"
            "create trigger refuse before update on idem_private.reservation for each row"
            " when (old.key = '2') execute function refuse()"
        )
    done = pyidem(db, "resolve", "--all", *COMPLETE, "--yes", "--json")
    results = json.loads(done.stdout)
    assert done.returncode == 3
    assert results["resolved"] == 4
    assert [(each["key"], each["result"]) for each in results["keys"] if each["result"] != "resolved"] == [
        ("2", "refused")
    ]
    again = pyidem(db, "resolve", "--all", *COMPLETE, "--yes")
    assert again.returncode == 1
    assert again.stdout.endswith("Resolved 0 of 1 key.\n")
    assert again.stderr == "'s' '2': not this one (SQLSTATE P0001)\n"
    assert outcome(db, "s", "2") == "lapsed"


def test_a_key_at_another_attempt_is_left_alone(db: Database) -> None:
    stick(db, ("s", "k"))
    done = pyidem(db, "resolve", "s", "k", *RETRY, "--attempt", "2", "--yes")
    assert done.returncode == 1
    assert done.stderr == "'s' 'k': it is at another attempt by now\n"
    assert outcome(db, "s", "k") == "lapsed"


def test_a_live_lease_is_broken_by_force_alone(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("select idem.reserve('s', 'k', mode => 'leased')")
    refused = pyidem(db, "resolve", "s", "k", *RETRY, "--yes")
    assert refused.returncode == 1
    assert "SQLSTATE IK004" in refused.stderr
    assert outcome(db, "s", "k") == "in_progress"
    assert pyidem(db, "resolve", "s", "k", *RETRY, "--force", "--yes").returncode == 0
    assert outcome(db, "s", "k") == "released"


def test_an_unknown_key_is_exit_code_1(db: Database) -> None:
    done = pyidem(db, "resolve", "s", "k", *RETRY, "--yes")
    assert (done.returncode, done.stderr) == (1, "pyidem: nothing is reserved under key 'k' in scope 's'\n")


def test_a_role_without_rights_is_told_once(db: Database) -> None:
    role = db.create_role("reader")
    stick(db, ("s", "a"), ("s", "b"))
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute(f"grant usage on schema idem to {role}; grant select on idem.keys, idem.policies to {role}")
    done = pyidem(db, "resolve", "--all", *RETRY, "--yes", user=role)
    assert done.returncode == 1
    assert done.stderr.count("42501") == 1
    assert "grant_operator" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        RETRY,
        ("s", *RETRY),
        ("s", "k", "--all", *RETRY),
        ("s", "k", "--scope", "s", *RETRY),
        ("--all", "--force", *RETRY),
        ("--all", "--attempt", "1", *RETRY),
        ("s", "k", "--action", "retry"),
        ("s", "k", "--reason", "why"),
        ("s", "k", "--action", "forget", "--reason", "why"),
        ("s", "k", *RETRY, "--status", "200"),
        ("s", "k", *COMPLETE, "--body", "a", "--body-file", "/dev/null"),
        ("s", "k", *COMPLETE, "--header", "nonsense"),
        ("s", "k", *COMPLETE, "--body-file", "/no/such/file"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_changes_nothing(arguments: tuple[str, ...], db: Database) -> None:
    stick(db, ("s", "k"))
    assert pyidem(db, "resolve", *arguments, "--yes").returncode == 2
    assert outcome(db, "s", "k") == "lapsed"
