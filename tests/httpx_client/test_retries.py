"""What is tried again, after which pause, and when it ends."""

from typing import Any

import httpx
import pytest

from pyidem._retries import retry_after
from pyidem.httpx import Retries
from tests.httpx_client.conftest import URL, Caller, Script

EPOCH = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
DATE = "Fri, 15 Jan 2027 08:00:00 GMT"
TWO_SECONDS_LATER = "Fri, 15 Jan 2027 08:00:02 GMT"
DONE = httpx.codes.CREATED


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers=headers, json={"code": code, "status": status})


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.ReadError,
        httpx.ReadTimeout,
        httpx.WriteError,
        httpx.WriteTimeout,
        httpx.PoolTimeout,
        httpx.RemoteProtocolError,
        httpx.ProxyError,
    ],
)
def test_a_request_without_an_answer_is_sent_again(error: type[Exception], caller: Caller) -> None:
    script = Script(error("lost"), httpx.Response(201))

    response = caller.post(script)

    assert response.status_code == DONE
    assert response.extensions["idempotency"].attempts == 2


@pytest.mark.parametrize("error", [httpx.UnsupportedProtocol, httpx.LocalProtocolError, KeyError])
def test_a_mistake_of_the_caller_is_not(error: type[Exception], caller: Caller) -> None:
    script = Script(error("mistake"))

    with pytest.raises(error):
        caller.post(script)

    assert len(script.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_answer_that_is_not_final_is_asked_for_again(status: int, caller: Caller) -> None:
    script = Script(httpx.Response(status), httpx.Response(status), httpx.Response(201))

    assert caller.post(script).status_code == DONE
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        problem(409, "idempotency_request_in_progress", **{"Retry-After": "1"}),
        problem(409, "idempotency_request_in_progress"),
        problem(409, "idempotency_outcome_unknown", **{"Retry-After": "1"}),
        httpx.Response(409, headers={"Retry-After": "1"}),
        httpx.Response(409, json={"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}}),
    ],
    ids=["in progress", "in progress without a time", "unknown", "with a time", "in Stripe's words"],
)
def test_a_conflict_with_an_attempt_at_work_is_asked_for_again(answer: httpx.Response, caller: Caller) -> None:
    assert caller.post(Script(answer, httpx.Response(201))).status_code == DONE


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(409),
        httpx.Response(409, json={"code": "order_already_refunded"}),
        httpx.Response(409, json=["idempotency_request_in_progress"]),
        httpx.Response(409, content=b'{"code": "idempotency_request_in_progress"'),
        httpx.Response(409, content=b"[" * 100_000),
    ],
    ids=["empty", "of the business", "no object", "no JSON", "hostile"],
)
def test_a_conflict_of_another_kind_is_an_answer(answer: httpx.Response, caller: Caller) -> None:
    script = Script(answer)

    response = caller.post(script)

    assert response.status_code == 409
    assert response.content == answer.content
    assert len(script.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422, 425, 428, 501, 505])
def test_other_refusals_are_answers_even_with_retry_after(status: int, caller: Caller) -> None:
    script = Script(problem(status, "idempotency_request_in_progress", **{"Retry-After": "1"}))

    assert caller.post(script).status_code == status
    assert len(script.requests) == 1


@pytest.mark.parametrize("status", [409, 429, 500, 503])
@pytest.mark.parametrize("marker", ["Idempotency-Replayed", "Idempotent-Replayed"])
def test_a_stored_answer_is_final_whatever_its_status(status: int, marker: str, caller: Caller) -> None:
    script = Script(httpx.Response(status, headers={marker: "true", "Retry-After": "1"}))

    assert caller.post(script).status_code == status
    assert len(script.requests) == 1


def test_pauses_are_drawn_up_to_a_bound_that_doubles(caller: Caller) -> None:
    retries = Retries(attempts=7, first_pause=0.5, longest_pause=4)

    caller.post(Script(*[httpx.Response(503) for _ in range(7)]), retries)

    assert caller.time.pauses == [0.5, 1, 2, 4, 4, 4]


@pytest.mark.parametrize("drawn", [0.0, 0.25])
def test_a_pause_may_be_any_part_of_its_bound(drawn: float, caller: Caller) -> None:
    caller.random = drawn

    caller.post(Script(httpx.Response(503), httpx.ReadError("lost"), httpx.Response(201)), Retries(first_pause=2))

    assert caller.time.pauses == [2 * drawn, 4 * drawn]


@pytest.mark.parametrize("value", ["2", " 2 ", TWO_SECONDS_LATER])
def test_retry_after_is_obeyed_and_the_back_off_added(value: str, caller: Caller) -> None:
    caller.random = 0.5

    script = Script(httpx.Response(503, headers={"Retry-After": value}), httpx.Response(201))
    caller.post(script, Retries(first_pause=0.1), now=lambda: EPOCH)

    assert caller.time.pauses == [2.05]


def test_a_retry_after_that_is_too_long_ends_the_call_at_once(caller: Caller) -> None:
    script = Script(httpx.Response(429, headers={"Retry-After": "31"}))

    assert caller.post(script, Retries(longest_retry_after=30)).status_code == 429
    assert caller.time.pauses == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "1.5"}, None),
        ({"Retry-After": "٣"}, None),
        ({"Retry-After": "Fri, 99 Jan 2027 08:00:00 GMT"}, None),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": TWO_SECONDS_LATER}, 2),
        ({"Retry-After": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
        ({"Retry-After": "Fri, 15 Jan 2027 09:00:03 +0100"}, 3),
        ({"Retry-After": "Friday, 15-Jan-27 08:00:04 GMT"}, 4),
        ({"Retry-After": "Fri Jan 15 08:00:05 2027"}, 5),
    ],
)
def test_retry_after_is_a_number_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, EPOCH) == seconds


@pytest.mark.parametrize("wrong", [-86_400.0, 86_400.0])
def test_a_date_is_measured_by_the_clock_of_the_server(wrong: float) -> None:
    assert retry_after({"Retry-After": TWO_SECONDS_LATER, "Date": DATE}, EPOCH + wrong) == 2


def test_the_last_answer_is_handed_over_when_the_attempts_are_used_up(caller: Caller) -> None:
    script = Script(*[httpx.Response(503, text=f"{number}") for number in range(3)])

    response = caller.post(script, Retries(attempts=3))

    assert (response.status_code, response.text) == (503, "2")
    assert response.extensions["idempotency"].attempts == 3


def test_the_last_error_is_raised_when_the_attempts_are_used_up(caller: Caller) -> None:
    script = Script(*[httpx.ConnectError(f"{number}") for number in range(3)])

    with pytest.raises(httpx.ConnectError, match="2"):
        caller.post(script, Retries(attempts=3))


def test_one_attempt_means_no_retry(caller: Caller) -> None:
    assert caller.post(Script(httpx.Response(503)), Retries(attempts=1)).status_code == 503


def test_no_attempt_begins_after_the_time_is_over(caller: Caller) -> None:
    script = Script(*[httpx.Response(503) for _ in range(100)])

    caller.post(script, Retries(attempts=100, total_time=10, first_pause=2, longest_pause=2))

    assert caller.time.pauses == [2, 2, 2, 2]


def test_no_attempt_waits_longer_for_the_network_than_there_is_time(caller: Caller) -> None:
    script = Script(httpx.Response(503), httpx.Response(201))
    timeout = httpx.Timeout(5, read=None)

    caller.send(
        script,
        lambda client: client.build_request("POST", URL, timeout=timeout),
        Retries(total_time=10, first_pause=8),
    )

    assert [request.extensions["timeout"] for request in script.requests] == [
        {"connect": 5, "read": 10, "write": 5, "pool": 5},
        {"connect": 2, "read": 2, "write": 2, "pool": 2},
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"total_time": 0}, {"first_pause": -1}, {"longest_pause": -1}, {"longest_retry_after": -1}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least one attempt|not negative"):
        Retries(**wrong)


def test_each_retry_is_logged_with_its_key_and_reason(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    script = Script(httpx.ReadTimeout("slow"), httpx.Response(503), httpx.Response(201))

    with caplog.at_level("INFO", logger="pyidem"):
        caller.post(script)

    records = [record for record in caplog.records if record.name == "pyidem"]
    assert [(record.message, record.reason, record.attempt) for record in records] == [
        ("httpx.retry", "ReadTimeout('slow')", 1),
        ("httpx.retry", "503", 2),
    ]
    assert {record.idem_key for record in records} == set(script.keys)
