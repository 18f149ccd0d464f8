"""Sweeps by Dask distributed: the parts of `fairpace.sweep` that know it."""

from __future__ import annotations

import asyncio
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import count
from math import ceil
from typing import Any

from distributed import wait
from distributed.client import FuturesCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from ._errors import RunError
from ._sweep import Performer, WorkerDied

#: The scheduler is asked this often how many workers it has, in s.
_ASK = 5.0
#: A worker is at work for so long on a lot, at least, in s: some 15 ms go with the way there and back.
_LEAST = 1.0
#: Lots handed out in a second, at most: a scheduler manages some 250 of nothing but that.
_RATE = 150.0
#: Lots that wait at the scheduler, beside two for each thread of a worker.
_AHEAD = 8
#: Tasks that are open at a time, at most.
_MOST = 20_000


class Lost(RunError):
    """The cluster is gone."""

    def __init__(self, message: str):
        super().__init__(message)
        self.hint = "every finished batch is kept where the sweep has a folder: the same call goes on from there"
        self.add_note(f"hint: {self.hint}")


def lasts(threads: int) -> float:
    """How long a worker's thread is at work on a lot, in s."""
    return max(_LEAST, threads / _RATE)


def _room(threads: int) -> int:
    """Lots that are open at a time."""
    return 2 * threads + _AHEAD


def lot(seconds: float, threads: int) -> int:
    """Tasks of so many seconds that go together."""
    return max(1, min(int(lasts(threads) / seconds), _MOST // _room(threads)))


def _at_worker() -> Callable[[list[tuple[int, str]], str, float], None]:
    """The work of a worker on a lot of tasks: batches go to who asked for them soon after they are there, with the seconds that each took.

    What is not done after `seconds`, or does not succeed, is left undone; if it is the first, its error is that of the whole.

    A function within a function travels as it is, and not by its name: a scheduler then needs no package, and a worker without it says
    so, where it would die of a name that it does not know.
    """

    def perform_and_send(tasks: list[tuple[int, str]], topic: str, seconds: float) -> None:
        from time import monotonic

        from distributed import get_worker
        from fairpace._sweep import perform

        worker = get_worker()
        end = monotonic() + seconds
        ready: list[tuple[int, bytes, float]] = []
        sent = now = monotonic()
        for number, task in tasks:
            began = now
            try:
                batch = perform(task)
            except Exception:
                if number == tasks[0][0]:
                    raise
                break
            now = monotonic()
            ready.append((number, batch, now - began))
            if now > end:
                break
            if now - sent > seconds / 2:
                worker.log_event(topic, ready)
                ready, sent = [], now
        if ready:
            worker.log_event(topic, ready)

    return perform_and_send


at_worker = _at_worker()


class Cluster(Performer):
    """A `distributed.Client`: tasks go to its scheduler, and batches come back through it.

    Short ones go in lots, since each way there and back costs milliseconds at either end. A batch comes as an event, on the stream on
    which the worker then tells that its work is finished. Dask's own way leaves a result with its worker until somebody asks for it: what
    is finished is lost with the worker, and where that loss leads to an error, the futures of `Client.get_executor` never end.
    """

    def __init__(self, client: Any):
        super().__init__(client)
        self._client = client
        self._where = client.scheduler.address
        # One group of tasks to the scheduler, which keeps those back that no worker has room for: few wait where one dies.
        self._name = f"fairpace-{uuid.uuid4().hex}"
        self._tasks = count()
        self._lots = count()
        #: What has not come yet, by number.
        self._open: dict[int, Future[bytes]] = {}
        self._watches: set[Future[None]] = set()
        #: Of a batch, on the average of the latest; 0 before the first.
        self._seconds = 0.0
        self._threads = 0
        self._asked = float("-inf")
        self._warned = False
        client.subscribe_topic(self._name, self._came)

    def _came(self, event: tuple[float, list[tuple[int, bytes, float]]]) -> None:
        for number, batch, seconds in event[1]:
            self._seconds += (seconds - self._seconds) * (0.1 if self._seconds else 1.0)
            # One that was performed before its worker died may come twice.
            if future := self._open.pop(number, None):
                future.set_result(batch)

    def _lot(self) -> int:
        return lot(self._seconds, self._threads) if self._seconds else 1

    def submit(self, tasks: Iterable[str]) -> list[Future[bytes]]:
        numbered = list(zip(self._tasks, tasks))
        futures: list[Future[bytes]] = [Future() for _ in numbered]
        for (number, _), future in zip(numbered, futures, strict=True):
            # What was begun is not cancelled but let go, by `close`.
            future.set_running_or_notify_cancel()
            self._open[number] = future
        self._hand_out(numbered)
        return futures

    def _hand_out(self, tasks: list[tuple[int, str]]) -> None:
        lots = []
        most, workers = self._lot(), max(1, self._threads)
        while tasks:
            # The last ones are few, so that all workers end at the same time.
            size = min(most, ceil(len(tasks) / (2 * workers)))
            lots.append(tasks[:size])
            tasks = tasks[size:]
        # Called once: one at a time costs this process as much as the rest of their way.
        keys = [(self._name, next(self._lots)) for _ in lots]
        same = [self._name] * len(lots), [lasts(self._threads)] * len(lots)
        loop = self._client.loop.asyncio_loop
        for future, tasks in zip(self._client.map(at_worker, lots, *same, key=keys), lots, strict=True):
            watch = asyncio.run_coroutine_threadsafe(self._watch(future, tasks), loop)
            self._watches.add(watch)
            watch.add_done_callback(self._watches.discard)

    async def _watch(self, future: Any, tasks: list[tuple[int, str]]) -> None:
        """Waits for the end of a lot, when all its batches have come that will."""
        try:
            await wait([future])
            if error := await future.exception():
                raise error
        except KilledWorker as killed:
            died = f"each of the {killed.allowed_failures + 1} workers that were given it alone died; their logs say of what"
            return self._fail(tasks, WorkerDied(died))
        except (NoWorkerError, NoValidWorkerError) as none:
            words = f"the scheduler at {self._where} waited too long for a worker: {none}"
            return self._fail(tasks, Lost(words))
        except ImportError as none:
            return self._fail(tasks, RunError(f"a worker of the scheduler at {self._where} has no package `fairpace`: {none}"))
        except FuturesCancelledError as gone:
            words = f"the scheduler at {self._where} is lost: {' '.join(str(gone).split())}"
            return self._fail(tasks, Lost(words))
        except Exception as of_the_first:
            self._fail(tasks[:1], of_the_first)
        # Done well, it has brought the first at least: without end it would be handed out again.
        self._fail(tasks[:1], Lost("a task has finished, and its batch did not come"))
        if rest := [task for task in tasks if task[0] in self._open]:
            try:
                self._hand_out(rest)
            except Exception as error:
                self._fail(rest, Lost(f"the scheduler at {self._where} takes nothing more: {error}"))

    def _fail(self, tasks: list[tuple[int, str]], error: Exception) -> None:
        for number, _ in tasks:
            if future := self._open.pop(number, None):
                future.set_exception(error)

    def close(self) -> None:
        for watch in list(self._watches):
            watch.cancel()
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._name)

    def most(self) -> int:
        if time.monotonic() - self._asked > _ASK:
            self._ask()
        return _room(self._threads) * self._lot()

    def look(self) -> str:
        """Warns when there is no worker. They may come yet, so this is no error: batch systems start them when there is room."""
        self._ask()
        if self._threads:
            self._warned = False
            return ""
        words = f"no worker at {self._where}, waiting for one"
        if not self._warned:
            self._warned = True
            warnings.warn(words, RuntimeWarning, stacklevel=4)
        return words

    def _ask(self) -> None:
        self._asked = time.monotonic()
        # One that is lost says so itself: its tasks end.
        if self._client.status == "running":
            self._threads = self._client.scheduler_info(n_workers=0).get("total_threads", 0)
