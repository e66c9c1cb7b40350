"""The whole life of an installation on a managed server, where nobody is superuser and nobody may create roles."""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.migrations.next_version import SECOND, Checkout
from tests.migrations.support import catalog
from tests.support.calls import complete, lookup, reserve
from tests.support.database import ROOT, Database, new_database

GRANTS = ["client", "resolver", "monitor", "operator"]


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.parts, id="with pg_cron"), pytest.param(False, id="without")]
)
def server_of_others(request: pytest.FixtureRequest, server: Cluster) -> Iterator[tuple[Database, bool]]:
    """A database of somebody else's, and whether pg_cron is in it, as a provider hands it over."""
    with ExitStack() as cleanup:
        if not request.param:
            yield cleanup.enter_context(new_database(server)), False
            return
        database = Database(server, "postgres", cleanup)
        admin = database.connect(autocommit=True)
        admin.execute("create extension pg_cron")
        cleanup.callback(admin.execute, "drop extension pg_cron")
        yield database, True


def test_from_installation_to_removal_without_superuser_and_createrole(
    server_of_others: tuple[Database, bool], later: Checkout
) -> None:
    database, has_cron = server_of_others
    admin = database.connect(autocommit=True)
    # What the administrator does, in the console of the provider.
    owner = database.create_role("managed")
    roles = {grant: database.create_role(grant) for grant in GRANTS}
    tenant = database.create_role("tenant")
    admin.execute(f'grant create on database "{database.name}" to {owner}'.encode())
    if has_cron:
        admin.execute(f"grant usage on schema cron to {owner}".encode())
    assert (
        admin.execute(
            "select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls from pg_roles"
            " where rolname = %s",
            [owner],
        ).fetchone()
        == (False,) * 5
    )
    assert admin.execute(
        "select count(*) from pg_auth_members as m inner join pg_roles as r on m.member = r.oid where rolname = %s",
        [owner],
    ).fetchone() == (0,)

    # All the rest is done without the administrator: installation, rights, schedule.
    database.psql(ROOT / "sql" / "install.sql", user=owner)
    with psycopg.connect(database.dsn_of(owner), autocommit=True) as connection:
        for grant, role in roles.items():
            connection.execute(f"select idem.grant_{grant}(%s)".encode(), [role])
        connection.execute("select idem.grant_client(%s)", [tenant])
        connection.execute("select idem.bind_scope(%s, 'tenant:1')", [tenant])
        if has_cron:
            connection.execute("select idem.schedule()")
            assert connection.execute("select username from cron.job").fetchall() == [(owner,)]

    operate(database, roles, tenant)
    done = later.pyidem("upgrade", "--dsn", database.dsn_of(owner))
    assert done.returncode == 0, done.stderr
    with psycopg.connect(database.dsn_of(owner)) as connection:
        assert connection.execute("select version_num from idem_private.alembic_version").fetchone() == (SECOND,)
        assert connection.execute("select * from idem_private.drift()").fetchall() == []
    operate(database, roles, tenant)
    with psycopg.connect(database.dsn_of(roles["client"])) as connection:
        connection.execute("select * from idem.added()")

    with psycopg.connect(database.dsn_of(owner)) as connection:
        connection.execute("select idem.revoke_access(%s)", [tenant])
    admin.execute(f"drop role {tenant}; create role {tenant}".encode())
    database.psql(later.sql / "uninstall.sql", user=owner)
    assert catalog(database) == {}
    if has_cron:
        assert admin.execute("select * from cron.job").fetchall() == []

    # Nothing is left that would keep a role.
    admin.execute(f'revoke create on database "{database.name}" from {owner}'.encode())
    if has_cron:
        admin.execute(f"revoke usage on schema cron from {owner}".encode())
    for role in [owner, *roles.values()]:
        admin.execute(f"drop role {role}; create role {role}".encode())


def operate(database: Database, roles: dict[str, str], tenant: str) -> None:
    """Do with each role what it is for; leaves no key."""
    with psycopg.connect(database.dsn_of(roles["client"]), autocommit=True) as client:
        started = reserve(client, "k", scope="tenant:1", mode="leased", lease="1 millisecond")
        assert started.outcome == "started"
    with psycopg.connect(database.dsn_of(tenant), autocommit=True) as bound:
        assert lookup(bound, "k", scope="tenant:1").outcome == "lapsed"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            lookup(bound, "k", scope="tenant:2")
    with psycopg.connect(database.dsn_of(roles["monitor"]), autocommit=True) as monitor:
        assert monitor.execute("select key, outcome from idem.keys").fetchall() == [("k", "lapsed")]
    with psycopg.connect(database.dsn_of(roles["resolver"]), autocommit=True) as resolver:
        row = resolver.execute("select key, token from idem.claim_lapsed()").fetchone()
        assert row is not None
        assert complete(resolver, "k", row[1], scope="tenant:1", status=201)
    with psycopg.connect(database.dsn_of(roles["operator"]), autocommit=True) as operator:
        operator.execute("insert into idem.policies (name) values ('mine')")
        operator.execute("delete from idem.policies where name = 'mine'")
        operator.execute("call idem.purge_all()")
        assert operator.execute("select idem.forget('tenant:1')").fetchone() == (1,)
