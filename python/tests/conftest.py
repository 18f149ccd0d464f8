"""What several tests share."""

from __future__ import annotations

import os
import pathlib
import signal

import fairpace
import pytest
from cluster import Processes


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Ctrl-C is heard, which is not so where the tests are started in the background: tests that interrupt themselves would wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def scenario() -> fairpace.Scenario:
    """Video beside TCP over a lossy link of 1 Mbit/s, for ten seconds."""
    return fairpace.Scenario(
        name="small",
        duration="10 s",
        path={"rate": "1 Mbit/s", "rtt": "80 ms", "loss": {"kind": "random", "p": 0.01}},
        flows=[{"name": "video", "controller": "rcs"}, {"name": "file", "controller": "tcp-sack"}],
    )


@pytest.fixture
def repository() -> pathlib.Path:
    """The checkout that the tests are in."""
    return pathlib.Path(__file__).parents[2]


@pytest.fixture
def program(repository) -> pathlib.Path:
    """The command."""
    found = os.environ.get("FAIRPACE", str(repository / "target" / "debug" / "fairpace"))
    if not pathlib.Path(found).exists():
        pytest.skip(f"`{found}` is not built; FAIRPACE names another program")
    return pathlib.Path(found).resolve()


@pytest.fixture
def processes(tmp_path):
    """A Dask cluster of separate processes, ended with the test."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Processes(folder) as processes:
        yield processes
