"""Every language gets the same answers."""

from collections.abc import Callable

import pytest

from tests.conformance import results
from tests.conformance.conftest import Theatre
from tests.conformance.languages import Language, chosen
from tests.conformance.scenarios import Stage, play, script

CHOSEN = chosen()


@pytest.mark.parametrize("language", CHOSEN, ids=[language.key for language in CHOSEN])
def test_the_language_gets_every_answer(
    language: Language, prepared: Callable[[Language], Language], theatre: Theatre
) -> None:
    prepared(language)
    scenarios = script().scenarios
    failed: list[str] = []
    with theatre.start(language) as player:
        stage = Stage(player, theatre.users, theatre.admin)
        for number, scenario in enumerate(scenarios, 1):
            try:
                play(scenario, stage, f"{language.key}:{number}")
            except AssertionError as error:
                failed.append(f"{scenario.name}: {error}")
                stage.close_all()
        stage.close_all()
    results.note(language, passed=len(scenarios) - len(failed), played=len(scenarios))
    assert not failed, f"{language.name} fails {len(failed)} of {len(scenarios)}:\n" + "\n".join(failed)


def test_every_scenario_has_a_name_of_its_own() -> None:
    names = [scenario.name for scenario in script().scenarios]
    assert len(set(names)) == len(names)
