"""Random JSON: what a document means, and the many ways to spell it.

The meaning is worked out here without the database, from Python's own parser: pairs instead of dicts, so that repeated
members are seen, and exact decimals.
"""

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st


class Members(list[tuple[str, Any]]):
    """An object, with its members as they came."""


def meaning(body: bytes) -> Any:
    """What a body says, as nested tuples that are equal for equal documents."""
    return _meaning(json.loads(body, object_pairs_hook=Members, parse_int=Decimal, parse_float=Decimal))


def _meaning(value: Any) -> Any:
    match value:
        case Members():
            return "object", tuple(sorted(((name, _meaning(child)) for name, child in value), key=lambda pair: pair[0]))
        case list():
            return "array", tuple(_meaning(child) for child in value)
        case Decimal():
            return "number", *_exact(value)
        case _:
            return type(value).__name__, value


def _exact(number: Decimal) -> tuple[int, str, int]:
    """Sign, digits without zeros at either end, and the power of ten."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    return (sign, stripped, exponent + len(text) - len(stripped)) if stripped else (0, "", 0)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6) | st.sampled_from(
    ["", "a", "b", "~", "/", "1", "1.0", ":", ",", '"', "\\", "a: 1e5", "[1.50]", "1.0,", "null", "é", "\U0001f600"]
)
numbers = st.one_of(
    st.integers(-3, 3).map(Decimal),
    st.integers(-(10**70), 10**70).map(Decimal),
    st.decimals(-1000, 1000, places=3),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent),
        st.integers(-999, 999),
        st.integers(-70, 70) | st.sampled_from([59, 60, 61, -59, -60, -61, 999, 100000, -9999]),
    ),
)
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(st.tuples(st.sampled_from("abc") | texts, children), max_size=4).map(Members)
    ),
    max_leaves=12,
)


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """One way to write a document down."""
    blank = draw(st.sampled_from(["", "", " ", "\n\t ", "\r\n"]))
    match value:
        case Members():
            order = _reordered(draw, value)
            inside = [f"{blank}{draw(strings(name))}{blank}:{blank}{draw(spellings(child))}" for name, child in order]
            return "{" + f"{blank},".join(inside) + blank + "}"
        case list():
            return "[" + f"{blank},".join(blank + draw(spellings(child)) for child in value) + blank + "]"
        case Decimal():
            return draw(st.sampled_from(list(_numerals(value))))
        case str():
            return draw(strings(value))
        case _:
            return json.dumps(value)


def _reordered(draw: st.DrawFn, members: Members) -> list[tuple[str, Any]]:
    """The members in another order, in which those of one name stay in theirs."""
    names = draw(st.permutations(list(dict.fromkeys(name for name, _ in members))))
    return [(name, child) for wanted in names for name, child in members if name == wanted]


@st.composite
def strings(draw: st.DrawFn, text: str) -> str:
    """One way to write a string down."""
    if draw(st.booleans()):
        return json.dumps(text, ensure_ascii=draw(st.booleans()))
    return '"' + "".join("".join(f"\\u{unit:04X}" for unit in _utf16(character)) for character in text) + '"'


def _utf16(character: str) -> Iterator[int]:
    encoded = character.encode("utf-16-be")
    return (int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2))


def _numerals(number: Decimal) -> Iterator[str]:
    sign, digits, exponent = _exact(number)
    minus = "-" if sign else ""
    if not digits:
        yield from ["0", "-0", "0.0", "0e7", "-0.000E-3"]
        return
    yield f"{minus}{digits}e{exponent}"
    yield f"{minus}{digits}.000E{exponent:+d}"
    yield f"{minus}{digits[0]}.{digits[1:]}00e{exponent + len(digits) - 1}"
    if math.fabs(exponent) < 200:
        plain = f"{abs(number):f}"
        yield minus + plain
        yield f"{minus}{plain}00" if "." in plain else f"{minus}{plain}.00"


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The document with one thing in it changed, which may leave it as it was."""
    if isinstance(value, Members) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        name, child = value[at]
        change = draw(st.sampled_from(["child", "name", "drop", "repeat"]))
        changed = {
            "child": [(name, draw(mutated(child)))],
            "name": [(draw(texts), child)],
            "drop": [],
            "repeat": [(name, child), (name, draw(mutated(child)))],
        }[change]
        return Members([*value[:at], *changed, *value[at + 1 :]])
    if type(value) is list and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        change = draw(st.sampled_from(["child", "drop", "swap"]))
        if change == "swap":
            return [*value[at:], *value[:at]]
        return [*value[:at], *([draw(mutated(value[at]))] if change == "child" else []), *value[at + 1 :]]
    if isinstance(value, Decimal):
        return draw(st.sampled_from([value + 1, -value, value.scaleb(1), f"{value}"]))
    return draw(st.none() | st.booleans() | numbers | texts | st.just([]) | st.just(Members()))


@st.composite
def families(draw: st.DrawFn) -> list[bytes]:
    """Bodies that are much alike: spellings of a document, of others that differ from it in one thing, and of those."""
    document = draw(documents)
    others = [draw(mutated(document)) for _ in range(3)]
    others.append(draw(mutated(others[0])))
    if isinstance(document, Members) and document:
        # with the first member twice, and the last of them as it was
        name, child = document[0]
        others.append(Members([(name, draw(mutated(child))), *document]))
    return [draw(spellings(each)).encode() for each in [document, document, *others, others[0]]]
