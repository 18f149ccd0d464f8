"""Sweeps over the fields of a scenario, on this machine's cores or by any executor."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any

from . import _fairpace
from ._errors import FairpaceError
from ._fairpace import Scenario, Sweep

#: Tasks that wait at an executor beyond those under way: enough that no worker waits for us.
_AHEAD = 64


@cache
def code() -> str:
    """The version of the program that decides results: this very library, to the byte."""
    with open(_fairpace.__file__, "rb") as library:
        digest = hashlib.file_digest(library, "sha256").hexdigest()[:16]
    return f"{_fairpace.__version__}, library {digest}"


def perform(task: str) -> bytes:
    """Performs a task of a sweep; what a worker calls. A task of another version of the library is refused."""
    return bytes(_fairpace.perform(task, code()))


def sweep(
    scenario: Scenario,
    vary: Mapping[str, Any] | Iterable[str],
    *,
    design: str = "grid",
    points: int | None = None,
    design_seed: int = 1,
    seeds: int = 5,
    batch: int = 5,
    ci_width: tuple[str, str] | None = None,
    most_seeds: int = 50,
    folder: str | None = None,
    shard: str = "1/1",
    force: bool = False,
    threads: int = 0,
    executor: Executor | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> Sweep:
    """Runs a scenario with other values in some of its fields, each point with several seeds.

    `vary` has the fields by their paths: a list of values, or text as the command takes it, ``"1e-4..1e-2/log7"``. `design` says
    which values stand together: ``"grid"``, ``"list"``, or `points` of them ``"random"`` or by a ``"latin-hypercube"``. Each point gets `seeds`
    seeds, `batch` at a time; with ``ci_width=("video.throughput_bps", "5%")`` further batches until the half-width of the 95 %
    interval is below that, `most_seeds` at most. Every point is checked before anything runs.

    With a `folder` each batch is on disk when it is done, and the same call goes on from there; ``fairpace report`` makes tables and a
    report of it. `executor` is any `concurrent.futures.Executor`, or a `distributed.Client`; without one this machine's cores
    are used. Results do not depend on it, nor on the order in which batches come. A point that fails does not stop the others:
    `Sweep.failed` has it. One that kills its workers ends as failed under Dask, maybe with others that
    waited at the same workers; a pool of processes is broken then, and the sweep ends with what it has.

    >>> scenario = Scenario(duration="5 s", path={"rate": "1 Mbit/s"}, flows=[{"name": "video", "controller": "rap"}])
    >>> found = sweep(scenario, {"path.rate": ["1 Mbit/s", "2 Mbit/s"]}, seeds=2)
    >>> len(found), len(found.groups)
    (2, 4)
    """
    if folder is None and (shard != "1/1" or force):
        raise ValueError("`shard` and `force` are about a `folder`, and none is given")
    if points is not None and design in ("grid", "list"):
        raise ValueError(f"`points` has no effect on the design \"{design}\": the values say how many there are")
    if force and shard != "1/1":
        raise ValueError("`force` would replace what other shards have; empty the folder before the first one begins")
    narrow = None if ci_width is None else (*ci_width, most_seeds)
    work = Sweep(
        scenario,
        _axes(vary),
        code(),
        design=design,
        points=points,
        design_seed=design_seed,
        seeds=seeds,
        batch=min(batch, seeds),
        narrow=narrow,
        folder=folder,
        shard=shard,
        force=force,
    )
    if executor is None:
        work.run(threads, progress)
    else:
        _by(work, executor, progress)
    return work


def _axes(vary: Mapping[str, Any] | Iterable[str]) -> list[str]:
    """`{"path.rate": ["1 Mbit/s", "2 Mbit/s"]}` as `["path.rate=1 Mbit/s,2 Mbit/s"]`."""
    if not isinstance(vary, Mapping):
        return list(vary)
    axes = []
    for field, values in vary.items():
        text = values if isinstance(values, str) else ",".join(str(value) for value in values)
        axes.append(f"{field}={text}")
    return axes


def _submit(executor: Any) -> Callable[[str], Future[bytes]]:
    """How an executor is given a task. Dask's client must not take two tasks for one, nor give up with the first worker that dies."""
    if hasattr(executor, "scheduler_info"):
        from ._dask import submit

        return submit(executor)
    return lambda task: executor.submit(perform, task)


def _by(work: Sweep, executor: Any, progress: Callable[[int, int, str], object] | None) -> None:
    """Runs what is left by an executor. Whatever ends this early, the batches that have come in are kept."""
    submit = _submit(executor)
    open_: dict[Future[bytes], tuple[int, int, int]] = {}
    try:
        while True:
            while len(open_) < _AHEAD and (task := work.ready()) is not None:
                open_[submit(work.task(task))] = task
            if not open_:
                return
            done, _ = wait(open_, return_when=FIRST_COMPLETED)
            for future in done:
                task = open_.pop(future)
                _take(work, task, future)
            if progress is not None:
                progress(*work.counts, f"{len(work.failed)} failed" if work.failed else "")
    finally:
        for future, task in open_.items():
            future.cancel()
            work.give_back(task)


def _take(work: Sweep, task: tuple[int, int, int], future: Future[bytes]) -> None:
    error = future.exception()
    if error is None:
        work.take(future.result())
    elif isinstance(error, FairpaceError | BrokenProcessPool | ImportError):
        # Of the workers, not of the point: another version, no package there, no workers any more.
        raise error
    else:
        work.lost(task, f"{type(error).__name__}: {error}")
