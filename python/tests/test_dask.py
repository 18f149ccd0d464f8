"""Sweeps by Dask distributed: several processes, a worker that is killed, a worker of another version."""

from __future__ import annotations

import os
import signal

import fairpace
import pytest
from test_sweep import VARY, digest

distributed = pytest.importorskip("distributed")


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_results_are_the_local_ones_to_the_byte(scenario, client):
    local = fairpace.sweep(scenario, VARY, seeds=4, batch=2)
    assert digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, executor=client)) == digest(local)


def test_a_killed_worker_costs_only_its_unfinished_batches(scenario, client):
    longer = fairpace.Scenario(**{**scenario.to_dict(), "duration": "300 s"})
    vary = {"path.loss.p": [i / 1000 for i in range(1, 13)]}
    local = digest(fairpace.sweep(longer, vary, seeds=2, batch=1))
    victim = []

    def kill_one(done, needed, what):
        if done >= 4 and not victim:
            victim.append(next(iter(client.run(os.getpid).values())))
            os.kill(victim[0], signal.SIGKILL)

    found = fairpace.sweep(longer, vary, seeds=2, batch=1, executor=client, progress=kill_one)
    assert victim
    assert found.failed == []
    assert digest(found) == local


class Replaced:
    """A client's executor that is given other work for the tasks with a loss of 0.01."""

    def __init__(self, client, work):
        self.executor = client.get_executor(pure=False)
        self.work = work

    def submit(self, perform, task):
        return self.executor.submit(self.work if '"0.01"' in task else perform, task)


def perform_as_another_version(task):
    from fairpace import _fairpace

    return _fairpace.perform(task, "0.0.1, library 0")


def test_a_worker_of_another_version_is_refused(scenario, client):
    with pytest.raises(fairpace.RunError, match="0.0.1, library 0"):
        fairpace.sweep(scenario, VARY, seeds=1, batch=1, executor=Replaced(client, perform_as_another_version))


def test_a_scheduler_that_cannot_be_reached_is_named():
    with pytest.raises(OSError, match="127.0.0.1:9"):
        distributed.Client("tcp://127.0.0.1:9", timeout="2 s")
