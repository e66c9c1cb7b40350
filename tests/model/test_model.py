"""The server answers every call as the model does, whatever the order of events in three sessions."""

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine, Stage
from tests.support.database import Database


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [1])
def test_model(testing_db: Database, number: int) -> None:
    stage = Stage(testing_db)
    machine = seed(number)(type("Machine", (Machine,), {"stage": stage}))
    import time
    t = time.time()
    try:
        run_state_machine_as_test(machine, settings=settings(max_examples=150, stateful_step_count=50, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True, phases=[Phase.generate] if __import__('os').environ.get('NOSHRINK') else list(Phase)))
    finally:
        print(stage.runs, stage.steps, time.time() - t)
        for k, v in sorted(stage.reached.items()): print(v, k)
