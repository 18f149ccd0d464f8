"""Live media over bad networks, at a pace that is fair to TCP: scenarios in, tables out.

>>> import fairpace
>>> scenario = fairpace.Scenario(
...     duration="10 s",
...     path={"rate": "2 Mbit/s", "rtt": "100 ms"},
...     flows=[{"name": "video", "controller": "rcs"}, {"name": "file", "controller": "tcp-sack"}],
... )
>>> results = fairpace.run(scenario, seeds=3)
>>> results.flows["seed"]
[1, 1, 2, 2, 3, 3]

Read first: `Scenario`, `run`, `compare`; then `Controller`, for a controller of one's own, `LinkPart`, for a
part of a path, and `tables`, for scenarios made of objects. Results are `Table`s, which polars, pandas, pyarrow and DuckDB read where they lie.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from ._controller import Controller
from ._errors import FairpaceError, FolderError, ForeignFolderError, Interrupted, RunError, ScenarioError
from ._fairpace import (
    Acked,
    Env,
    LinkEnv,
    Loss,
    Packet,
    Reproduction,
    Results,
    Rtt,
    Scenario,
    Sent,
    Sweep,
    Table,
    __version__,
    experiments,
    plan_quick_start,
    plan_wireless,
    reproduce,
    run,
    send,
    tcp_rate,
)
from ._part import LinkPart
from ._plan import FlowNeed
from ._sweep import sweep

__all__ = [
    "Acked",
    "Controller",
    "Env",
    "FairpaceError",
    "FolderError",
    "FlowNeed",
    "ForeignFolderError",
    "Interrupted",
    "LinkEnv",
    "LinkPart",
    "Loss",
    "Packet",
    "Reproduction",
    "Results",
    "Rtt",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Sweep",
    "Table",
    "__version__",
    "compare",
    "experiments",
    "plan_quick_start",
    "plan_wireless",
    "reproduce",
    "run",
    "send",
    "sweep",
    "tcp_rate",
]


def __getattr__(name: str) -> object:
    # With matplotlib, which takes its time, only where figures are made; classes only where scenarios are made of them.
    if name in ("plots", "tables"):
        return importlib.import_module(f"fairpace.{name}")
    raise AttributeError(f"module 'fairpace' has no attribute '{name}'")


def compare(
    scenario: Scenario,
    controllers: Iterable[str],
    *,
    seeds: int | None = None,
    threads: int = 0,
    progress: Callable[[int, int, str], object] | None = None,
) -> dict[str, Results]:
    """Runs the same path with each of several controllers, under the same seeds, so that each meets the same losses.

    `controllers` are names, with parameters as in ``"rap:fine_grain=on,alpha=2"``; they take the place of every media flow's
    controller, or of every TCP flow's where there is no media flow. `seeds` is a number, or None for as many as the interval of the
    throughput needs (5 to 20), `threads` and `progress` are as those of `run`; `progress` counts each controller's seeds anew. Every name is
    looked at before anything runs. For classes of one's own call `run` with each.

    >>> scenario = Scenario(duration="5 s", path={"rate": "1 Mbit/s"}, flows=[{"name": "video", "controller": "rcs"}])
    >>> {name: len(results.seeds) for name, results in compare(scenario, ["rcs", "tfrc"], seeds=2).items()}
    {'rcs': 2, 'tfrc': 2}
    """
    if isinstance(controllers, str):
        raise TypeError(f'`controllers` is "{controllers}": write a list of names, as in ["rcs", "tfrc"]')
    variants = {name: scenario.with_controller(name) for name in controllers}
    return {
        name: run(variant, seeds=seeds, threads=threads, progress=progress) for name, variant in variants.items()
    }
