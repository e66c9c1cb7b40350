"""A role that is bound to scopes gets at no other, whatever it makes of itself or of the session."""

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from tests.rights.conftest import Login
from tests.support.calls import complete, lookup, reserve
from tests.support.database import Database


def is_refused(connection: psycopg.Connection, scope: str) -> bool:
    """Tell whether a scope is refused to the session."""
    try:
        lookup(connection, "k", scope=scope)
    except psycopg.errors.InsufficientPrivilege as error:
        return error.diag.message_detail == '{"code": "scope_not_allowed", "argument": "scope"}'
    return False


@pytest.fixture
def tenant(login: Login) -> psycopg.Connection:
    """A client that is bound to tenant:1."""
    return login("client", "tenant:1")


@pytest.fixture
def other(login: Login) -> psycopg.Connection:
    """A client that is bound to tenant:2."""
    return login("client", "tenant:2")


def test_a_refusal_leaves_the_transaction_of_nobody_and_no_lock(
    tenant: psycopg.Connection, other: psycopg.Connection
) -> None:
    tenant.autocommit = False
    with tenant.transaction():
        tenant.execute("select 1")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), tenant.transaction():
            reserve(tenant, "k", scope="tenant:2")
        started = reserve(other, "k", scope="tenant:2", mode="leased")

    assert started.outcome == "started"


def become(role: str) -> str:
    return f'set role "{role}"'


def by_setting(role: str) -> str:
    return f"select set_config('role', '{role}', false)"


@pytest.mark.parametrize("way", [become, by_setting])
def test_a_role_that_is_bound_nowhere_does_not_lift_the_binding(
    way: Callable[[str], str], tenant: psycopg.Connection, login: Login, admin: psycopg.Connection
) -> None:
    free = login().info.user
    admin.execute(f'grant "{free}" to "{tenant.info.user}"'.encode())
    tenant.execute(way(free).encode())

    assert is_refused(tenant, "tenant:2")
    assert not is_refused(tenant, "tenant:1")


def test_nor_does_a_role_that_the_login_starts_with(
    db: Database, tenant: psycopg.Connection, login: Login, admin: psycopg.Connection
) -> None:
    free, role = login().info.user, tenant.info.user
    admin.execute(f'grant "{free}" to "{role}"'.encode())
    tenant.execute(f'alter role "{role}" set role = "{free}"'.encode())
    again = db.connect(user=role, autocommit=True)

    assert again.execute("select current_user").fetchone() == (free,)
    assert is_refused(again, "tenant:2")


def test_nor_can_the_session_be_anothers(tenant: psycopg.Connection, login: Login) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute(f'set session authorization "{login().info.user}"'.encode())


def test_nor_does_a_function_of_a_free_role(
    tenant: psycopg.Connection, login: Login, admin: psycopg.Connection
) -> None:
    free = login()
    admin.execute(f'grant create on schema public to "{free.info.user}"'.encode())
    free.execute(
        "create function public.look(scope text) returns text language sql security definer"
        " as $$select outcome from idem.lookup(scope, 'k')$$"
    )
    assert free.execute("select public.look('tenant:2')").fetchone() == ("absent",)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute("select public.look('tenant:2')")


def test_a_handler_is_bound_as_its_caller_is(tenant: psycopg.Connection, admin: psycopg.Connection) -> None:
    admin.execute(
        "create function public.steal(args jsonb) returns idem.response language plpgsql as $$"
        "begin perform idem.lookup('tenant:2', 'k'); return idem.json_response(200, '{}'); end$$"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute("select idem.run('tenant:1', 'k', null, 'public.steal(jsonb)', '{}')")

    assert lookup(tenant, "k", scope="tenant:1").outcome == "absent"


def test_a_binding_holds_from_the_next_call_on_in_sessions_that_are_open(
    login: Login, admin: psycopg.Connection
) -> None:
    client = login()
    assert not is_refused(client, "tenant:2")
    admin.execute("select idem.bind_scope(%s, 'tenant:1')", [client.info.user])
    assert is_refused(client, "tenant:2")
    admin.execute("select idem.unbind_scope(%s)", [client.info.user])

    assert not is_refused(client, "tenant:2")


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_policy_written_under_a_snapshot_older_than_the_binding_is_not_left_open(
    isolation: str, login: Login, db: Database
) -> None:
    operator = db.connect(user=db.owner)
    operator.execute(f"set transaction isolation level {isolation}".encode())
    operator.execute("table idem.policies")
    tenant = login("client", "tenant:1")
    with pytest.raises(psycopg.errors.SerializationFailure):
        operator.execute("insert into idem.policies (name) values ('later')")
    operator.rollback()
    operator.execute("insert into idem.policies (name) values ('later')")
    operator.commit()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reserve(tenant, "k", scope="tenant:2", policy="later")


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("change", ["bind_scope(%s, 'tenant:1')", "unbind_scope(%s)"])
def test_a_binding_is_not_changed_under_a_snapshot_that_may_hide_policies(
    isolation: str, change: str, login: Login, db: Database
) -> None:
    client = login("client", *([] if change.startswith("bind") else ["tenant:1"]))
    with db.connect(user=db.owner) as owner:
        owner.execute(f"set transaction isolation level {isolation}".encode())
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            owner.execute(f"select idem.{change}".encode(), [client.info.user])
        owner.rollback()
        owner.execute(f"set transaction isolation level {isolation}".encode())
        # where nobody is bound there is nothing that it could get wrong
        if change.startswith("bind"):
            owner.execute("select idem.revoke_access(%s)", [client.info.user])


def test_a_token_of_another_tenant_is_worth_nothing(tenant: psycopg.Connection, other: psycopg.Connection) -> None:
    token = reserve(other, "k", scope="tenant:2", mode="leased").token
    for call in ("complete", "release", "defer", "extend", "http_complete"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tenant.execute(
                f"select idem.{call}('tenant:2', 'k', %s{', 200' if call == 'http_complete' else ''})".encode(), [token]
            )

    assert complete(other, "k", token, scope="tenant:2", status=201)


def test_a_batch_of_marks_is_of_its_own_scope(tenant: psycopg.Connection, other: psycopg.Connection) -> None:
    other.execute("select idem.once('tenant:2', 'm')")
    for call in ("once_many('tenant:2', '{m}')", "once_undo('tenant:2', '{m}')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tenant.execute(f"select idem.{call}".encode())

    assert tenant.execute("select idem.once('tenant:1', 'm')").fetchone() == ("first",)


def test_what_a_transaction_notes_in_its_settings_leads_to_no_other_tenant(
    tenant: psycopg.Connection, other: psycopg.Connection
) -> None:
    """A leased reserve finds the row it wrote last through a setting, which anybody can set."""
    reserve(other, "k", scope="tenant:2", mode="leased")
    with tenant.transaction():
        tenant.execute("create temp table written (a int)")
        tenant.execute("select set_config('idem_private.last_leased', %s, true)", ['["tenant:2", "k"]'])
        with pytest.raises(psycopg.errors.InsufficientPrivilege), tenant.transaction():
            reserve(tenant, "k", scope="tenant:1", mode="leased")


def test_what_a_transaction_notes_leads_to_no_other_tenant_where_nothing_is_started_either(
    tenant: psycopg.Connection, other: psycopg.Connection, admin: psycopg.Connection
) -> None:
    """A reserve that was told in_progress after it had tried to lock the row notes that it wrote nothing."""
    admin.execute("insert into idem.policies (name, on_lapse) values ('again', 'retry')")
    reserve(other, "k", scope="tenant:2", mode="leased")
    reserve(tenant, "k", scope="tenant:1", mode="leased", policy="again", lease=timedelta(microseconds=1))
    with admin.transaction(), tenant.transaction():
        admin.execute("select from idem_private.reservation where scope = 'tenant:1' for update")
        tenant.execute("select set_config('idem_private.last_leased', %s, true)", ['["tenant:2", "k"]'])
        with pytest.raises(psycopg.errors.InsufficientPrivilege), tenant.transaction():
            reserve(tenant, "k", scope="tenant:1", mode="leased")


@pytest.mark.parts
@pytest.mark.parametrize("scope", ["TENANT:1", "TENANT:1:a", "Tenant:1/a"])
def test_a_collation_that_holds_scopes_equal_does_not_widen_a_binding(
    scope: str, tenant: psycopg.Connection, admin: psycopg.Connection
) -> None:
    admin.execute("create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute(f"select idem.lookup('{scope}' collate caseless, 'k')".encode())

    assert not is_refused(tenant, "tenant:1:a")


def test_settings_of_test_suites_are_of_no_use(tenant: psycopg.Connection, other: psycopg.Connection) -> None:
    reserve(other, "k", scope="tenant:2", mode="leased")
    tenant.execute("set idem.clock_offset = '10 years'")
    tenant.execute("set idem.single_transaction = on")
    assert reserve(tenant, "k", scope="tenant:1", mode="leased").outcome == "started"

    assert lookup(tenant, "k", scope="tenant:1").outcome == "in_progress"
    assert is_refused(tenant, "tenant:2")
