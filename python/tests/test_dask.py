"""Sweeps by Dask distributed: the local bytes, and workers and a scheduler that die."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import warnings

import fairpace
import pytest
from cluster import stamps
from fairpace import _fairpace, _sweep
from test_sweep import VARY, digest

distributed = pytest.importorskip("distributed")
_dask = pytest.importorskip("fairpace._dask")


@pytest.fixture
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def longer(scenario) -> fairpace.Scenario:
    """So long that a batch is under way when its worker is killed."""
    return fairpace.Scenario(**{**scenario.to_dict(), "duration": "300 s"})


MANY = {"path.loss.p": [i / 1000 for i in range(1, 13)]}


def test_results_are_the_local_ones_to_the_byte(scenario, client):
    local = fairpace.sweep(scenario, VARY, seeds=4, batch=2)
    assert digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, executor=client)) == digest(local)


def test_a_killed_worker_costs_only_its_unfinished_batches(longer, client):
    local = digest(fairpace.sweep(longer, MANY, seeds=2, batch=1))
    victim = []

    def kill_one(done, needed, what):
        if done >= 4 and not victim:
            victim.append(next(iter(client.run(os.getpid).values())))
            os.kill(victim[0], signal.SIGKILL)

    found = fairpace.sweep(longer, MANY, seeds=2, batch=1, executor=client, progress=kill_one)
    assert victim
    assert found.failed == []
    assert digest(found) == local


def test_a_point_that_kills_its_workers_ends_as_failed_and_takes_no_other_with_it(scenario, processes, monkeypatch):
    perform = _dask.at_worker

    def perform_or_die(tasks, topic, seconds):
        if any('"0.01"' in task and '"rcs"' in task for _, task in tasks):
            os.kill(os.getpid(), signal.SIGKILL)
        perform(tasks, topic, seconds)

    monkeypatch.setattr(_dask, "at_worker", perform_or_die)
    # Workers of a `LocalCluster` would be given up for lost meanwhile.
    address = processes.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    for _ in range(2):
        processes.worker(address, nanny=True)
    with distributed.Client(address) as client:
        found = fairpace.sweep(scenario, VARY, seeds=4, batch=2, executor=client)
    assert len(found.failed) == 1, found.failed
    [(settings, seed, reason)] = found.failed
    assert settings == "path.loss.p=0.01 flow.video.controller=rcs"
    assert seed == 1
    assert reason == "each of the 2 workers that were given it alone died; their logs say of what"

    def rows(table):
        values = [table[name] for name in table.columns]
        return [row for row in zip(*values, strict=True) if row[1:3] != (0.01, "rcs")]

    local = fairpace.sweep(scenario, VARY, seeds=4, batch=2)
    assert rows(found.groups) == rows(local.groups)
    assert len(found.groups) == len(rows(local.groups)) == 3 * 4 * 2
    assert rows(found.links) == rows(local.links)


def test_what_a_worker_leaves_undone_of_a_lot_is_handed_out_again(scenario, client, monkeypatch):
    perform, hand_out, lots = _dask.at_worker, _dask.Cluster._hand_out, []

    def perform_the_first(tasks, topic, seconds):
        perform(tasks[:1], topic, seconds)

    def remember(cluster, tasks):
        lots.append(len(tasks))
        hand_out(cluster, tasks)

    monkeypatch.setattr(_dask, "at_worker", perform_the_first)
    monkeypatch.setattr(_dask.Cluster, "_hand_out", remember)
    many = {"path.loss.p": [i / 1000 for i in range(1, 41)]}
    found = fairpace.sweep(scenario, many, seeds=1, executor=client)
    assert digest(found) == digest(fairpace.sweep(scenario, many, seeds=1))
    # Forty tasks were handed out, and some of them again.
    assert sum(lots) > 40


def test_a_scheduler_that_takes_no_more_of_a_lot_is_named(scenario, client, monkeypatch):
    perform, hand_out, refused = _dask.at_worker, _dask.Cluster._hand_out, []

    def once(cluster, tasks):
        if cluster._open and cluster._seconds:
            refused.append(tasks)
            raise RuntimeError("no room")
        hand_out(cluster, tasks)

    # Lots of four, of which a worker does the first.
    monkeypatch.setattr(_dask, "at_worker", lambda tasks, topic, seconds: perform(tasks[:1], topic, seconds))
    monkeypatch.setattr(_dask.Cluster, "_lot", lambda cluster: 4)
    monkeypatch.setattr(_dask.Cluster, "_hand_out", once)
    many = {"path.loss.p": [i / 1000 for i in range(1, 41)]}
    with pytest.raises(fairpace.RunError, match="takes nothing more: no room"):
        fairpace.sweep(scenario, many, seeds=1, executor=client)
    assert refused


def test_a_batch_that_does_not_come_is_named(scenario, client, monkeypatch):
    monkeypatch.setattr(_dask, "at_worker", lambda tasks, topic, seconds: None)
    with pytest.raises(fairpace.RunError, match="its batch did not come"):
        fairpace.sweep(scenario, VARY, seeds=1, executor=client)


def test_a_scheduler_that_dies_is_named_and_what_is_finished_is_kept(longer, processes, tmp_path):
    folder = tmp_path / "sweep"
    address = processes.scheduler()
    processes.worker(address)
    processes.worker(address)

    def kill_it(done, needed, what):
        if done == 4:
            processes.kill_scheduler()

    with (
        distributed.Client(address, timeout="5 s") as client,
        pytest.raises(fairpace.RunError, match=f"the scheduler at {address} is lost") as raised,
    ):
        fairpace.sweep(longer, MANY, seeds=2, batch=1, folder=str(folder), executor=client, progress=kill_it)
    assert "the same call goes on from there" in raised.value.hint
    kept = stamps(folder)
    assert 4 <= len(kept) < 24

    address = processes.scheduler()
    processes.worker(address)
    with distributed.Client(address) as client:
        found = fairpace.sweep(longer, MANY, seeds=2, batch=1, folder=str(folder), executor=client)
    assert digest(found) == digest(fairpace.sweep(longer, MANY, seeds=2, batch=1))
    assert kept.items() <= stamps(folder).items()


def test_without_any_worker_the_sweep_says_so_and_goes_on_with_the_next(longer, processes, monkeypatch):
    monkeypatch.setattr("fairpace._sweep._LOOK", 0.5)
    address = processes.scheduler()
    only = processes.worker(address)
    said = []

    def kill_and_replace(done, needed, what):
        if done == 4 and not said:
            only.kill()
        if what.startswith("no worker"):
            if not said:
                processes.worker(address)
            said.append(what)

    with distributed.Client(address) as client, pytest.warns(RuntimeWarning, match=f"no worker at {address}") as warned:
        found = fairpace.sweep(longer, MANY, seeds=1, executor=client, progress=kill_and_replace)
    assert len([w for w in warned if w.category is RuntimeWarning]) == 1
    assert digest(found) == digest(fairpace.sweep(longer, MANY, seeds=1))


def test_the_schedulers_own_limit_on_waiting_ends_the_sweep(scenario, processes):
    address = processes.scheduler(DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT="1s")
    with (
        distributed.Client(address) as client,
        warnings.catch_warnings(action="ignore"),
        pytest.raises(fairpace.RunError, match=f"the scheduler at {address} waited too long for a worker"),
    ):
        fairpace.sweep(scenario, VARY, seeds=1, executor=client)


def test_workers_in_namespaces_of_their_own_give_the_local_bytes(scenario, tmp_path):
    unshare = ("unshare", "--user", "--map-root-user", "--net")
    tried = subprocess.run([*unshare, "ip", "link", "add", "x", "type", "bridge"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no network namespace of one's own here: {tried.stderr.strip()}")
    (tmp_path / "scenario.toml").write_text(scenario.toml)
    script = pathlib.Path(__file__).with_name("in_namespaces.py")
    ran = subprocess.run(
        [*unshare, sys.executable, script, tmp_path], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["workers"] == ["10.77.0.2", "10.77.0.3"]
    assert found["namespaces"] == 2
    assert found["digest"] == digest(fairpace.sweep(scenario, VARY, seeds=4, batch=1))


def test_a_worker_with_another_library_is_refused(scenario, processes, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(pathlib.Path(fairpace.__file__).parent, other / "fairpace")
    # The loader does not look at what stands behind the last section; the digest does.
    with (other / "fairpace" / pathlib.Path(_fairpace.__file__).name).open("ab") as library:
        library.write(b"another one")
    address = processes.scheduler()
    processes.worker(address, PYTHONPATH=str(other))
    with distributed.Client(address) as client:
        client.wait_for_workers(1, timeout=30)
        [version] = client.run(_sweep.code).values()
        assert version != _sweep.code()
        with pytest.raises(fairpace.RunError, match=f"the task is for the program `.*`, and this is `{version}`"):
            fairpace.sweep(scenario, VARY, seeds=1, executor=client)


def test_a_worker_without_the_package_ends_the_sweep_and_fails_no_point(scenario, processes, tmp_path):
    (tmp_path / "without" / "fairpace").mkdir(parents=True)
    (tmp_path / "without" / "fairpace" / "__init__.py").write_text("raise ImportError('not installed')")
    without = {"PYTHONPATH": str(tmp_path / "without")}
    # The scheduler needs none.
    address = processes.scheduler(**without)
    processes.worker(address, **without)
    words = f"a worker of the scheduler at {address} has no package `fairpace`: not installed"
    with distributed.Client(address) as client, pytest.raises(fairpace.RunError, match=words):
        fairpace.sweep(scenario, VARY, seeds=1, executor=client)


def test_a_client_that_is_closed_or_asynchronous_is_refused(scenario, client):
    address = client.scheduler.address

    async def sweep():
        async with distributed.Client(address, asynchronous=True) as waiting:
            fairpace.sweep(scenario, VARY, seeds=1, executor=waiting)

    with pytest.raises(TypeError, match="asynchronous client"):
        asyncio.run(sweep())
    closed = distributed.Client(address)
    closed.close()
    with pytest.raises(ValueError, match="a client that is closed"):
        fairpace.sweep(scenario, VARY, seeds=1, executor=closed)


def test_a_scheduler_that_cannot_be_reached_is_named():
    with pytest.raises(OSError, match="127.0.0.1:9"):
        distributed.Client("tcp://127.0.0.1:9", timeout="2 s")
