"""The dashboard shows what is exported, and nothing else."""

import json
import re
from typing import Any

import pytest

from tests.metrics.exported import DASHBOARD, QUERIES, exported
from tests.metrics.promql import reads, without_variables

BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]


@pytest.mark.parametrize(("title", "target"), TARGETS, ids=[f"{title} {target['refId']}" for title, target in TARGETS])
def test_an_expression_names_what_is_exported(title: str, target: dict[str, Any]) -> None:
    assert title
    found = reads(without_variables(target["expr"]))
    shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    assert found
    for read in found:
        assert read.series in exported()
        assert read.labels | shown <= exported()[read.series]


def test_variables_are_filled_from_what_is_exported() -> None:
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}
    queried = [each["query"]["query"] for each in variables.values() if each["type"] == "query"]
    for query in queried:
        parsed = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert parsed is not None
        (read,) = reads(without_variables(parsed[1]))
        assert read.labels | {parsed[2]} <= exported()[read.series]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(PANELS))) - {"__rate_interval"}
    assert used == set(variables)


def test_everything_that_is_exported_is_shown() -> None:
    shown = {read.series for _, target in TARGETS for read in reads(without_variables(target["expr"]))}
    of_a_histogram = {name for name in exported() if name.endswith(("_count", "_sum"))}
    assert set(exported()) - of_a_histogram == shown


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in PANELS)


def test_the_files_are_plain() -> None:
    for file in QUERIES.parent.iterdir():
        text = file.read_bytes()
        assert text.isascii(), file
        assert b"\t" not in text, file
