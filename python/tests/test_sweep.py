"""Sweeps: the same results by every executor, nothing lost, and what is wrong refused before it starts."""

from __future__ import annotations

import hashlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import fairpace
import numpy
import pyarrow
import pytest

VARY = {"path.loss.p": [0.001, 0.01], "flow.video.controller": "rcs,tfrc"}


def digest(sweep: fairpace.Sweep) -> str:
    return hashlib.sha256((sweep.groups.to_csv() + sweep.links.to_csv()).encode()).hexdigest()


@pytest.fixture
def local(scenario) -> str:
    return digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, threads=1))


def test_results_do_not_depend_on_who_performs(scenario, local, tmp_path):
    for threads in (2, 8):
        assert digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, threads=threads)) == local
    with ThreadPoolExecutor(3) as threads:
        assert digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, executor=threads)) == local
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as processes:
        assert digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2, executor=processes)) == local
    for shard in ("1/2", "2/2"):
        both = fairpace.sweep(scenario, VARY, seeds=4, batch=2, folder=str(tmp_path / "shards"), shard=shard)
    assert digest(both) == local


def test_a_folder_is_gone_on_from_and_nothing_runs_twice(scenario, tmp_path):
    folder = str(tmp_path / "sweep")
    done = []

    def two(ready, needed, what):
        done.append(ready)
        if ready >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ThreadPoolExecutor(1) as one:
        fairpace.sweep(scenario, VARY, seeds=4, batch=2, folder=folder, executor=one, progress=two)
    rest = []
    again = fairpace.sweep(
        scenario, VARY, seeds=4, batch=2, folder=folder, progress=lambda ready, needed, what: rest.append(ready)
    )
    assert again.counts == (8, 8)
    # First of all, of what was there.
    assert rest[0] == len(done) - 1 and min(rest[1:]) > rest[0]
    assert again.found == f"{rest[0]} taken from an earlier run"
    assert digest(again) == digest(fairpace.sweep(scenario, VARY, seeds=4, batch=2))


def test_values_are_text_numbers_or_tables(scenario):
    def values(vary, column):
        found = pyarrow.table(fairpace.sweep(scenario, vary, seeds=1).groups)
        return list(dict.fromkeys(found[column].to_pylist()))

    tables = {"path.queue": ['{kind = "codel"}', {"kind": "red", "max_p": 0.2}]}
    assert values(tables, "path.queue") == ['{kind = "codel"}', '{"kind" = "red", "max_p" = 0.2}']
    outage = fairpace.tables.Outage(start="1 s", length="500 ms")
    assert values({"path.outages": [[], [outage]]}, "path.outages") == ["[]", '[{"start" = "1 s", "length" = "500 ms"}]']
    assert values({"path.loss.p": [0.001, numpy.float64(0.01), 0]}, "path.loss.p") == [0.001, 0.01, 0.0]
    assert values({"flow.video.count": numpy.arange(1, 3)}, "flow.video.count") == [1, 2]
    with pytest.raises(TypeError, match="None is nothing that a scenario can hold"):
        fairpace.sweep(scenario, {"path.queue": [None]}, seeds=1)
    with pytest.raises(TypeError, match=r"`vary` has 3 for `flow.video.count`: give a list"):
        fairpace.sweep(scenario, {"flow.video.count": 3}, seeds=1)


def test_a_sweep_that_is_over_leaves_its_folder_to_the_next(scenario, tmp_path):
    folder = str(tmp_path / "sweep")

    def stop(ready, needed, what):
        raise ValueError("by hand")

    # Both objects live on, as they do in a notebook.
    with pytest.raises(ValueError, match="by hand") as raised:
        fairpace.sweep(scenario, VARY, seeds=1, folder=folder, progress=stop)
    first = fairpace.sweep(scenario, VARY, seeds=1, folder=folder)
    again = fairpace.sweep(scenario, VARY, seeds=1, folder=folder)
    other = fairpace.Scenario(**{**scenario.to_dict(), "duration": "3 s"})
    with pytest.raises(fairpace.FolderError, match="another scenario") as occupied:
        fairpace.sweep(other, VARY, seeds=1, folder=folder)
    assert not isinstance(occupied.value, fairpace.ForeignFolderError)
    with pytest.raises(fairpace.ForeignFolderError, match="no sweep"):
        fairpace.sweep(other, VARY, seeds=1, folder=str(tmp_path), force=True)
    assert digest(again) == digest(first)
    assert raised.value.__traceback__ is not None


def test_a_failed_point_is_run_again_when_asked(scenario, tmp_path):
    folder = str(tmp_path / "sweep")

    class Unlucky(ThreadPoolExecutor):
        def submit(self, perform, task):
            return super().submit(int, "no number")

    with Unlucky(1) as executor:
        failed = fairpace.sweep(scenario, VARY, seeds=1, folder=folder, executor=executor).failed
    assert len(failed) == 4
    assert fairpace.sweep(scenario, VARY, seeds=1, folder=folder).failed == failed
    assert fairpace.sweep(scenario, VARY, seeds=1, folder=folder, retry=True).failed == []


def test_seeds_are_added_until_the_interval_is_narrow(scenario):
    wide = fairpace.sweep(scenario, {"path.rate": ["1 Mbit/s"]}, seeds=2, batch=2)
    narrow = fairpace.sweep(
        scenario, {"path.rate": ["1 Mbit/s"]}, seeds=2, batch=2, ci_width=("video.throughput_bps", "2%"), most_seeds=40
    )
    assert len(narrow.groups) > len(wide.groups)
    best = narrow.best("video.throughput_bps")
    [mean], [low], [high] = best["mean"], best["ci95_low"], best["ci95_high"]
    is_narrow = (high - low) / 2 <= 0.02 * mean
    assert is_narrow or best["seeds"] == [40]
    assert narrow.too_wide == ([] if is_narrow else ["path.rate=1 Mbit/s"])
    few = fairpace.sweep(scenario, {"path.rate": ["1 Mbit/s"]}, seeds=2, ci_width=("video.throughput_bps", "0.001%"), most_seeds=3)
    assert few.too_wide == ["path.rate=1 Mbit/s"]


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ({"path.los.p": [0.1]}, "los"),
        ({"path.loss.p": [2]}, "2"),
        ({"flow.video.controller": ["rsc"]}, "rsc"),
        ({}, "no axis"),
        ({"path.loss.p": "0.1..0.2"}, "0.1..0.2"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(scenario, vary, words, tmp_path):
    with pytest.raises(fairpace.ScenarioError, match=words) as refused:
        fairpace.sweep(scenario, vary, folder=str(tmp_path / "never"))
    assert refused.value.hint or "must be" in str(refused.value)
    assert not (tmp_path / "never").exists()


def test_another_sweeps_folder_is_left_alone(scenario, tmp_path):
    folder = str(tmp_path / "sweep")
    fairpace.sweep(scenario, {"path.rate": ["1 Mbit/s"]}, seeds=1, folder=folder)
    other = fairpace.Scenario(**{**scenario.to_dict(), "duration": "5 s"})
    with pytest.raises(fairpace.RunError, match="scenario"):
        fairpace.sweep(other, {"path.rate": ["1 Mbit/s"]}, seeds=1, folder=folder)


def test_a_task_of_another_version_is_refused(scenario):
    from fairpace import _fairpace, _sweep

    work = fairpace.Sweep(
        scenario, ["path.rate=1 Mbit/s"], _sweep.code(), design="grid", points=None, design_seed=1, seeds=1, batch=1,
        narrow=None, metric=None, folder=None, shard="1/1", force=False, retry=False,
    )  # fmt: skip
    with pytest.raises(fairpace.RunError, match="the task is for the program `.*, and this is `0.0.1, library 0`"):
        _fairpace.perform(work.task(work.ready()), "0.0.1, library 0")


def test_a_point_whose_worker_cannot_perform_it_ends_as_failed(scenario):
    class Unlucky(ThreadPoolExecutor):
        """Whatever is to run with this loss never comes back."""

        def submit(self, perform, task):
            if "0.01" in task:
                return super().submit(self.die)
            return super().submit(perform, task)

        @staticmethod
        def die():
            raise MemoryError("the worker is gone")

    with Unlucky(2) as executor:
        found = fairpace.sweep(scenario, {"path.loss.p": [0.001, 0.01]}, seeds=1, executor=executor)
    [(settings, seed, reason)] = found.failed
    assert "0.01" in settings
    assert reason == "MemoryError: the worker is gone"
    assert len(found.groups) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"shard": "1/2"}, "are about a `folder`"),
        ({"retry": True}, "are about a `folder`"),
        ({"points": 5}, "has no effect"),
        ({"design": "random"}, "needs `points`"),
        ({"design": "sideways"}, "sideways"),
        ({"seeds": 0}, "at least 1"),
        ({"most_seeds": 9}, "bounds what `ci_width` adds"),
    ],
)
def test_what_would_have_no_effect_is_refused(scenario, given, words):
    with pytest.raises(ValueError, match=words):
        fairpace.sweep(scenario, VARY, **given)


def test_a_text_where_more_is_needed_is_not_taken_apart(scenario):
    with pytest.raises(TypeError, match='write a metric and a width, as in'):
        fairpace.sweep(scenario, VARY, ci_width="5%")
    with pytest.raises(TypeError, match='or a list of such texts'):
        fairpace.sweep(scenario, "path.loss.p=0.1,0.2")
    with pytest.raises(TypeError, match="give an executor of `concurrent.futures`"):
        fairpace.sweep(scenario, VARY, executor="dask")
