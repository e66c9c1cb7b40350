"""The text that leads from one state of sql/ to another: a revision's up.sql and, the other way round, its down.sql."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from migrations.objects import Object, is_repeatable, objects

Tree = dict[str, str]
"""The files of sql/ that make something, in load order, with their text."""

PARTS = Path(__file__).resolve().parent / "parts"
BY_HAND = "\n-- By hand: what happens to tables, types and data. `make freeze` keeps all up to the end mark.\n"
END = "-- End of what is by hand.\n"
LAST = "\n-- Last: what drift is measured against.\n"


def section(name: str, text: str) -> str:
    """Return one file under a heading."""
    return f"\n-- sql/{name}\n{text}"


def sections(text: str) -> Tree:
    """Return the files of a text that `section` made."""
    _, *rest = re.split(r"^-- sql/(\S+)\n", text.partition(LAST)[0], flags=re.MULTILINE)
    return {name: body.rstrip("\n") + "\n" for name, body in zip(rest[::2], rest[1::2], strict=True)}


def step(old: Tree, new: Tree, by_hand: str) -> str:
    """Return the statements that lead from the old tree to the new one.

    First goes what stands in the way, then come new tables and types, what is written by hand, the full text of each
    function, view and trigger that differs, and last the drop of tables and types that are gone.
    """
    dropped = _dropped(old, new)
    gone = [drop for name, text in old.items() if name not in new and not is_repeatable(text) for drop in _drops(text)]
    added = {name: text for name, text in new.items() if name not in old and not is_repeatable(text)}
    changed = {
        name: text
        for name, text in new.items()
        if is_repeatable(text) and (old.get(name) != text or any(one.identity in dropped for one in objects(text)))
    }
    made_again = {one.identity for text in changed.values() for one in objects(text)}
    keeps_grants = any(kind != "trigger" for kind, _ in dropped.keys() & made_again)
    return "".join(
        [
            "\n" + part("keep_grants") if keeps_grants else "",
            "\n" if dropped else "",
            *(one.drop for one in reversed(dropped.values())),
            *(section(name, text) for name, text in added.items()),
            f"{BY_HAND}{by_hand}{END}",
            *(section(name, _without(_kept_triggers(text, old, dropped), text)) for name, text in changed.items()),
            "\n" if gone else "",
            *reversed(gone),
            "\n" + part("give_grants") if keeps_grants else "",
        ]
    )


def removal(tree: Tree) -> str:
    """Return the drops of everything, in reverse; without CASCADE, so that objects of others stop it."""
    return "".join(reversed([drop for text in tree.values() for drop in _drops(text)]))


def part(name: str) -> str:
    """Return a piece of SQL that every revision has alike."""
    return (PARTS / f"{name}.sql").read_text("ascii")


def by_hand(text: str) -> str:
    """Return what is written by hand in a text that `step` made."""
    return text.partition(BY_HAND)[2].partition(END)[0]


def to_do(old: Tree, new: Tree) -> str:
    """Return the first content of the part that is by hand: as comments, what has changed in tables, types and data."""
    changed = [name for name in new if name in old and old[name] != new[name] and not is_repeatable(new[name])]
    differences = [
        f"-- sql/{name}:\n" + "".join(f"--     {line}".rstrip() + "\n" for line in _difference(old[name], new[name]))
        for name in changed
    ]
    return "".join(differences) or "-- nothing\n"


def _dropped(old: Tree, new: Tree) -> dict[tuple[str, str], Object]:
    """Return the functions, views and triggers of the old tree that must go first: `create or replace` would not do."""
    before = [(name, one) for name, text in old.items() if is_repeatable(text) for one in objects(text)]
    after = {one.identity: (name, one) for name, text in new.items() for one in objects(text)}

    def stays(name: str, one: Object) -> bool:
        if one.identity not in after:
            return False
        name_after, later = after[one.identity]
        unchanged = name == name_after and old[name] == new[name]
        return unchanged or one.can_become(later) or (one.kind == "trigger" and later.is_same_as(one))

    going = {one.identity for name, one in before if not stays(name, one)}
    while more := {
        one.identity
        for _, one in before
        if one.kind in {"view", "trigger"} and one.identity not in going and _mentions(one, going)
    }:
        going |= more
    return {one.identity: one for _, one in before if one.identity in going}


def _kept_triggers(text: str, old: Tree, dropped: Iterable[tuple[str, str]]) -> list[Object]:
    """Return the triggers of a changed file that stay as they are: making them again would lock their table."""
    before = {one.identity: one for text_before in old.values() for one in objects(text_before)}
    return [
        one
        for one in objects(text)
        if one.kind == "trigger" and one.identity not in dropped and one.is_same_as(before.get(one.identity))
    ]


def _without(left_out: list[Object], text: str) -> str:
    for one in left_out:
        text = text.replace(f"{one.text};", "")
    return text


def _mentions(one: Object, identities: set[tuple[str, str]]) -> bool:
    return any(
        re.search(rf"\b{re.escape(name)}\b", one.text) for kind, name in identities if kind in {"function", "view"}
    )


def _drops(text: str) -> list[str]:
    return [one.drop for one in objects(text)]


def _difference(old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:]
