"""`fairpace sweep --dask`: the command, whose batches the package has run by a cluster."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import fairpace
import pytest
from cluster import stamps

pytest.importorskip("distributed")

VARY = ("--vary", "path.loss.p=0.001,0.01", "--vary", "flow.video.controller=rcs,tfrc")
#: Batches that last long enough to be interrupted.
MANY = ("--vary", "path.loss.p=0.001..0.02/20", "--seeds", "1")


@pytest.fixture
def cluster(processes) -> str:
    address = processes.scheduler()
    processes.worker(address)
    processes.worker(address)
    return address


@pytest.fixture
def file(scenario, tmp_path) -> pathlib.Path:
    file = tmp_path / "small.toml"
    file.write_text(scenario.toml)
    return file


@pytest.fixture
def longer(scenario, tmp_path) -> pathlib.Path:
    file = tmp_path / "longer.toml"
    file.write_text(fairpace.Scenario(**{**scenario.to_dict(), "duration": "300 s"}).toml)
    return file


@pytest.fixture
def start(program):
    """Starts `fairpace sweep` with this interpreter as the package's."""
    started = []

    def start(*words: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [program, "sweep", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"FAIRPACE_PYTHON": sys.executable} | environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[str], code: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out, err


def until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def results(folder: pathlib.Path) -> dict[str, bytes]:
    """Tables and report; these name the folder, and neither program nor time."""
    files = [*folder.glob("*.csv"), *folder.rglob("*.parquet"), folder / "report.html"]
    name = str(folder).encode()
    return {str(path.relative_to(folder)): path.read_bytes().replace(name, b"FOLDER") for path in files}


@pytest.fixture
def local(program, tmp_path):
    """The package's sweep on this machine's threads, with the command's tables and report."""

    def local(scenario: fairpace.Scenario, vary: tuple[str, ...], **more: object) -> dict[str, bytes]:
        folder = tmp_path / "local"
        fairpace.sweep(scenario, vary, folder=str(folder), **more)
        subprocess.run([program, "report", folder], check=True, capture_output=True)
        return results(folder)

    return local


def test_tables_and_report_are_those_of_the_local_sweep_to_the_byte(start, cluster, file, local, tmp_path):
    more = (*VARY, "--seeds", "4", "--batch", "2")
    by_dask = ended(start(file, *more, "--out", tmp_path / "dask", "--dask", cluster), 0)
    assert "8 of 8 batches" in by_dask[1]
    assert "results: " in by_dask[1]
    scenario = fairpace.Scenario.load(file)
    found = results(tmp_path / "dask")
    assert found == local(scenario, VARY[1::2], seeds=4, batch=2)
    assert {"groups.csv", "links.csv", "report.html"} < set(found)
    # The command alone is another program, with the same numbers.
    assert ended(start(file, *more, "--out", tmp_path / "alone"), 0)[0] == by_dask[0]
    # The package goes on from there, and the command from what the package has done.
    kept = stamps(tmp_path / "dask")
    fairpace.sweep(scenario, VARY[1::2], seeds=4, batch=2, folder=str(tmp_path / "dask"))
    _, err = ended(start(file, *more, "--out", tmp_path / "dask", "--dask", cluster), 0)
    assert "8 taken from an earlier run" in err
    assert stamps(tmp_path / "dask") == kept


def test_a_random_design_and_added_seeds_are_those_of_the_local_sweep(start, cluster, file, scenario, local, tmp_path):
    vary = "path.loss.p=1e-4..1e-2/log"
    more = ("--vary", vary, "--design", "latin", "--points", "3", "--design-seed", "7", "--seed", "5", "--seeds", "2")
    more = (*more, "--metric", "video.goodput_bps", "--ci-width", "5%", "--max-seeds", "6")
    ended(start(file, *more, "--out", tmp_path / "dask", "--dask", cluster), 0)
    same = fairpace.Scenario(**{**scenario.to_dict(), "seed": 5})
    drawn = {"design": "latin", "points": 3, "design_seed": 7}
    narrow = {"seeds": 2, "ci_width": ("video.goodput_bps", "5%"), "most_seeds": 6}
    # `fairpace report` goes by the metric that was to be narrow, too.
    assert results(tmp_path / "dask") == local(same, (vary,), **drawn, **narrow)


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(start, cluster, longer, tmp_path):
    folder = tmp_path / "sweep"
    words = (longer, *MANY, "--out", folder, "--dask", cluster)
    process = start(*words)
    until(lambda: len(stamps(folder)) >= 3)
    process.send_signal(signal.SIGINT)
    _, err = ended(process, 130)
    assert "interrupted: every finished batch is kept" in err
    assert (folder / "report.html").exists()
    kept = stamps(folder)
    assert 3 <= len(kept) < 20
    ended(start(*words), 0)
    assert kept.items() <= stamps(folder).items()
    assert len(stamps(folder)) == 20


def test_a_kill_ends_the_packages_process_too_and_a_resume_repeats_nothing(start, cluster, longer, tmp_path):
    folder = tmp_path / "sweep"
    words = (longer, *MANY, "--out", folder, "--dask", cluster)
    process = start(*words)
    until(lambda: len(stamps(folder)) >= 3)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    process.kill()
    process.wait()

    def is_over():
        try:
            return pathlib.Path(f"/proc/{children[0]}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(is_over, 5.0)
    kept = stamps(folder)
    assert 3 <= len(kept) < 20
    ended(start(*words), 0)
    assert kept.items() <= stamps(folder).items()
    assert len(stamps(folder)) == 20


def test_a_scheduler_that_dies_under_the_command_is_named(start, processes, longer, tmp_path):
    address = processes.scheduler()
    processes.worker(address)
    process = start(longer, *MANY, "--out", tmp_path / "sweep", "--dask", address)
    until(lambda: len(stamps(tmp_path / "sweep")) >= 3)
    processes.kill_scheduler()
    _, err = ended(process, 5)
    assert f"error: the scheduler at {address} is lost" in err
    assert "the same call goes on from there" in err
    assert len(stamps(tmp_path / "sweep")) >= 3


def test_what_is_missing_is_named_with_the_remedy(start, file, tmp_path):
    words = (file, *VARY, "--out", tmp_path / "never", "--dask", "tcp://127.0.0.1:9")

    def refused(code: int, says: str, hint: str, more: tuple[str, ...] = (), **environment: str) -> None:
        _, err = ended(start(*words, *more, **environment), code)
        assert says in err.partition("hint:")[0], err
        assert hint in err.partition("hint:")[2], err
        assert not (tmp_path / "never").exists()

    refused(2, "there is no Python: `/nowhere/python`", "FAIRPACE_PYTHON names it", FAIRPACE_PYTHON="/nowhere/python")
    # An interpreter without the environment's packages.
    bare = pathlib.Path(sys.executable).resolve()
    refused(2, "no package `fairpace`", "-m pip install './python[dask]'", FAIRPACE_PYTHON=str(bare), PYTHONPATH="")
    refused(5, "no scheduler at `tcp://127.0.0.1:9`", "as `dask scheduler` prints it")
    refused(2, "`--dask` is for simulations", "leave one out", ("--world", "emu"))
    _, err = ended(start(*words, "--jobs", "2"), 2)
    assert "`--dask` cannot be used with `--jobs`" in err
    _, err = ended(start(file, "--vary", "path.los.p=1", "--dask", "tcp://127.0.0.1:9"), 3)
    assert "los" in err


def test_a_package_without_dask_or_of_another_version_is_named(start, file, tmp_path):
    words = (file, *VARY, "--out", tmp_path / "never", "--dask", "tcp://127.0.0.1:9")
    (tmp_path / "without" / "distributed").mkdir(parents=True)
    (tmp_path / "without" / "distributed" / "__init__.py").write_text("raise ImportError('not here')")
    _, err = ended(start(*words, PYTHONPATH=str(tmp_path / "without")), 2)
    assert "has no Dask: not here" in err and "./python[dask]" in err

    other = tmp_path / "other" / "fairpace"
    shutil.copytree(pathlib.Path(fairpace.__file__).parent, other)
    with (other / "__init__.py").open("a") as package:
        package.write('\n__version__ = "0.0.1"\n')
    _, err = ended(start(*words, PYTHONPATH=str(other.parent)), 2)
    assert f"the command is version {fairpace.__version__}, and the package of `{sys.executable}` is 0.0.1" in err
    assert f"the wheel of version {fairpace.__version__}" in err
    assert not (tmp_path / "never").exists()


def test_a_shard_runs_its_points_and_the_last_writes_the_tables(start, cluster, file, local, tmp_path):
    words = (file, *VARY, "--seeds", "2", "--out", tmp_path / "shared", "--dask", cluster)
    ended(start(*words, "--shard", "1/2"), 0)
    assert len(stamps(tmp_path / "shared")) == 2
    assert not (tmp_path / "shared" / "report.html").exists()
    ended(start(*words, "--shard", "2/2"), 0)
    assert results(tmp_path / "shared") == local(fairpace.Scenario.load(file), VARY[1::2], seeds=2)


def test_a_folder_is_looked_at_as_by_the_command_alone(start, cluster, file, longer, tmp_path):
    folder = tmp_path / "sweep"
    asked = (*VARY, "--seeds", "2", "--batch", "1", "--out", folder, "--dask", cluster)
    ended(start(file, *asked), 0)
    torn, *_ = sorted((folder / "batches").rglob("[0-9a-f]*.json"))
    torn.write_bytes(torn.read_bytes()[:-10])
    said = ended(start(file, *asked), 0)[1]
    assert f"batches in `{folder}`: 7 taken from an earlier run, 1 torn or changed, run again" in said
    # Of another scenario: nothing is touched, and the exit code is the usual one.
    before = results(folder)
    refused = ended(start(longer, *asked), 2)[1]
    assert "a sweep of another scenario" in refused and "--force" in refused
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    foreign = ended(start(file, *asked[:-4], "--out", tmp_path / "mine", "--dask", cluster, "--force"), 2)[1]
    assert "--force" not in foreign and "never replaced" in foreign
    # By the command alone it is another program's.
    assert refused.splitlines()[1:] == ended(start(longer, *asked[:-2]), 2)[1].splitlines()[1:]
    assert results(folder) == before
