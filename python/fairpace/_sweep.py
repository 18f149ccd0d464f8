"""Sweeps over the fields of a scenario, on this machine's cores or by any executor."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import cache, partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from . import _fairpace
from ._errors import FairpaceError
from ._fairpace import Scenario, Sweep
from ._table import _text

#: A task by its place: the point's number, the first seed counted from the scenario's, how many seeds.
_Task = tuple[int, int, int]

#: When no batch has come for so long, in s, the performer is asked why.
_LOOK = 5.0
#: Errors of a task that are not its own.
_ENDING = (FairpaceError, BrokenExecutor, CancelledError, ImportError)
#: Batches that are flushed to disk beside each other: a disk takes hardly longer for four than for one.
_WRITERS = 4


@cache
def code() -> str:
    """The version of the program that decides results: this very library, to the byte."""
    with open(_fairpace.__file__, "rb") as library:
        digest = hashlib.file_digest(library, "sha256").hexdigest()[:16]
    return f"{_fairpace.__version__}, library {digest}"


def perform(task: str) -> bytes:
    """Performs a task of a sweep; what a worker calls. A task of another version of the library is refused."""
    return bytes(_fairpace.perform(task, code()))


class Submits(Protocol):
    """An executor as far as a sweep needs one: a `distributed.Client`, or another with this method."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Begins ``function(*args)`` elsewhere; returns a future."""


def sweep(
    scenario: Scenario,
    vary: Mapping[str, Any] | Iterable[str],
    *,
    design: str = "grid",
    points: int | None = None,
    design_seed: int | None = None,
    seeds: int = 5,
    batch: int = 5,
    ci_width: tuple[str, str] | None = None,
    most_seeds: int | None = None,
    metric: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    shard: str = "1/1",
    force: bool = False,
    retry: bool = False,
    threads: int = 0,
    executor: Executor | Submits | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> Sweep:
    """Runs a scenario with other values in some of its fields, each point with several seeds.

    `vary` has the fields by their paths: a list of values (text, numbers, dicts or classes of `fairpace.tables` where the field is a
    table), or text as the command takes it, ``"1e-4..1e-2/log7"``. `design` says which values stand together: ``"grid"``, ``"list"``,
    or `points` of them ``"random"`` or by a Latin hypercube, ``"latin"``, with draws of `design_seed` (1 if none is given); of equal
    points one is run. Each point gets `seeds` seeds, `batch` at a time; with ``ci_width=("video.throughput_bps", "5%")`` further
    batches until the half-width of the 95 % interval is below that, `most_seeds` at most, 50 or `seeds` if none is given
    (`Sweep.too_wide` has the points that would need more). `metric` ranks the points in the report; without one `ci_width`'s does,
    or the first group's goodput. Every point is checked before anything runs.

    With a `folder` each batch is on disk when it is done, and the same call goes on from there; ``fairpace report`` makes tables and a
    report of it, `Sweep.report` the report alone. `progress(done, total, what)` is called with the batches that are in and those that are
    needed so far. `executor` is any `concurrent.futures.Executor`, or a `distributed.Client`; without one `threads` of this machine's
    cores are used, all with 0. Results do not depend on it, nor on the order in which batches come. A point that fails does not stop the others:
    `Sweep.failed` has it, and `retry` runs it again. One that kills its workers ends as failed under Dask; a pool of processes is
    broken then, and the sweep ends with what it has.

    >>> scenario = Scenario(duration="5 s", path={"rate": "1 Mbit/s"}, flows=[{"name": "video", "controller": "rap"}])
    >>> found = sweep(scenario, {"path.rate": ["1 Mbit/s", "2 Mbit/s"]}, seeds=2)
    >>> len(found), len(found.groups)
    (2, 4)
    """
    if folder is None and (shard != "1/1" or force or retry):
        raise ValueError("`shard`, `force` and `retry` are about a `folder`, and none is given")
    if points is not None and design in ("grid", "list"):
        raise ValueError(f"`points` has no effect on the design \"{design}\": the values say how many there are")
    if force and shard != "1/1":
        raise ValueError("`force` would replace what other shards have; empty the folder before the first one begins")
    if most_seeds is not None and most_seeds < 1:
        raise ValueError(f"`most_seeds` is {most_seeds}: write a number from 1 on")
    if most_seeds is not None and ci_width is None:
        raise ValueError("`most_seeds` bounds what `ci_width` adds, and none is given")
    if executor is not None and threads:
        raise ValueError("`threads` is about this machine's cores, and the `executor` has its own workers: leave one out")
    if design_seed is not None and design in ("grid", "list"):
        raise ValueError(f"`design_seed` has no effect on the design \"{design}\": nothing is drawn")
    if isinstance(ci_width, str):
        raise TypeError(f'`ci_width` is "{ci_width}": write a metric and a width, as in ("video.throughput_bps", "5%")')
    if ci_width is not None and not (len(ci_width) == 2 and all(isinstance(part, str) for part in ci_width)):
        raise TypeError(f'`ci_width` is {ci_width!r}: write a metric and a width, both as text, as in ("video.throughput_bps", "5%")')
    narrow = None if ci_width is None else (*ci_width, max(50, seeds) if most_seeds is None else most_seeds)
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
        metric=metric,
        folder=folder,
        shard=shard,
        force=force,
        retry=retry,
    )
    try:
        performer = None if executor is None else _performer(executor)
        if len(work) < work.asked:
            warnings.warn(f"{len(work)} of the {work.asked} points are different; equal ones are run once", RuntimeWarning, stacklevel=2)
        if progress is not None:
            progress(*work.counts, work.found or "")
        if performer is None:
            work.run(threads, progress)
        else:
            _by(work, performer, progress)
    finally:
        work.close()
    if metric is not None and len(work.groups) and not len(work.best(metric)):
        warnings.warn(f"no point has a number for `{metric}`", RuntimeWarning, stacklevel=2)
    return work


def _performer(executor: Any) -> Performer:
    if isinstance(executor, type):
        raise TypeError(f"`executor` is the class {executor.__name__}: give an object of it, as in `with {executor.__name__}() as executor`")
    if hasattr(executor, "scheduler_info") and not hasattr(executor, "submit"):
        raise TypeError(f"`executor` is a cluster, {type(executor).__name__}: give a client of it, `distributed.Client(cluster)`")
    if hasattr(executor, "scheduler_info"):
        if getattr(executor, "asynchronous", False):
            raise TypeError("`executor` is an asynchronous client, and a sweep waits for its results: give a `distributed.Client` as it comes")
        if getattr(executor, "scheduler", None) is None:
            raise ValueError("`executor` is a client that is closed: give one that is connected")
        from ._dask import Cluster

        return Cluster(executor)
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"`executor` is {executor!r}: give an executor of `concurrent.futures`, or a `distributed.Client` of a scheduler"
        )
    return Performer(executor)


def _axes(vary: Mapping[str, Any] | Iterable[str]) -> list[str]:
    """`{"path.rate": ["1 Mbit/s", "2 Mbit/s"]}` as `["path.rate=1 Mbit/s,2 Mbit/s"]`."""
    if isinstance(vary, str):
        raise TypeError(f'`vary` is "{vary}": write {{"path.loss.p": "1e-4..1e-2/log7"}}, or a list of such texts as the command takes')
    if not isinstance(vary, Mapping):
        return list(vary)
    axes = []
    for field, values in vary.items():
        if not isinstance(values, str | Iterable):
            raise TypeError(f"`vary` has {values!r} for `{field}`: give a list of values, or text such as \"1..4/log3\"")
        if not isinstance(values, str):
            values = ",".join(_one(field, _text(value)) for value in values)
        axes.append(f"{field}={values}")
    return axes


def _one(field: str, value: str) -> str:
    """A value of a list as the command takes one: quoted where its commas would else make several. Those of a table are the table's,
    and those of a controller its parameters'."""
    is_one = "," not in value or value.startswith(("{", "[", '"')) or field.endswith("controller")
    return value if is_one else json.dumps(value, ensure_ascii=False)


class WorkerDied(Exception):
    """Every worker that was given a task died; maybe of another task that it had in hand, too."""


class Performer:
    """Who performs tasks: an executor of `concurrent.futures`, to which nothing but `submit` is known."""

    def __init__(self, executor: Any):
        self._executor = executor

    def submit(self, tasks: Iterable[str]) -> Iterable[Future[bytes]]:
        """Has tasks performed, each when its future is asked for at the latest."""
        return (self._executor.submit(perform, task) for task in tasks)

    def most(self) -> int:
        """Tasks that are open at a time, at most; with half of them no worker waits for us."""
        return 4096

    def look(self) -> str:
        """Called when nothing has come for some time. Why nothing does, if that is known."""
        return ""

    def close(self) -> None:
        """Called when no more is wanted."""


def _by(work: Sweep, performer: Performer, progress: Callable[[int, int, str], object] | None) -> None:
    """Has what is left performed. Whatever ends this early, the batches that have come are kept.

    Batches are kept by threads of their own, from the moment they come: while `progress` takes its time, too.

    A worker that dies takes the blame to all that it had in hand. So a task whose workers died is set aside until nothing else is
    open, and is then tried alone: one whose workers die again has killed them.
    """
    open_: dict[Future[bytes], _Task] = {}
    aside: deque[_Task] = deque()
    #: With the error of its task, if there was one, or the error that kept it from being taken.
    came: SimpleQueue[tuple[Future[bytes], BaseException | None, BaseException | None]] = SimpleQueue()
    writers = ThreadPoolExecutor(_WRITERS, "fairpace-writer")
    alone = False

    def keep(task: _Task, future: Future[bytes]) -> None:
        try:
            batch = future.result()
        except BaseException as error:
            return came.put((future, error, None))
        try:
            work.take(task, batch)
        except BaseException as error:
            return came.put((future, None, error))
        came.put((future, None, None))

    def write(task: _Task, future: Future[bytes]) -> None:
        try:
            writers.submit(keep, task, future)
        except RuntimeError:
            # No thread is to be had, or the interpreter is ending: by this one. After the end of the sweep nothing is kept.
            keep(task, future)

    def begin(tasks: list[_Task]) -> None:
        # One by one: whatever has been handed out is known to be.
        for task, future in zip(tasks, performer.submit(work.task(task) for task in tasks), strict=True):
            open_[future] = task
            future.add_done_callback(partial(write, task))

    def tell(what: str) -> None:
        if progress is not None:
            progress(*work.counts, what)

    try:
        while True:
            if not alone and len(open_) <= (most := performer.most()) // 2:
                ready = iter(work.ready, None)
                begin(list(islice(ready, most - len(open_))))
            if not open_:
                if not aside:
                    return
                alone = True
                begin([aside.popleft()])
            try:
                future, error, untaken = came.get(timeout=_LOOK)
            except Empty:
                if words := performer.look():
                    tell(words)
                continue
            task = open_.pop(future)
            if isinstance(error, WorkerDied) and not alone:
                aside.append(task)
                continue
            # Of the workers or the folder, not of the point: another version, no package there, no workers any more, a full disk.
            if ends := untaken or (error if isinstance(error, _ENDING) or not isinstance(error, Exception | None) else None):
                work.give_back(task)
                raise ends
            if error is not None:
                reason = str(error) if isinstance(error, WorkerDied) else f"{type(error).__name__}: {error}"
                work.lost(task, reason)
                for other in [other for other in aside if other[0] == task[0] and other[1] > task[1]]:
                    # Of no use any more.
                    aside.remove(other)
                    work.give_back(other)
            alone = False
            tell(f"{len(work.failed)} failed" if work.failed else "")
    finally:
        for future in open_:
            future.cancel()
        performer.close()
        writers.shutdown()
        for task in (*open_.values(), *aside):
            work.give_back(task)
