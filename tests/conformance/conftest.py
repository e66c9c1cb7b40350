"""The database that every language plays on, with the roles and tables of the scenarios."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.conformance.languages import Language
from tests.conformance.player import Player
from tests.conformance.scenarios import script
from tests.support.calls import set_policy
from tests.support.database import Database

SCHEMA = """
    create table effects (scope text not null);
    create table refunds (id bigint generated always as identity, "order" text not null, amount integer not null);
    create function answer_with(args jsonb) returns idem.response language sql as $$
        insert into effects values (args ->> 'scope');
        select idem.json_response((args ->> 'status')::integer, (args -> 'body')::json)
    $$;
    create function give_up(args jsonb) returns idem.response language plpgsql as $$
    begin
        insert into effects values (args ->> 'scope');
        raise exception 'the handler gives up' using errcode = 'P0001';
    end
    $$;
    create function answer_bytes(args jsonb) returns idem.response language sql as $$
        select row((args ->> 'status')::integer, args -> 'headers', decode(args ->> 'hex', 'hex'))::idem.response
    $$;
"""
GRANTS = {"client": "grant_client", "resolver": "grant_resolver", "operator": "grant_operator"}


@dataclass(frozen=True)
class Theatre:
    """The database, its roles by the names that scenarios have for them, and how to start a language on it."""

    database: Database
    users: Mapping[str, str]
    admin: psycopg.Connection
    start: Callable[[Language], AbstractContextManager[Player]]


@pytest.fixture
def theatre(testing_db: Database, tmp_path: Path) -> Theatre:
    admin = testing_db.connect(autocommit=True)
    admin.execute(SCHEMA)
    for name, columns in script().policies.items():
        set_policy(admin, name, **columns)
    users = {name: testing_db.create_role(name) for name in [*GRANTS, "stranger", "tenant"]}
    for name, grant in GRANTS.items():
        admin.execute(sql.SQL("select idem.{}({})").format(sql.Identifier(grant), users[name]))
    admin.execute("select idem.grant_client(%(role)s), idem.bind_scope(%(role)s, 'tenant:')", {"role": users["tenant"]})
    for user in users.values():
        role = sql.Identifier(user)
        admin.execute(sql.SQL("create schema authorization {}").format(role))
        admin.execute(sql.SQL("grant select, insert on effects, refunds to {}").format(role))

    environment = {name: value for name, value in testing_db.environment.items() if name != "PGUSER"}

    @contextmanager
    def start(language: Language) -> Iterator[Player]:
        with Player(language, environment, tmp_path / f"{language.key}.log") as player:
            yield player

    return Theatre(testing_db, users, admin, start)


@pytest.fixture
def prepared() -> Callable[[Language], Language]:
    """A function that builds a language, or skips the test where something is missing for it."""

    def prepare(language: Language) -> Language:
        if missing := language.missing():
            parts = ", ".join(f"{part} (Debian package {package})" for part, package in missing.items())
            pytest.skip(f"missing for {language.name}: {parts}")
        language.prepare()
        return language

    return prepare
