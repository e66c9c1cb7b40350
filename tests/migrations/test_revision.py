"""`make revision` and `make freeze` write what leads from one state of sql/ to another, and keep what was released."""

import re
from pathlib import Path

import pytest

from migrations.step import step
from tests.migrations.next_version import FIRST, SECOND, UP_BY_HAND, Checkout, copy_of_this_version, edit_sql


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A copy whose first revision is not released."""
    copy = copy_of_this_version(tmp_path)
    (copy.migrations / "RELEASED").write_text("")
    copy.must_freeze("freeze")
    return copy


@pytest.fixture
def released(checkout: Checkout) -> Checkout:
    """A copy whose first revision is released."""
    checkout.release(FIRST)
    return checkout


def refused(checkout: Checkout, *arguments: str) -> str:
    done = checkout.freeze(*arguments)
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_before_its_release_a_revision_is_written_anew_rather_than_followed(checkout: Checkout) -> None:
    edit_sql(checkout)

    assert refused(checkout, "revision", "-m", "more") == (
        f"{FIRST} is not released yet: `make freeze` writes it anew from sql/\n"
    )
    assert refused(checkout, "freeze", "--check").count("is stale") == 3
    checkout.must_freeze("freeze")
    assert "'next'" in checkout.frozen(FIRST, "up.sql")


def test_a_revision_without_a_change_or_a_message_is_refused(released: Checkout) -> None:
    assert "there is nothing to revise" in refused(released, "revision", "-m", "nothing")
    assert "say what the revision changes" in refused(released, "revision", "-m", " ")


def test_what_changes_after_a_release_asks_for_a_revision(released: Checkout) -> None:
    before = released.frozen(FIRST, "up.sql")
    edit_sql(released)

    for command in (["freeze", "--check"], ["freeze"]):
        assert (
            refused(released, *command) == f'sql/ has changed since {FIRST} was released: run make revision m="..."\n'
        )
    assert released.frozen(FIRST, "up.sql") == before


@pytest.mark.parametrize("file", ["up.sql", "down.sql"])
def test_released_text_may_not_change(file: str, released: Checkout) -> None:
    path = released.migrations / "frozen" / FIRST / file
    sums = (released.migrations / "CHECKSUMS").read_text()
    path.write_text(path.read_text() + "select 1;\n")

    for command in (["freeze", "--check"], ["freeze"]):
        assert f"migrations/frozen/{FIRST}/{file} was changed after its release" in refused(released, *command)
    assert (released.migrations / "CHECKSUMS").read_text() == sums


def test_released_text_may_not_go(released: Checkout) -> None:
    (released.migrations / "frozen" / FIRST / "down.sql").unlink()

    assert f"migrations/frozen/{FIRST}/down.sql is missing" in refused(released, "freeze", "--check")


def test_the_checksums_of_a_released_revision_outlive_the_next_one(later: Checkout) -> None:
    sums = (later.migrations / "CHECKSUMS").read_text()

    assert later.freeze("freeze", "--check").returncode == 0
    assert re.findall(r"frozen/(\S+)", sums) == [
        *(f"{FIRST}/{file}" for file in ("down.sql", "up.sql")),
        *(f"{SECOND}/{file}" for file in ("all.sql", "down.sql", "up.sql")),
    ]


def test_a_new_revision_says_what_is_left_to_write_by_hand(later: Checkout) -> None:
    up = later.frozen(SECOND, "up.sql")
    by_hand = up.partition("-- By hand")[2].partition("-- End")[0]

    assert "-- sql/tables/reservation.sql:\n" in by_hand
    assert "--     +    added text,\n" in by_hand
    assert by_hand.endswith(UP_BY_HAND)


def test_what_is_by_hand_is_kept_when_the_rest_is_written_anew(tmp_path: Path, later: Checkout) -> None:
    copy = copy_of_this_version(tmp_path, of=later.root)
    copy.edit("operation/version.sql", "select 'next'", "select 'another'")
    copy.must_freeze("freeze")

    assert UP_BY_HAND in copy.frozen(SECOND, "up.sql")
    assert "'another'" in copy.frozen(SECOND, "up.sql")
    assert copy.frozen(FIRST, "up.sql") == later.frozen(FIRST, "up.sql")


def test_unchanged_files_are_not_in_a_later_revision(later: Checkout) -> None:
    assert set(re.findall(r"^-- sql/(\S+\.sql)$", later.frozen(SECOND, "up.sql"), re.MULTILINE)) == {
        "tables/added.sql",
        "core/added.sql",
        "core/reserve.sql",
        "operation/version.sql",
        "private/real_expiry.sql",
        "private/rights.sql",
        "views/keys.sql",
    }


FUNCTION = "create or replace function idem.f({}) returns {} language sql as $$ select null $$;\n"


@pytest.mark.parametrize(
    ("before", "after", "drops_going_up", "drops_going_down"),
    [
        (("a int", "text"), ("b int", "text"), True, True),
        (("a int", "text"), ("a bigint", "text"), True, True),
        (("a int", "text"), ("a int", "int"), True, True),
        (("a int", "text"), ("a int", "setof text"), True, True),
        (("a int", "text"), ("a int, b int default 1", "text"), True, True),
        (("a int", "text"), ("", "text"), True, True),
        (("a int", "table (x int)"), ("a int", "table (x int, y int)"), True, True),
        (("a int", "text"), ("a int default 1", "text"), False, True),
        (("a int default 1", "text"), ("a int default 2", "text"), False, False),
        (("a int", "text"), ("a integer", "text"), False, False),
    ],
)
def test_a_function_is_dropped_where_replacing_it_would_fail_or_leave_an_overload(
    before: tuple[str, str], after: tuple[str, str], drops_going_up: bool, drops_going_down: bool
) -> None:
    old, new = {"f.sql": FUNCTION.format(*before)}, {"f.sql": FUNCTION.format(*after)}

    for one, other, drops in ((old, new, drops_going_up), (new, old, drops_going_down)):
        text = step(one, other, "")
        assert ("drop function if exists idem.f(" in text) == drops
        assert text.index(other["f.sql"]) > text.find("drop function")


def test_the_old_signature_is_the_one_that_is_dropped() -> None:
    old = {"f.sql": FUNCTION.format("a int, b text[] default '{}', out c int", "int")}

    assert "drop function if exists idem.f(integer, text[]);\n" in step(old, {}, "")


VIEW = "create or replace view idem.v as select {} from idem_private.t;\n"


@pytest.mark.parametrize(
    ("before", "after", "drops"),
    [
        ("a", "a, b", False),
        ("a, b", "a", True),
        ("a, b", "b, a", True),
        ("a", "b as a", False),
        ("a", "a as b", True),
    ],
)
def test_a_view_is_dropped_unless_its_columns_are_only_added_to(before: str, after: str, drops: bool) -> None:
    text = step({"v.sql": VIEW.format(before)}, {"v.sql": VIEW.format(after)}, "")

    assert ("drop view idem.v;" in text) == drops


def test_a_view_and_those_on_it_go_with_a_function_that_must_be_dropped() -> None:
    views = {
        "v.sql": VIEW.format("idem.f(a) as x"),
        "w.sql": "create or replace view idem.w as select x from idem.v;\n",
        "other.sql": "create or replace view idem.other as select 1 as one;\n",
    }
    old, new = ({"f.sql": FUNCTION.format(parameter, "text"), **views} for parameter in ("a int", "a bigint"))
    text = step(old, new, "")

    drops = re.findall(r"^drop .*$", text, re.MULTILINE)
    assert drops == ["drop view idem.w;", "drop view idem.v;", "drop function if exists idem.f(integer);"]
    assert re.findall(r"^-- sql/(.*)$", text, re.MULTILINE) == ["f.sql", "v.sql", "w.sql"]


TRIGGER = "\ncreate constraint trigger t after insert on idem_private.t for each row {} execute function idem.f();\n"


def test_a_trigger_is_made_again_only_when_it_changes_itself() -> None:
    def tree(body: str, when: str) -> dict[str, str]:
        function = f"create or replace function idem.f() returns trigger language plpgsql as $$ {body} $$;\n"
        return {"f.sql": function + TRIGGER.format(when)}

    unchanged = step(tree("begin end", ""), tree("begin return null; end", ""), "")
    assert "trigger t" not in unchanged
    assert "return null" in unchanged

    changed = step(tree("begin end", ""), tree("begin end", "when (true)"), "")
    assert changed.index("drop trigger t on idem_private.t;") < changed.index("create constraint trigger t")


def test_a_table_that_is_gone_is_dropped_last_and_a_new_one_is_made_before_what_is_by_hand() -> None:
    old = {"old.sql": "create table idem_private.old (a int);\n"}
    new = {"new.sql": "create table idem_private.new (a int);\n"}
    text = step(old, new, "insert into idem_private.new select * from idem_private.old;\n")

    assert re.findall(r"^(?:create|insert|drop)\b.*$", text, re.MULTILINE) == [
        "create table idem_private.new (a int);",
        "insert into idem_private.new select * from idem_private.old;",
        "drop table idem_private.old;",
    ]


def test_rights_are_kept_only_where_something_is_dropped() -> None:
    changed = step({"f.sql": FUNCTION.format("a int", "int")}, {"f.sql": FUNCTION.format("a int", "text")}, "")
    same = step({"f.sql": FUNCTION.format("a int", "int")}, {"f.sql": FUNCTION.format("a int default 1", "int")}, "")

    assert changed.count("idem.grants") == 2
    assert "idem.grants" not in same
