"""One tree of errors, recognised by SQLSTATE."""

import json
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

import pyidem
from pyidem import (
    HttpReservation,
    IdempotencyError,
    InProgress,
    KeyExpired,
    KeyInvalid,
    KeyMissing,
    KeyReused,
    LostReservation,
    NoSuchReservation,
    OutcomeUnknown,
    Reservation,
    translate,
)
from pyidem._errors import BY_SQLSTATE, answered_error, outcome_error
from tests.support.database import Database

OUTCOMES: dict[str, type[IdempotencyError]] = {
    "mismatch": KeyReused,
    "in_progress": InProgress,
    "unresolved": OutcomeUnknown,
    "expired": KeyExpired,
}


def test_every_code_has_one_class() -> None:
    assert {state: kind.__name__ for state, kind in BY_SQLSTATE.items()} == {
        "IK001": "KeyInvalid",
        "IK002": "LostReservation",
        "IK003": "NoSuchReservation",
        "IK004": "WrongMode",
        "IK005": "NotCompleted",
        "IK006": "NoSuchPolicy",
        "IK007": "LimitExceeded",
    }


def test_every_error_is_public_and_in_the_drawing_of_the_tree() -> None:
    kinds = {kind.__name__: kind for kind in vars(pyidem).values() if isinstance(kind, type)}
    errors = {name for name, kind in kinds.items() if issubclass(kind, IdempotencyError)}
    drawing = pyidem._errors.__doc__ or ""
    assert errors <= set(pyidem.__all__)
    assert {name for name in errors if name not in drawing} == set()


@pytest.mark.parametrize(("outcome", "kind"), OUTCOMES.items())
def test_each_outcome_without_an_answer_has_its_error_and_problem(outcome: str, kind: type[IdempotencyError]) -> None:
    error = outcome_error(Reservation(outcome, mismatched=["/a"], retry_after=timedelta(seconds=2)))
    assert type(error) is kind
    assert error.problem is not None
    assert {"type", "title", "status", "detail", "code"} <= error.problem.keys()
    assert json.loads(json.dumps(error.problem)) == error.problem
    assert getattr(error, "retry_after", None) in (None, timedelta(seconds=2))


@pytest.mark.parametrize("outcome", ["started", "replay"])
def test_work_and_answers_are_no_errors(outcome: str) -> None:
    assert outcome_error(Reservation(outcome)) is None


def test_http_answers_have_the_documented_codes() -> None:
    kinds = (KeyMissing, KeyInvalid, KeyReused, InProgress, OutcomeUnknown, KeyExpired)
    assert {kind.code: kind.status for kind in kinds} == {
        "idempotency_key_missing": 400,
        "idempotency_key_invalid": 400,
        "idempotency_key_reused": 422,
        "idempotency_request_in_progress": 409,
        "idempotency_outcome_unknown": 409,
        "idempotency_key_expired": 410,
    }
    assert LostReservation("lost").problem is None


def test_an_error_of_psycopg_is_translated_with_its_detail_and_hint(client_db: Database) -> None:
    with psycopg.connect(client_db.dsn) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute("select idem.complete('s', 'no such key', gen_random_uuid())")
    error = translate(raised.value)
    assert isinstance(error, NoSuchReservation)
    assert (str(error), error.detail, bool(error.hint)) == (
        "there is no such reservation",
        {"code": "no_such_reservation"},
        True,
    )


def test_an_error_that_sqlalchemy_wraps_is_translated_as_well(client_db: Database) -> None:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(client_db.dsn))
    with engine.connect() as connection, pytest.raises(DBAPIError) as raised:
        connection.execute(text("select idem.reserve('', 'k')"))
    engine.dispose()
    error = translate(raised.value)
    assert isinstance(error, KeyInvalid)
    assert error.detail == {"code": "empty", "argument": "scope"}


def test_other_errors_stay_what_they_are(client_db: Database) -> None:
    with psycopg.connect(client_db.dsn) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute("select idem.reserve('s', 'k', mode => 'no such mode')")
    assert translate(raised.value) is raised.value
    assert isinstance(raised.value, psycopg.errors.InvalidParameterValue)
    own = LostReservation("lost")
    assert translate(own) is own


def test_a_problem_reads_as_the_databases_own_does(client_db: Database) -> None:
    with client_db.connect() as owner:
        rows = owner.execute(
            "select outcome, status, code, title, detail from idem_private.http_problems('ietf')"
        ).fetchall()
    assert {outcome for outcome, *_ in rows} == {*OUTCOMES, "missing", "invalid"}
    for outcome, *told in rows:
        error = outcome_error(Reservation(outcome)) or answered_error(HttpReservation(outcome, status=told[0]))
        assert error is not None
        assert error.problem == {"type": "about:blank"} | dict(
            zip(("status", "code", "title", "detail"), told, strict=True)
        )
