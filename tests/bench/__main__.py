"""Measure what the calls cost, as ratios to what one would write by hand, all in one run on a throwaway server.

Parts: `floors` is SQL alone by pgbench, `python` the client and the same by hand, with and without a network delay,
`peers` other packages for the same purpose, `growth` what it costs as keys, bodies, clients and retention grow.
Candidates take turns, and the median counts. Tables are printed; raw numbers and plots are left in a folder,
where the numbers of parts that are not measured this time stay as they are.
"""

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType

from rich.console import Console

from tests.bench import floors, from_python, growth, peers, plots
from tests.bench.results import Results
from tests.bench.server import machine, running
from tests.support.database import ROOT

PARTS: dict[str, ModuleType] = {"floors": floors, "python": from_python, "peers": peers, "growth": growth}

# the first words of the names under which each keeps its numbers
OWNED = {
    "floors": ["floors", "wal"],
    "python": ["python"],
    "peers": ["peers"],
    "growth": ["keys", "bodies", "contention", "retention", "capacity"],
}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        prog="make bench ARGS=...", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="what to measure; all, if none is named"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement (default: 1)")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="measurements of what a target is set for, of the rest there is one; the median counts (default: 3)",
    )
    parser.add_argument(
        "--clients", type=int, nargs="+", default=[1, 4, 16, 64], help="concurrent clients (default: 1 4 16 64)"
    )
    parser.add_argument("--keys", type=int, default=10_000_000, help="most keys stored, for growth (default: 10000000)")
    parser.add_argument("--fsync", choices=["on", "off"], default="on", help="off shows the processor's part alone")
    parser.add_argument("--output", type=Path, default=ROOT / "bench-results", help="folder for numbers and plots")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    wanted = options.parts or list(PARTS)
    options.output.mkdir(parents=True, exist_ok=True)

    raw = options.output / "raw.json"
    results = Results.load(raw) if options.parts and raw.exists() else Results()
    results.forget(*(part for name in wanted for part in OWNED[name]))
    results.options |= {"rounds": options.rounds, "seconds": options.seconds, "fsync": options.fsync}
    for name, part in PARTS.items():
        if name not in wanted:
            continue
        began = time.monotonic()
        # a server of its own for each part, so that none inherits the tables of another
        settings = {"fsync": options.fsync, "full_page_writes": "on" if part is growth else "off"}
        with running(settings) as server:
            results.machine = machine(server)
            part.measure(server, options, results, console)
        results.options[f"{name} took"] = round(time.monotonic() - began)
        results.save(raw)
        plots.draw(results, options.output)
        part.report(options, results, console)
    console.print(f"raw numbers and plots: {options.output}")


if __name__ == "__main__":
    main()
