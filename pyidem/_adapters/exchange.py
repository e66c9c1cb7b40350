"""Several commands in one round trip, on the libpq functions that psycopg publishes.

psycopg's own pipeline mode sends every command by itself and waits in between: eleven waits for an atomic operation,
and twice the processor time of what is done here, where all is sent at once and awaited once. Values are dumped and
loaded by psycopg, as the connection's adapters say.

Nothing is prepared, and results come in binary form, which DateStyle and IntervalStyle do not reach.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import adapt, generators, postgres
from psycopg.abc import Buffer, PQGen, Transformer
from psycopg.adapt import PyFormat
from psycopg.pq import ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGconn, PGresult

from pyidem._calls import Call

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
AnyCursor = psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]
Commands = tuple[bytes, ...]

_COUNT = struct.Struct("!i")
_FIELD = struct.Struct("!Ii")
_TEXT, _JSONB = (postgres.types[name].oid for name in ("text", "jsonb"))


def exchange(
    connection: AnyConnection, before: Commands, call: Call[Any] | None, after: Commands = ()
) -> PQGen[list[Mapping[str, Any]]]:
    """Send commands, a call and more commands; return its rows, or raise the error of the first that failed.

    After a failure the server skips the rest. `connection.wait` runs this, under `connection.lock`.
    """
    pgconn = connection.pgconn
    transformer = adapt.Transformer(_Context(connection) if _reads_bytes(connection) else connection)
    posts: list[Callable[[], None]] = [partial(pgconn.send_query_params, command, None) for command in before]
    if call is not None:
        posts.append(_post(pgconn, transformer, call))
    posts += [partial(pgconn.send_query_params, command, None) for command in after]
    results = yield from (_at_once if psycopg.Pipeline.is_supported() else _one_by_one)(pgconn, posts)
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, encoding=connection.info.encoding)
    if results[-1].command_status == b"ROLLBACK":  # all that COMMIT of a failed transaction says
        raise psycopg.errors.InFailedSqlTransaction("the transaction had failed before: COMMIT was a rollback")
    return [] if call is None else _rows(transformer, results[len(before)], call.record)


def is_read_whole(cursor: AnyCursor, call: Call[Any]) -> bool:
    """Tell whether the answer is a record, and here; in an application's pipeline it comes when it is fetched.

    Elsewhere it is not fetched: psycopg would load it the way the application may have taught it to load the type.
    """
    return bool(call.record) and cursor.pgresult is not None


def rows_of(cursor: AnyCursor, call: Call[Any], fetched: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a call that a cursor has made."""
    if not call.record:
        return fetched
    assert cursor.pgresult is not None
    return [_record(adapt.Transformer(cursor), cursor.pgresult, call.record)]


def read_text(cursor: AnyCursor) -> None:
    """Have a cursor give text as text whatever the encoding."""
    if _reads_bytes(cursor.connection):
        _read_utf8(cursor.adapters)


def _reads_bytes(connection: AnyConnection) -> bool:
    """Tell whether psycopg hands out bytes for text: in SQL_ASCII, where it cannot know what they mean."""
    return connection.pgconn.parameter_status(b"client_encoding") == b"SQL_ASCII"


def _read_utf8(adapters: adapt.AdaptersMap) -> None:
    """Have text read as UTF-8, in which psycopg sends it there."""
    for kind in ("text", "varchar", "name"):
        adapters.register_loader(kind, _Utf8)


class _Utf8(adapt.Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class _Context:
    """A connection as psycopg's adaptation sees it, but for text."""

    def __init__(self, connection: AnyConnection) -> None:
        self.connection = connection
        self.adapters = adapt.AdaptersMap(connection.adapters)
        _read_utf8(self.adapters)


def _at_once(pgconn: PGconn, posts: list[Callable[[], None]]) -> PQGen[list[PGresult]]:
    try:
        pgconn.enter_pipeline_mode()
        for post in posts:
            post()
        pgconn.pipeline_sync()
        yield from generators.send(pgconn)
        results = []
        for _ in posts:
            results += yield from generators.fetch_many(pgconn)
        yield from generators.fetch_many(pgconn)  # what says that all is done
        pgconn.exit_pipeline_mode()
    except BaseException:
        # Interrupted half-way, the next statement would be given the answers to these, or wait for ever.
        if pgconn.pipeline_status != PipelineStatus.OFF:
            pgconn.finish()
        raise
    return results


def _one_by_one(pgconn: PGconn, posts: list[Callable[[], None]]) -> PQGen[list[PGresult]]:
    """Do the same with a libpq before 14, which has no pipeline mode."""
    results: list[PGresult] = []
    for post in posts:
        post()
        results += yield from generators.execute(pgconn)
        if results[-1].status == ExecStatus.FATAL_ERROR:
            break
    return results


def _post(pgconn: PGconn, transformer: Transformer, call: Call[Any]) -> Callable[[], None]:
    statement, parameters = call.numbered(whole=True)
    values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
    types, formats = transformer.types, transformer.formats
    return partial(pgconn.send_query_params, statement.encode(), values, types, formats, Format.BINARY)


def _rows(transformer: Transformer, result: PGresult, record: tuple[str, ...]) -> list[Mapping[str, Any]]:
    if record:
        return [_record(transformer, result, record)]
    transformer.set_pgresult(result)
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    return transformer.load_rows(0, result.ntuples, lambda values: dict(zip(names, values, strict=True)))


def _record(transformer: Transformer, result: PGresult, names: tuple[str, ...]) -> dict[str, Any]:
    """Take apart what the server's record_send makes of a record: each field's type, length and binary value.

    JSON is left as text, since an application may have taught psycopg to load it as something else. A later version of
    the database may have more fields at the end, and an older one fewer, which count as null.
    """
    record = result.get_value(0, 0)
    assert record is not None  # no function of ours returns null instead of a record
    given, types, values = [], [], []
    at = _COUNT.size
    (count,) = _COUNT.unpack_from(record)
    for name in names[:count]:
        kind, length = _FIELD.unpack_from(record, at)
        at += _FIELD.size
        if length < 0:
            continue
        value = record[at : at + length]
        at += length
        if kind == _JSONB:
            kind, value = _TEXT, value[1:]  # after the version of its format
        given.append(name)
        types.append(kind)
        values.append(value)
    transformer.set_loader_types(types, Format.BINARY)
    return dict.fromkeys(names) | dict(zip(given, transformer.load_sequence(values), strict=True))
