"""Sweeps by Dask distributed: the parts of `fairpace.sweep` that know it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ._sweep import perform


def submit(client: Any) -> Callable[[str], Future[bytes]]:
    """How a `distributed.Client` is given a task: as something that is not a function of its arguments to Dask, which would else
    take a task that is asked for again for one that it knows."""
    executor = client.get_executor(pure=False)
    return lambda task: executor.submit(perform, task)
