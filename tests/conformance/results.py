"""What the last run found."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tests.conformance.languages import BUILT, Language


@dataclass(frozen=True)
class Result:
    """How many scenarios were played, and how many of them were answered as they should be."""

    passed: int
    played: int


def note(language: Language, *, passed: int, played: int) -> None:
    """Keep the result of a language for the page."""
    BUILT.mkdir(exist_ok=True)
    (BUILT / f"{language.key}.json").write_text(json.dumps(asdict(Result(passed, played))))


def noted() -> Mapping[str, Result]:
    """Return what was kept, by the language's key."""
    return {file.stem: Result(**json.loads(file.read_text())) for file in sorted(BUILT.glob("*.json"))}


def forget() -> None:
    """Forget the results of earlier runs."""
    for file in BUILT.glob("*.json"):
        file.unlink()
