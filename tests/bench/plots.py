"""The plots of one run: PNG, one file for each question."""

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from tests.bench import floors, from_python, growth, peers
from tests.bench.results import Record, Results

OURS, THEIRS = "tab:blue", "tab:gray"
DPI = 80


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what there are numbers for; return the files."""
    drawn = []
    for name, plot in PLOTS.items():
        figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
        if plot(results, axes):
            drawn.append(folder / f"{name}.png")
            figure.savefig(drawn[-1], dpi=DPI, metadata={"Software": None})
        plt.close(figure)
    return drawn


def _lines(axes: Axes, records: list[Record], names: list[str], axis: str, base: int) -> bool:
    """Draw one line for each candidate along an axis."""
    for name in names:
        points = sorted((r.by[axis], r.median) for r in records if r.name == name and axis in r.by)
        if points:
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", label=name)
    if not axes.lines:
        return False
    axes.set_xscale("log", base=base)
    axes.set_xticks(sorted({float(x) for line in axes.lines for x in line.get_xdata()}))
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(axis)
    axes.set_ylabel("operations/s")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    return True


def _clients(results: Results, axes: Axes) -> bool:
    axes.set_title("SQL alone, by number of clients")
    names = ["work", "hand", "atomic", "leased", "run", "insert", "once", "http_reserve"]
    return _lines(axes, results.select(floors.PART), names, "clients", 2)


def _replays(results: Results, axes: Axes) -> bool:
    axes.set_title("SQL alone: what writes nothing, by number of clients")
    return _lines(axes, results.select(floors.PART), ["select", "replay", "mismatch", "in_progress"], "clients", 2)


def _python(results: Results, axes: Axes) -> bool:
    axes.set_title("From Python, async, by number of clients")
    names = ["work", "hand", "atomic", "leased", "run", "http_reserve"]
    return _lines(axes, results.select(from_python.part("async", delayed=False)), names, "clients", 2)


def _keys(results: Results, axes: Axes) -> bool:
    axes.set_title("By keys stored, 4 clients")
    return _lines(axes, results.select(growth.KEYS), ["atomic", "run", "once", "replay"], "keys", 10)


def _bodies(results: Results, axes: Axes) -> bool:
    axes.set_title("By length of the answer, which does not compress, 4 clients")
    drawn = _lines(axes, results.select(growth.BODIES), ["store", "replay"], "bytes", 2)
    if drawn:
        axes.set_ylim(auto=True)
        axes.set_yscale("log")
        axes.relim()
        axes.autoscale(axis="y")
    return drawn


def _contention(results: Results, axes: Axes) -> bool:
    axes.set_title(f"Replays by {growth.HOT_CLIENTS} clients, by number of keys that they ask for")
    return _lines(axes, results.select(growth.CONTENTION), ["replay"], "keys", 10)


def _retention(results: Results, axes: Axes) -> bool:
    axes.set_title("At full speed beside purge, by retention")
    drawn = _lines(axes, results.select(growth.RETENTION), ["operations/s"], "seconds", 2)
    if drawn:
        size = axes.twinx()
        points = sorted((r.by["seconds"], r.median) for r in results.select(growth.RETENTION, "MB"))
        size.plot([x for x, _ in points], [y for _, y in points], marker="s", color="tab:orange")
        size.set_ylabel("MB of the table with its indexes", color="tab:orange")
        size.set_ylim(bottom=0)
    return drawn


def _peers(results: Results, axes: Axes) -> bool:
    axes.set_title("One insert under a key, 4 clients, operations/s")
    bars = [
        (name, part.removeprefix(peers.PART).strip(", "), record.median)
        for part in (peers.PART, peers.DELAYED)
        for name in reversed(peers.NAMES)
        for record in results.select(part, name, clients=4)
        if "replay" not in name
    ]
    labels = [f"{name}, 0.5 ms away" if where else name for name, where, _ in bars]
    axes.barh(labels, [value for *_, value in bars], color=[OURS if "pyidem" in b[0] else THEIRS for b in bars])
    for number, (*_, value) in enumerate(bars):
        axes.text(value, number, f" {value:,.0f}", va="center", fontsize="small")
    axes.tick_params(axis="y", labelsize="small")
    axes.margins(x=0.12)
    return bool(bars)


PLOTS: dict[str, Callable[[Results, Axes], bool]] = {
    "clients": _clients,
    "replays": _replays,
    "python": _python,
    "peers": _peers,
    "keys": _keys,
    "bodies": _bodies,
    "contention": _contention,
    "retention": _retention,
}
