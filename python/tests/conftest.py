"""What several tests share."""

from __future__ import annotations

import pathlib

import fairpace
import pytest


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
