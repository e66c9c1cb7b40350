"""Speaks the line protocol of the conformance suite: see ../README.md."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from refund import refund

from pyidem import HttpCall, Idem, IdempotencyError, Response, translate

JSON_ARGUMENTS = {"headers", "fields", "state", "args"}

Request = Mapping[str, Any]

sessions: dict[str, psycopg.Connection] = {}


class WorkFailed(Exception):
    """What work raises where it is told to fail."""


def start(request: Request) -> None:
    sessions[request["session"]] = psycopg.connect(user=request["user"], autocommit=True)


def close(request: Request) -> None:
    sessions.pop(request["session"]).close()


def token(_: Request) -> Request:
    return {"token": str(uuid4())}


def begin(request: Request) -> None:
    isolation = request.get("isolation")
    execute({**request, "sql": f"begin isolation level {isolation}" if isolation else "begin"})


def commit(request: Request) -> None:
    execute({**request, "sql": "commit"})


def rollback(request: Request) -> None:
    execute({**request, "sql": "rollback"})


def execute(request: Request) -> None:
    sessions[request["session"]].execute(request["sql"])


def call(request: Request) -> Request:
    """Call any function at all, null arguments too, which the methods of Idem are too strict for."""
    arguments = {name: adapted(name, value) for name, value in request["arguments"].items()}
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments
    )
    statement = sql.SQL("select * from {}({})").format(sql.Identifier("idem", request["function"]), named)
    cursor = sessions[request["session"]].cursor(row_factory=dict_row)
    return {"rows": cursor.execute(statement, arguments).fetchall()}


def adapted(name: str, value: Any) -> Any:
    return Jsonb(json.loads(value)) if name in JSON_ARGUMENTS and value is not None else value


def atomic(request: Request) -> Request:
    asked, work = request["request"], request["work"]
    http_call = HttpCall(
        asked["key_header"], asked["method"], asked["path"], asked["body"] or b"", asked["content_type"]
    )
    idem = Idem(sessions[request["session"]])
    with idem.atomic(asked["scope"], http_call, policy=asked.get("policy")) as op:
        if op.started:
            op.connection.execute(work["sql"])
            if work.get("fail"):
                raise WorkFailed
            op.complete(work["status"], work["body"], work["headers"])
    return answered(lambda: op.response)


def refunded(request: Request) -> Request:
    connection = sessions[request["session"]]
    return answered(lambda: refund(connection, request["scope"], request["key_header"], request["body"]))


def answered(answer: Callable[[], Response]) -> Request:
    try:
        response: Any = answer()
    except IdempotencyError as error:
        if error.response is None:
            raise
        response = error.response
    return {"status": response.status, "headers": response.headers or None, "body": response.body}


ACTIONS: Mapping[str, Callable[[Request], Request | None]] = {
    "open": start,
    "close": close,
    "token": token,
    "begin": begin,
    "commit": commit,
    "rollback": rollback,
    "execute": execute,
    "call": call,
    "atomic": atomic,
    "refund": refunded,
}


def act(request: Request) -> Request:
    try:
        return ACTIONS[request["do"]](request) or {}
    except WorkFailed:
        return {"failed": True}
    except (psycopg.Error, IdempotencyError) as error:
        raised = translate(error)
        if isinstance(raised, IdempotencyError):
            kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(raised).__name__).lower()
            return {"error": {"sqlstate": raised.sqlstate, "code": raised.detail.get("code"), "kind": kind}}
        return {"error": {"sqlstate": getattr(error, "sqlstate", None), "code": None, "kind": None}}


def decode(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["bytes"]) if value.keys() == {"bytes"} else value


def encode(value: Any) -> Any:
    match value:
        case bytes():
            return {"bytes": value.hex()}
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
    raise TypeError(f"no JSON: {value!r}")


for line in sys.stdin:
    print(json.dumps(act(json.loads(line, object_hook=decode)), default=encode), flush=True)
for session in sessions.values():
    session.close()
