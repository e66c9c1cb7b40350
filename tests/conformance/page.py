"""The part of README.md that a run writes: the table, and the ten lines in each language."""

import re
from collections.abc import Iterable, Mapping

from tests.conformance.languages import HERE, Language, languages
from tests.conformance.results import Result
from tests.conformance.scenarios import script

README = HERE / "README.md"
BEGIN = "<!-- languages: written by `make conformance` -->\n"
END = "<!-- end of languages -->\n"

_HIGHLIGHTED = {
    ".c": "c",
    ".go": "go",
    ".java": "java",
    ".js": "js",
    ".php": "php",
    ".pl": "perl",
    ".py": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sql": "sql",
}
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (\d+) of (\d+) \| (\d+) \|$", re.MULTILINE)


def written(results: Mapping[str, Result]) -> str:
    """Return the page with what a run of all languages has found."""
    before, rest = README.read_text().split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{_table(languages(), results)}\n{_snippets(languages())}{END}{after}"


def shown() -> Mapping[str, tuple[str, Result, int]]:
    """Return what the page shows of each language, by its name: driver, result and lines."""
    return {
        name: (driver, Result(int(passed), int(played)), int(lines))
        for name, driver, passed, played, lines in _ROW.findall(README.read_text())
    }


def stale() -> list[str]:
    """Say where the page differs from the files, as far as that can be told without a run."""
    page, rows = README.read_text(), shown()
    expected = {language.name: (language.driver, language.lines()) for language in languages()}
    actual = {name: (driver, lines) for name, (driver, _, lines) in rows.items()}
    found = [f"{name}: {actual.get(name)}" for name, truth in expected.items() if actual.get(name) != truth]
    found += [f"{name}: there is no such language" for name in actual.keys() - expected.keys()]
    number = len(script().scenarios)
    found += [
        f"{name}: {result.passed} of {result.played} scenarios, and there are {number}"
        for name, (_, result, _) in rows.items()
        if not result.passed == result.played == number
    ]
    return found + [f"{one.name}: the ten lines" for one in languages() if _snippet(one) not in page]


def _table(all_of_them: Iterable[Language], results: Mapping[str, Result]) -> str:
    rows = [
        f"| {one.name} | {one.driver} | {results[one.key].passed} of {results[one.key].played} | {one.lines()} |"
        for one in all_of_them
    ]
    return "\n".join(
        ["| language | driver | scenarios passed | lines of client code |", "|---|---|---|---|", *rows, ""]
    )


def _snippets(all_of_them: Iterable[Language]) -> str:
    return "\n".join(_snippet(one) for one in all_of_them)


def _snippet(language: Language) -> str:
    suffix = language.example[language.example.rindex(".") :]
    at = language.key
    return (
        f"{language.name}: [the client]({at}/{language.client}), [the example]({at}/{language.example})\n\n"
        f"```{_HIGHLIGHTED[suffix]}\n{language.ten_lines()}```\n"
    )
