"""The refunds endpoint as a handler of HTTP frameworks, on real servers."""

import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conformance.conftest import Theatre
from tests.conformance.counting import count
from tests.conformance.languages import Language, chosen
from tests.support.waiting import wait_until

HANDLERS = [(language, framework) for language in chosen() for framework in language.serve]
GATE = 7
ACTIVE = (
    "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and "
)
ORDER = b'{"order": "A-17", "amount": 500}'
HELD = b'{"order": "held", "amount": 500}'


class Served:
    """A server at work. `post` sends a refund as one of its clients."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}/refunds"

    def post(self, key: str | list[str] | None, body: bytes, *, client: str = "north") -> httpx.Response:
        keys = [key] if isinstance(key, str) else key or []
        headers = [("X-Client", client), ("Content-Type", "application/json")]
        headers += [("Idempotency-Key", one) for one in keys]
        return httpx.post(self._url, content=body, headers=headers, timeout=60, trust_env=False)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self._process.kill()
        self._process.wait()


Serve = Callable[[], AbstractContextManager[Served]]


@pytest.fixture(params=HANDLERS, ids=[f"{language.key}-{framework}" for language, framework in HANDLERS])
def serve(
    request: pytest.FixtureRequest,
    prepared: Callable[[Language], Language],
    theatre: Theatre,
    tmp_path: Path,
) -> Serve:
    """A function that starts a server for a block."""
    language, framework = request.param
    prepared(language)
    theatre.admin.execute(f"""
        create function at_the_gate() returns trigger language plpgsql as $$
        begin
            perform pg_advisory_xact_lock_shared({GATE});
            return new;
        end
        $$;
        create trigger gate before insert on refunds for each row when (new."order" = 'held')
            execute function at_the_gate()
    """)
    environment = {**theatre.database.environment, "PGUSER": theatre.users["client"]}

    @contextmanager
    def serving() -> Iterator[Served]:
        with (tmp_path / "server.log").open("ab") as log:
            process = subprocess.Popen(
                language.serving(framework),
                cwd=language.folder,
                env=os.environ | environment | language.settings,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said.strip().isdigit(), f"{said}{(tmp_path / 'server.log').read_text()}"
            yield Served(process, int(said))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    return serving


def refunds(theatre: Theatre) -> int:
    return count(theatre.admin, "select count(*) from refunds")


def test_a_refund_is_made_once_and_answered_again_byte_for_byte(serve: Serve, theatre: Theatre) -> None:
    with serve() as server:
        first = server.post("k", ORDER)
        again = server.post('"k"', b'{"amount": 5e2, "order": "A-17"}')
        assert first.status_code == again.status_code == 201
        assert first.json()["order"] == "A-17"
        assert first.headers["location"] == again.headers["location"] == f"/refunds/{first.json()['id']}"
        # Express adds the charset to what is text, to both
        assert first.headers["content-type"] == again.headers["content-type"]
        assert first.headers["content-type"].startswith("application/json")
        assert first.content == again.content
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert refunds(theatre) == 1

        assert "idempotency-replayed" not in server.post("k", ORDER, client="south").headers
        assert [server.post(None, ORDER).status_code for _ in range(2)] == [201, 201]
        assert refunds(theatre) == 4


def test_what_is_no_proper_request_is_refused(serve: Serve, theatre: Theatre) -> None:
    with serve() as server:
        assert server.post("k", ORDER).status_code == 201
        other = server.post("k", b'{"order": "A-17", "amount": 900}')
        assert other.status_code == 422
        assert other.headers["content-type"] == "application/problem+json"
        assert (other.json()["code"], other.json()["mismatched"]) == ("idempotency_key_reused", ["/amount"])

        for key in ("no key", '"open', ["one", "two"]):
            refused = server.post(key, ORDER)
            assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid")

        nothing = [server.post("zero", b'{"order": "A-17", "amount": 0}') for _ in range(2)]
        assert [answer.status_code for answer in nothing] == [422, 422]
        assert [answer.json() for answer in nothing] == [{"error": "amount"}] * 2
        assert ["idempotency-replayed" in answer.headers for answer in nothing] == [False, True]
        assert refunds(theatre) == 1


def test_requests_at_once_make_one_refund_and_none_waits(serve: Serve, theatre: Theatre) -> None:
    with serve() as server, ThreadPoolExecutor(9) as threads:
        theatre.admin.execute("select pg_advisory_lock(%s)", [GATE])
        first = threads.submit(server.post, "k", HELD)
        wait_until(lambda: at_the_gate(theatre) == 1, "the first request to be at work")
        told = list(threads.map(lambda _: server.post("k", HELD), range(8)))
        assert {answer.status_code for answer in told} == {409}
        assert {answer.headers["retry-after"] for answer in told} == {"1"}
        assert {answer.json()["code"] for answer in told} == {"idempotency_request_in_progress"}
        theatre.admin.execute("select pg_advisory_unlock(%s)", [GATE])
        assert first.result().status_code == 201

        answers = list(threads.map(lambda _: server.post("l", ORDER), range(9)))
        made = [answer for answer in answers if answer.status_code == 201]
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len([answer for answer in made if "idempotency-replayed" not in answer.headers]) == 1
        assert len({answer.content for answer in made}) == 1
    assert refunds(theatre) == 2


def test_a_server_that_is_killed_at_work_leaves_the_key_to_the_next_one(serve: Serve, theatre: Theatre) -> None:
    with serve() as server, ThreadPoolExecutor(1) as threads:
        theatre.admin.execute("select pg_advisory_lock(%s)", [GATE])
        first = threads.submit(server.post, "k", HELD)
        wait_until(lambda: at_the_gate(theatre) == 1, "the request to be at work")
        server.kill()
        assert isinstance(first.exception(), httpx.TransportError)
        theatre.admin.execute("select pg_advisory_unlock(%s)", [GATE])
    wait_until(lambda: at_work(theatre) == 0, "the database to notice")
    assert refunds(theatre) == 0
    with serve() as server:
        again = server.post("k", HELD)
        assert again.status_code == 201
        assert "idempotency-replayed" not in again.headers
    assert refunds(theatre) == 1


def at_the_gate(theatre: Theatre) -> int:
    return count(theatre.admin, ACTIVE + "wait_event = 'advisory'")


def at_work(theatre: Theatre) -> int:
    return count(theatre.admin, ACTIVE + "xact_start is not null and pid <> pg_backend_pid()")
