"""What was measured, and what is expected of it: records that go into one JSON file, and tables made from them."""

import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table as RichTable

Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows."""


@dataclass(frozen=True)
class Record:
    """All the values that one candidate reached in one setting."""

    part: str
    name: str
    unit: str
    values: list[float]
    by: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The value that counts."""
        return statistics.median(self.values)


@dataclass(frozen=True)
class Target:
    """What one candidate has to achieve of another. A target that is a ceiling counts the other way."""

    part: str
    name: str
    of: str
    least: float | None = None
    aim: float | None = None
    by: dict[str, float] = field(default_factory=dict)
    of_by: dict[str, float] | None = None
    ceiling: bool = False

    def ratio(self, results: "Results") -> float | None:
        """What was achieved, if both were measured."""
        mine = results.median(self.part, self.name, self.by)
        other = results.median(self.part, self.of, self.by if self.of_by is None else self.of_by)
        return mine / other if mine is not None and other else None

    def met(self, ratio: float) -> bool | None:
        """Tell whether that is enough, if anything was asked for."""
        if self.least is None:
            return None
        return ratio <= self.least if self.ceiling else ratio >= self.least


@dataclass
class Results:
    """One run."""

    machine: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def add(self, part: str, name: str, unit: str, values: Iterable[float], **by: float) -> Record:
        """Keep what was measured."""
        record = Record(part, name, unit, list(values), by)
        self.records.append(record)
        return record

    def forget(self, *words: str) -> None:
        """Drop the records of parts that are measured again."""
        self.records = [record for record in self.records if record.part.replace(",", "").split()[0] not in words]
        if "peers" in words:
            self.notes = []

    def select(self, part: str, name: str | None = None, **by: float) -> list[Record]:
        """Return the records of a part, or those of one candidate, with these settings among theirs."""
        return [
            record
            for record in self.records
            if record.part == part and name in (None, record.name) and by.items() <= record.by.items()
        ]

    def median(self, part: str, name: str, by: dict[str, float]) -> float | None:
        """Return the median of one candidate in exactly this setting."""
        return next((record.median for record in self.select(part, name) if record.by == by), None)

    def save(self, path: Path) -> None:
        """Write the raw numbers."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Read them again."""
        raw = json.loads(path.read_text())
        return cls(raw["machine"], raw["options"], raw["notes"], [Record(**record) for record in raw["records"]])


@dataclass(frozen=True)
class Turn:
    """One thing to be measured several times: what it is called, and how one value is taken. Nice to know: once."""

    name: str
    by: dict[str, float]
    measure: Callable[[], float]
    nice_to_know: bool = False


def interleaved(console: Console, what: str, turns: list[Turn], rounds: int) -> list[tuple[Turn, list[float]]]:
    """Measure all in turns, so that a busy moment of the machine hits all alike."""
    values: list[list[float]] = [[] for _ in turns]
    order = [
        number for repeat in range(rounds) for number, turn in enumerate(turns) if repeat == 0 or not turn.nice_to_know
    ]
    if not console.is_terminal:
        console.print(f"{what}: {len(order)} measurements")
    for number in track(order, what, console=console, disable=not console.is_terminal):
        values[number].append(turns[number].measure())
    return list(zip(turns, values, strict=True))


def pivot(results: Results, part: str, names: list[str], axis: str, title: str, **by: float) -> Table:
    """Make a table of medians with one row for each candidate and one column for each value on an axis."""
    found = results.select(part, **by)
    columns = sorted({record.by[axis] for record in found if axis in record.by})
    rows = []
    for name in names:
        mine = {record.by[axis]: record.median for record in found if record.name == name and axis in record.by}
        if mine:
            rows.append([name, *(f"{mine[column]:,.0f}" if column in mine else "" for column in columns)])
    return title, ["", *(f"{column:,.0f}" for column in columns)], rows


def show(console: Console, table: Table) -> None:
    """Print a table."""
    title, columns, rows = table
    drawn = RichTable(title=title)
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="right" if number else "left")
    for row in rows:
        drawn.add_row(*row)
    console.print(drawn)


def targets_table(results: Results, targets: list[Target], title: str) -> Table:
    """Make the table of what was achieved and what was asked for."""
    rows = []
    for target in targets:
        ratio = target.ratio(results)
        if ratio is None:
            continue
        met = target.met(ratio)
        bound = "" if target.least is None else f"{'at most' if target.ceiling else 'at least'} {target.least:g}"
        of_by = target.by if target.of_by is None else target.of_by
        rows.append([
            target.part, f"{target.name}{_setting(target.by)}", f"{target.of}{_setting(of_by)}",
            f"{ratio:.2f}", bound, "" if target.aim is None else f"{target.aim:g}",
            {True: "yes", False: "no", None: ""}[met],
        ])  # fmt: skip
    return title, ["part", "", "against", "ratio", "asked for", "aim", "met"], rows


def _setting(by: dict[str, float]) -> str:
    words = [f"{name} {value:,g}" for name, value in by.items()]
    return f" ({', '.join(words)})" if words else ""
