"""`pyidem show`: all that an operator needs to decide about one key."""

import shlex
import subprocess

import psycopg
import pytest

from tests.cli.support import PYIDEM, environment, outcome, pyidem, pyidem_json, stick
from tests.support.database import OWNER, Database

NAMES = [("client:42", "8e03978e"), ("it's a scope", "-k"), ("$(touch here)", '"; drop table keys')]


def facts(stdout: str) -> dict[str, str]:
    lines = stdout.partition("\n\n")[0].splitlines()
    return {line[:15].strip(): line[16:] for line in lines}


def test_a_stuck_key_is_shown_with_its_history_and_what_a_client_gets(db: Database) -> None:
    stick(db, ("client:42", "k"))
    done = pyidem(db, "show", "client:42", "k")
    assert (done.returncode, done.stderr) == (0, "")
    shown = facts(done.stdout)
    assert (shown["scope"], shown["key"], shown["state"]) == ("client:42", "k", "lapsed")
    assert (shown["policy"], shown["attempt"], shown["claims"]) == ("default", "1", "0")
    assert (shown["reason"], shown["waits for"]) == ("the provider timed out", "a sweeper, or a person")
    with psycopg.connect(db.dsn) as connection:
        row = connection.execute("select idem.downstream_key('client:42', 'k')").fetchone()
    assert shown["downstream key"] == str(row and row[0])
    assert "A client that sends this key now gets 409, outcome unknown." in done.stdout
    history = done.stdout.partition("What happened\n\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[2] for line in history] == ["attempt", "reserved", "deferred"]


def test_json_has_all_of_it(db: Database) -> None:
    stick(db, ("client:42", "k"))
    shown = pyidem_json(db, "show", "client:42", "k")
    assert (shown["state"], shown["attempt"], shown["claims"]) == ("lapsed", 1, 0)
    assert [event["event"] for event in shown["history"]] == ["reserved", "deferred"]
    assert shown["client_gets"].startswith("gets 409, outcome unknown")
    assert len(shown["commands"]) == 3


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[1])
@pytest.mark.parametrize(("action", "state"), [("complete", "completed"), ("release", "absent"), ("retry", "released")])
def test_the_commands_can_be_pasted(names: tuple[str, str], action: str, state: str, db: Database) -> None:
    stick(db, names)
    commands = pyidem_json(db, "show", "--", *names)["commands"]
    (command,) = [each for each in commands.values() if f"--action {action}" in each]
    assert shlex.split(command)[-2:] == list(names)

    pasted = command.replace("pyidem", shlex.quote(PYIDEM), 1) + " "
    pasted = pasted.replace(" -- ", " --yes -- ")
    subprocess.run(pasted, shell=True, check=True, env=environment(db, OWNER), stdout=subprocess.DEVNULL)

    assert outcome(db, *names) == state


@pytest.mark.parametrize(
    ("statement", "gets"),
    [
        ("select from idem.reserve('s', 'k', mode => 'leased')", "gets 409, request in progress"),
        (
            "select idem.complete('s', 'k', token, 201, body => 'the secret') from idem.reserve('s', 'k')",
            "gets the stored answer, status 201",
        ),
        (
            "select idem.defer('s', 'k', token) from idem.reserve('s', 'k', mode => 'leased', policy => 'again')",
            "takes over and runs the work as attempt 2, with the same downstream key",
        ),
        (
            "select idem.defer('s', 'k', token) from idem.reserve('s', 'k', mode => 'leased');"
            " select idem.resolve('s', 'k', 'retry', 'testing')",
            "runs the work as attempt 2",
        ),
        (
            "select idem.release('s', 'k', token) from idem.reserve('s', 'k', mode => 'leased')",
            "runs the work, as the first attempt",
        ),
    ],
    ids=["in_progress", "completed", "retry", "released", "absent"],
)
def test_it_says_what_a_client_gets_now(statement: str, gets: str, db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("insert into idem.policies (name, on_lapse) values ('again', 'retry')")
        connection.execute(statement.encode())
    done = pyidem(db, "show", "s", "k")
    assert f"A client that sends this key now {gets}" in done.stdout
    assert "the secret" not in done.stdout


def test_where_the_owner_may_be_at_work_every_command_needs_force(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("select idem.reserve('s', 'k', mode => 'leased')")
    commands = pyidem_json(db, "show", "s", "k")["commands"]
    assert [command for command in commands.values() if "resolve" in command]
    assert all("--force" in command for command in commands.values() if "resolve" in command)


def test_a_finished_key_offers_nothing_to_decide(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("select idem.once('s', 'k')")
    shown = pyidem_json(db, "show", "s", "k")
    assert (shown["state"], shown["commands"]) == ("completed", {})


def test_a_key_that_nobody_knows_is_exit_code_1(db: Database) -> None:
    done = pyidem(db, "show", "client:42", "k")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pyidem: nothing is known of key 'k' in scope 'client:42'\n"
