"""Speaks the line protocol of the conformance suite for psql: see ../README.md. Each session is a psql of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MARK = "conformance: end of answer"
BYTES = {"body", "fingerprint"}
TYPES = {
    "token": "uuid",
    "lease": "interval",
    "retry_in": "interval",
    "keys": "text[]",
    "ignore": "text[]",
    "include": "text[]",
    "handler": "regprocedure",
}
FAILED = "FA113"

# the table of SQLSTATEs in idem.sql
KINDS = {
    "IK001": "key_invalid",
    "IK002": "lost_reservation",
    "IK003": "no_such_reservation",
    "IK004": "wrong_mode",
    "IK005": "not_completed",
    "IK006": "no_such_policy",
    "IK007": "limit_exceeded",
}


class SqlError(Exception):
    """What psql was told by the server."""

    def __init__(self, sqlstate, code):
        super().__init__(sqlstate)
        self.sqlstate = sqlstate
        self.code = code


class Psql:
    """One psql, fed with statements."""

    def __init__(self, user):
        # line by line also where the output is no terminal
        command = ["stdbuf", "-oL", "psql", "-X", "-q", "-A", "-t"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._process = subprocess.Popen(command, env=os.environ | {"PGUSER": user}, encoding="utf-8", **pipes)
        self.send("\\set VERBOSITY verbose\n\\set SHOW_CONTEXT never\nselect")

    def send(self, statement):
        """Send a statement and return what it printed."""
        self._process.stdin.write(f"{statement}\n;\n\\echo {MARK} :SQLSTATE\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith(MARK):
                sqlstate = line.split()[-1]
                break
            printed.append(line)
        else:
            raise SystemExit(f"psql has ended: {''.join(printed)}")
        if sqlstate != "00000":
            detail = re.search(r"^DETAIL:  (\{.*\})$", "".join(printed), re.MULTILINE)
            raise SqlError(sqlstate, json.loads(detail[1]).get("code") if detail else None)
        return "".join(printed)

    def close(self):
        """End it as `\\q` does."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


sessions = {}
prepared = set()


def quoted(path):
    """What psql reads as one word, whatever is in the path."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "''") + "'"


def open_session(request):
    sessions[request["session"]] = psql = Psql(request["user"])
    if request["user"] not in prepared:
        prepared.add(request["user"])
        psql.send("".join(f"\\ir {quoted(HERE / name)}\n" for name in ("idem.sql", "refund.sql")) + "select")
    return {}


def close_session(request):
    sessions.pop(request["session"]).close()
    return {}


def token(_):
    made = subprocess.run(["cat", "/proc/sys/kernel/random/uuid"], check=True, capture_output=True, text=True)
    return {"token": made.stdout.strip()}


def call(request):
    named = ", ".join(f"{name} => {literal(name, value)}" for name, value in request["arguments"].items())
    printed = sessions[request["session"]].send(
        f"select coalesce(json_agg(row_to_json(r)), '[]') from (select * from idem.{request['function']}({named})) as r"
    )
    rows = json.loads(printed)
    if request["function"].endswith("_complete") or not rows:
        return {"rows": rows}
    return {"rows": [{column: hexadecimal(column, value) for column, value in row.items()} for row in rows]}


def atomic(request):
    asked, work = request["request"], request["work"]
    psql = sessions[request["session"]]
    answer = f"{work.get('status')}, {headers(work.get('headers'))}, {literal('body', work.get('body'))}"
    end = f"raise exception using errcode = '{FAILED}'" if work.get("fail") else f"return row({answer})::idem.response"
    psql.send(
        "create or replace function played(body bytea) returns idem.response language plpgsql as"
        f" $played$ begin execute {literal('sql', work['sql'])}; {end}; end $played$"
    )
    return answered(psql, asked["scope"], asked, "played", asked.get("policy"))


def refund(request):
    asked = {"method": "POST", "path": "/refunds", "content_type": "application/json"} | request
    return answered(sessions[request["session"]], request["scope"], asked, "refund", None)


def answered(psql, scope, asked, work, policy):
    names = ["key_header", "method", "path", "body", "content_type"]
    arguments = ", ".join([literal("scope", scope), *(literal(name, asked[name]) for name in names)])
    try:
        printed = psql.send(
            f"select row_to_json(a) from answer_once({arguments}, '{work}', {literal('policy', policy)}) as a"
        )
    except SqlError as error:
        if error.sqlstate == FAILED:
            return {"failed": True}
        raise
    return {column: hexadecimal(column, value) for column, value in json.loads(printed).items()}


def statement(text):
    def send(request):
        sessions[request["session"]].send(text(request))
        return {}

    return send


def literal(name, value):
    match value:
        case None:
            return "null"
        case bool() | int():
            return str(value).lower()
        case {"bytes": digits}:
            return f"'\\x{digits}'::bytea"
        case list():
            return f"array[{', '.join(literal('element', one) for one in value)}]::text[]"
    cast = f"::{TYPES[name]}" if name in TYPES else ""
    return "'" + value.replace("'", "''") + "'" + cast


def headers(pairs):
    return "null" if pairs is None else literal("headers", json.dumps(pairs, ensure_ascii=False)) + "::jsonb"


def hexadecimal(column, value):
    return {"bytes": value.removeprefix("\\x")} if column in BYTES and value is not None else value


ACTIONS = {
    "open": open_session,
    "close": close_session,
    "token": token,
    "begin": statement(
        lambda request: f"begin isolation level {request['isolation']}" if "isolation" in request else "begin"
    ),
    "commit": statement(lambda _: "commit"),
    "rollback": statement(lambda _: "rollback"),
    "execute": statement(lambda request: request["sql"]),
    "call": call,
    "atomic": atomic,
    "refund": refund,
}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = ACTIONS[request["do"]](request)
    except SqlError as error:
        kind = KINDS.get(error.sqlstate)
        answer = {"error": {"sqlstate": error.sqlstate, "code": error.code if kind else None, "kind": kind}}
    print(json.dumps(answer), flush=True)
for session in sessions.values():
    session.close()
