"""Write tests/bench/README.md from the raw numbers of a run: `python -m tests.bench.report`."""

import argparse
import shutil
from pathlib import Path

from tests.bench import floors, from_python, growth, peers, plots
from tests.bench.proxy import DELAY
from tests.bench.results import Results, Table, pivot, targets_table
from tests.bench.server import HERE
from tests.support.database import ROOT

README = HERE / "README.md"
MARK = "<!-- written by `python -m tests.bench.report` from here on -->\n"
KEPT = ["peers", "clients", "keys", "bodies"]
KEYS_PER_SECOND = 1000
DAY = 86400
SHARE = 0.5  # of a processor, and of the memory: what to plan with


def markdown(table: Table) -> str:
    """Write a table in Markdown, under its title."""
    title, columns, rows = table
    lines = [
        f"**{title}**",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" + "--:|" * (len(columns) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n\n" if rows else ""


def machine(results: Results) -> str:
    """Describe what was measured on, and how."""
    what = results.machine
    options = results.options
    return (
        f"{what['processor']}, {what['memory']}, {what['system']}, {what['server']}, which shares the machine with what"
        f" measures it. fsync {options['fsync']}; medians of {options['rounds']} turns of {options['seconds']:g} s, in"
        " which the candidates alternate.\n\n"
        f"Settings: `{what['settings']}`, and `full_page_writes` off but for growth.\n\n"
    )


def capacity(results: Results) -> str:
    """Compute what a server takes from what one key costs."""
    cost = {record.name: record.median for record in results.select(growth.CAPACITY) if not record.by}
    most = max((record.by["keys"] for record in results.select(growth.CAPACITY) if record.by), default=0)
    stored = {r.name: r.median for r in results.select(growth.CAPACITY, keys=most)}
    if not cost or not stored:
        return ""
    per_day = KEYS_PER_SECOND * DAY
    index = stored["bytes stored, primary key"]
    rows = [
        [
            name,
            f"{cost[f'processor, {name}']:,.0f}",
            f"{1e6 / cost[f'processor, {name}']:,.0f}",
            f"{cost[f'WAL bytes, {name}']:,.0f}",
            f"{cost[f'WAL bytes, {name}'] * per_day / 1e9:,.0f}",
        ]
        for name in ("work", "atomic", "run", "once", "replay")
    ]
    columns = ["", "processor, us", "per second and core", "WAL, bytes", f"WAL, GB a day at {KEYS_PER_SECOND:,}/s"]
    one_core = SHARE * 1e6 / cost["processor, atomic"]
    memory = 64 * 2**30 * SHARE / index
    return (
        markdown((f"One operation, {growth.CAPACITY_CLIENTS} clients, without full-page images", columns, rows))
        + f"A stored key with a short answer takes {stored['bytes stored, all']:,.0f} bytes: "
        f"{stored['bytes stored, table']:,.0f} in the table, {index:,.0f} in the primary key, "
        f"{stored['bytes stored, index on expiry']:,.0f} in the index on expiry (of {most:,.0f} keys). Answers come on"
        " top of that, compressed where they can be.\n\n"
        f"So a day of {KEYS_PER_SECOND:,} keys a second, kept for the default of 24 hours, is"
        f" {per_day / 1e6:,.1f} million keys,"
        f" {per_day * stored['bytes stored, all'] / 1e9:,.0f} GB on disk and"
        f" {cost['WAL bytes, atomic'] * per_day / 1e9:,.0f} GB of WAL, work included. Full-page images come on top:"
        f" right after a checkpoint, with random keys, one writes {stored[growth.AFTER_CHECKPOINT]:,.0f} bytes:"
        " the further apart checkpoints are, the better. It occupies"
        f" {KEYS_PER_SECOND * cost['processor, atomic'] / 1e6:,.2f} cores.\n\n"
        "When to shard: what gives out first is the processor or the memory for the primary key, whose pages are"
        f" written at random. With half of each to spare, a core takes {one_core:,.0f} atomic operations a second, and"
        f" 64 GiB hold the primary key of {memory / 1e6:,.0f} million keys, that is"
        f" {memory / DAY:,.0f} new keys a second kept for 24 hours. A shorter `ttl` is the cheaper way: the"
        " memory goes by keys stored, not by keys a second. Past both, see"
        " [past one server](../../sql/README.md#past-one-server).\n\n"
    )


def write(results: Results) -> str:
    """Write all of it."""
    options = argparse.Namespace(clients=sorted({int(r.by["clients"]) for r in results.select(floors.PART) if r.by}))
    python = [
        pivot(results, from_python.part(flavour, delayed=delayed), from_python.NAMES, "clients", title)
        for delayed in (False, True)
        for flavour in from_python.FLAVOURS
        for title in [f"From Python, {flavour}{', 0.5 ms away' if delayed else ''}: operations/s by number of clients"]
    ]
    text = f"\n## The last full run\n\n{machine(results)}"
    text += markdown(targets_table(results, all_targets(options), "Achieved"))
    text += "![peers](plots/peers.png)\n\n"
    text += markdown(pivot(results, peers.PART, peers.NAMES, "clients", "Peers: operations/s by number of clients"))
    title = f"Peers, {DELAY * 1000:g} ms away: operations/s by number of clients"
    text += markdown(pivot(results, peers.DELAYED, peers.NAMES, "clients", title))
    text += "".join(f"{note}\n\n" for note in results.notes)
    text += "![clients](plots/clients.png)\n\n"
    text += markdown(pivot(results, floors.PART, floors.SCRIPTS, "clients", "SQL alone: operations/s by clients"))
    text += markdown(targets_table(results, floors.LOG, "WAL bytes of one operation, without full-page images"))
    text += "".join(markdown(table) for table in python)
    text += "## Growth\n\n![keys](plots/keys.png)\n\n![bodies](plots/bodies.png)\n\n"
    names = ["atomic", "run", "once", "replay", "store"]
    text += markdown(pivot(results, growth.KEYS, names, "keys", "Operations/s by number of keys stored"))
    text += markdown(pivot(results, growth.BODIES, names, "bytes", "Operations/s by length of the answer"))
    text += markdown(
        pivot(results, growth.CONTENTION, names, "keys", f"{growth.HOT_CLIENTS} clients: replays/s by number of keys")
    )
    title = "Beside purge, at full speed: by retention in seconds"
    text += markdown(pivot(results, growth.RETENTION, ["operations/s", "keys", "MB"], "seconds", title))
    return text + f"## Capacity\n\n{capacity(results)}".rstrip() + "\n"


def all_targets(options: argparse.Namespace) -> list[floors.Target]:
    """Return every target of every part."""
    targets = [
        *floors.targets(options.clients), *from_python.targets(options), *peers.targets(options),
        *growth.targets(options),
    ]  # fmt: skip
    return [target for target in targets if target.least is not None]


def main() -> None:
    """Write the page and keep the plots that matter."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.report", description=__doc__)
    parser.add_argument("raw", nargs="?", type=Path, default=ROOT / "bench-results" / "raw.json")
    options = parser.parse_args()
    results = Results.load(options.raw)
    folder = HERE / "plots"
    folder.mkdir(exist_ok=True)
    for plot in plots.draw(results, options.raw.parent):
        if plot.stem in KEPT:
            shutil.copy(plot, folder)
    before = README.read_text().partition(MARK)[0]
    README.write_text(before + MARK + write(results))


if __name__ == "__main__":
    main()
