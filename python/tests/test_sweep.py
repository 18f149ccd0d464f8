"""Sweeps: the same results by every executor, nothing lost, and what is wrong refused before it starts."""

from __future__ import annotations

import hashlib
import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor

import duckdb
import fairpace
import numpy
import polars
import pyarrow
import pyarrow.compute
import pyarrow.dataset
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
    # Batches that came while the first were told of are kept, too.
    assert rest[0] >= max(done) and all(ready > rest[0] for ready in rest[1:])
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


def test_a_recording_that_has_changed_since_gives_no_result(scenario, tmp_path):
    recording, folder = tmp_path / "link.mahimahi", str(tmp_path / "sweep")
    fast, slow = ("".join(f"{i * step}\n" for i in range(1, 500)) for step in (12, 40))
    recording.write_text(fast)
    fields = scenario.to_dict()
    fields["path"] = {"trace": {"file": str(recording)}, "rtt": "80 ms"}
    traced = fairpace.Scenario(**fields)
    expected = digest(fairpace.sweep(traced, {"path.rtt": ["10 ms"]}, seeds=1))

    class Elsewhere(ThreadPoolExecutor):
        """Workers who have another recording by that name."""

        def submit(self, perform, task):
            recording.write_text(slow)
            return super().submit(perform, task)

    with Elsewhere(1) as executor, pytest.raises(fairpace.RunError, match="is not what it was where the sweep began"):
        fairpace.sweep(traced, {"path.rtt": ["10 ms"]}, seeds=1, folder=folder, executor=executor)
    recording.write_text(fast)
    again = fairpace.sweep(traced, {"path.rtt": ["10 ms"]}, seeds=1, folder=folder)
    assert again.found is None and digest(again) == expected
    # Recordings as values, and a path without any.
    other = tmp_path / "other.mahimahi"
    other.write_text(slow)
    for vary in ({"path.trace.file": [str(recording), str(other)]}, {"path": [fields["path"], {"rate": "1 Mbit/s"}]}):
        with ThreadPoolExecutor(2) as executor:
            there = fairpace.sweep(traced, vary, seeds=1, executor=executor)
        assert there.complete and digest(there) == digest(fairpace.sweep(traced, vary, seeds=1))
        assert len(set(there.groups["goodput_bps"])) == 4


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_batches_that_have_come_are_kept_whatever_ends_the_sweep(scenario, tmp_path, raised):
    folder = str(tmp_path / "sweep")
    many = {"path.loss.p": [i / 1000 for i in range(1, 31)]}

    def wait_and_raise(ready, needed, what):
        # Batches go to disk while this takes its time.
        while ready and len([*tmp_path.glob("sweep/batches/*/[0-9a-f]*.json")]) < 30:
            time.sleep(0.01)
        if ready:
            raise raised("by hand")

    with ThreadPoolExecutor(1) as executor, pytest.raises(raised, match="by hand"):
        fairpace.sweep(scenario, many, seeds=1, folder=folder, executor=executor, progress=wait_and_raise)
    assert fairpace.sweep(scenario, many, seeds=1, folder=folder).found == "30 taken from an earlier run"


def test_the_batch_of_another_task_is_refused_and_an_interrupted_worker_is_no_failed_point(scenario, tmp_path):
    class Mixed:
        first: bytes | None = None

        def submit(self, perform, task):
            future: Future[bytes] = Future()
            self.first = self.first or perform(task)
            future.set_result(self.first)
            return future

    folder = tmp_path / "sweep"
    with pytest.raises(fairpace.RunError, match="the batch that came is another task's"):
        fairpace.sweep(scenario, VARY, seeds=1, folder=str(folder), executor=Mixed())
    assert len([*folder.glob("batches/*/*.json")]) <= 1

    class Interrupted:
        def submit(self, perform, task):
            future: Future[bytes] = Future()
            future.set_exception(KeyboardInterrupt("there"))
            return future

    with pytest.raises(KeyboardInterrupt, match="there"):
        fairpace.sweep(scenario, VARY, seeds=1, folder=str(folder), executor=Interrupted())

    class Closing(Interrupted):
        def submit(self, perform, task):
            future: Future[bytes] = Future()
            future.cancel()
            return future

    with pytest.raises(CancelledError):
        fairpace.sweep(scenario, VARY, seeds=1, folder=str(folder), executor=Closing())

    class NoBytes(Interrupted):
        def submit(self, perform, task):
            future: Future[bytes] = Future()
            future.set_result(None)
            return future

    with pytest.raises(TypeError):
        fairpace.sweep(scenario, VARY, seeds=1, folder=str(folder), executor=NoBytes())
    assert fairpace.sweep(scenario, VARY, seeds=1, folder=str(folder)).failed == []


def test_what_has_no_effect_is_refused_and_equal_points_are_run_once(scenario):
    for words, arguments in {
        "`threads`": {"threads": 2, "executor": ThreadPoolExecutor(1)},
        "`design_seed` has no effect": {"design_seed": 3},
        "less than the 5": {"ci_width": ("video.throughput_bps", "5%"), "most_seeds": 2},
    }.items():
        with pytest.raises(ValueError, match=words):
            fairpace.sweep(scenario, VARY, **arguments)
    for words, arguments in {
        "the class ThreadPoolExecutor": {"executor": ThreadPoolExecutor},
        "both as text": {"ci_width": ("video.goodput_bps", 0.05)},
    }.items():
        with pytest.raises(TypeError, match=words):
            fairpace.sweep(scenario, VARY, **arguments)
    with pytest.warns(RuntimeWarning, match="2 of the 20 points are different"):
        found = fairpace.sweep(scenario, {"flow.video.controller": "rcs,tfrc"}, design="random", points=20, seeds=1)
    assert len(found) == 2
    # The commas of one value are its own.
    with pytest.raises(fairpace.ScenarioError, match="1 Mbit/s, 2 Mbit/s"):
        fairpace.sweep(scenario, {"path.rate": ["1 Mbit/s, 2 Mbit/s"]})
    with pytest.raises(fairpace.ScenarioError, match=r"a,b\.mahimahi"):
        fairpace.sweep(scenario, {"path.trace.file": ["a,b.mahimahi"]})
    assert fairpace.sweep(scenario, VARY, seeds=1)._repr_html_().count("<tr>") == 1 + 4


ON_A_SMALL_DISK = """
import sys
from concurrent.futures import ThreadPoolExecutor

import fairpace

scenario = fairpace.Scenario.load(sys.argv[1])
many = {"path.loss.p": [i / 1000 for i in range(1, 201)]}
with ThreadPoolExecutor(2) as executor:
    try:
        found = fairpace.sweep(scenario, many, seeds=1, folder=sys.argv[2], executor=executor)
        print("complete", found.complete, found.found)
    except fairpace.RunError as error:
        print("refused", error.hint)
"""


def test_a_full_disk_keeps_what_was_written_and_with_room_the_sweep_goes_on(scenario, tmp_path):
    file, script, disk = tmp_path / "small.toml", tmp_path / "sweep.py", tmp_path / "disk"
    file.write_text(fairpace.Scenario(**{**scenario.to_dict(), "duration": "1 s"}).toml)
    script.write_text(ON_A_SMALL_DISK)
    disk.mkdir()
    sweep = f"'{sys.executable}' '{script}' '{file}' '{disk}/sweep'"
    lines = f"""mount -t tmpfs -o size=256k tmpfs '{disk}' || exit 77
        {sweep}; find '{disk}/sweep/batches' -name '[0-9a-f]*.json' | wc -l
        mount -o remount,size=16m '{disk}' && {sweep}"""
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", lines]
    ran = subprocess.run(shell, capture_output=True, text=True)
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip(f"no namespaces: {ran.stderr}")
    refused, kept, again = ran.stdout.splitlines()
    assert refused.startswith("refused the disk is full"), ran.stdout + ran.stderr
    assert 0 < int(kept) < 200
    assert again == f"complete True {kept} taken from an earlier run"


def test_polars_and_duckdb_read_the_folder_by_its_partitions(scenario, program, tmp_path):
    folder = tmp_path / "sweep"
    found = fairpace.sweep(scenario, VARY, seeds=2, folder=str(folder))
    subprocess.run([program, "report", folder], check=True, capture_output=True)
    files = f"{folder}/groups/**/*.parquet"
    expected = sum(found.groups["goodput_bps"])
    frame = polars.read_parquet(files, hive_partitioning=True)
    assert frame["goodput_bps"].sum() == pytest.approx(expected, rel=1e-12)
    assert sorted(set(frame["flow.video.controller"])) == ["rcs", "tfrc"]
    by = 'select "flow.video.controller", count(*), sum(goodput_bps) from read_parquet($1, hive_partitioning = true) group by 1'
    rows = duckdb.execute(by, [files]).fetchall()
    assert {name: count for name, count, _ in rows} == {"rcs": 8, "tfrc": 8}
    assert sum(total for *_, total in rows) == pytest.approx(expected, rel=1e-12)
    arrow = pyarrow.dataset.dataset(folder / "groups", partitioning="hive").to_table()
    assert pyarrow.compute.sum(arrow["goodput_bps"]).as_py() == pytest.approx(expected, rel=1e-12)


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

    class Cluster:
        scheduler_info = {}

    with pytest.raises(TypeError, match="`executor` is a cluster, Cluster: give a client of it"):
        fairpace.sweep(scenario, VARY, executor=Cluster())


def test_a_whole_list_of_flows_is_an_axis_with_a_column_of_its_own(scenario):
    flows = [[{"name": "video", "controller": name}] for name in ("rcs", "tfrc")]
    found = fairpace.sweep(scenario, {"flows": flows}, seeds=1)
    table = found.groups.to_polars()
    assert len(set(table["scenario.flows"])) == 2 and set(table["flows"]) == {1.0}
    assert len(set(found.links.columns)) == len(found.links.columns)


def test_the_report_is_one_page_and_the_scenarios_of_failed_points_lie_beside_it(scenario, tmp_path):
    found = fairpace.sweep(scenario, VARY, seeds=2, folder=tmp_path / "batches")
    page = found.report(tmp_path / "report.html").read_text()
    assert "Over path." in page and not (tmp_path / "failed").exists()

    class Unlucky(ThreadPoolExecutor):
        def submit(self, perform, task):
            return super().submit(int, "no number")

    there = tmp_path / "unlucky"
    with Unlucky(1) as executor:
        lost = fairpace.sweep(scenario, VARY, seeds=1, executor=executor)
    there.mkdir()
    page = lost.report(there / "report.html").read_text()
    files = sorted((there / "failed").glob("*.toml"))
    assert len(files) == 4 and len((there / "failed.csv").read_text().splitlines()) == 5
    # The page's commands name files that are there, and are scenarios.
    assert all(str(file) in page and fairpace.Scenario.load(file) for file in files)
    with pytest.raises(fairpace.FairpaceError, match="godput") as refused:
        found.report(tmp_path / "other.html", metric="video.godput_bps")
    assert "goodput_bps" in refused.value.hint


def test_a_metric_that_no_point_has_is_told(scenario):
    with pytest.warns(RuntimeWarning, match="no point has a number for `video.late`"):
        fairpace.sweep(scenario, {"path.rate": ["1 Mbit/s"]}, seeds=1, metric="video.late")
