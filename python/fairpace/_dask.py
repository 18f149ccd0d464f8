"""Sweeps by Dask distributed: the parts of `fairpace.sweep` that know it."""

from __future__ import annotations

import asyncio
import time
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from distributed import wait
from distributed.client import FuturesCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from ._errors import RunError
from ._sweep import Performer, WorkerDied

#: The scheduler is asked this often how many workers it has, in s.
_ASK = 5.0


class Lost(RunError):
    """The cluster is gone."""

    def __init__(self, message: str):
        super().__init__(message)
        self.hint = "every finished batch is kept where the sweep has a folder: the same call goes on from there"
        self.add_note(f"hint: {self.hint}")


def _at_worker() -> Callable[[str, str, int], None]:
    """The work of a worker on a task: the batch goes to who asked for it, before the task counts as finished.

    A function within a function travels as it is, and not by its name: a scheduler then needs no package, and a worker without it says
    so, where it would die of a name that it does not know.
    """

    def perform_and_send(task: str, topic: str, number: int) -> None:
        from distributed import get_worker
        from fairpace._sweep import perform

        get_worker().log_event(topic, (number, perform(task)))

    return perform_and_send


at_worker = _at_worker()


class Cluster(Performer):
    """A `distributed.Client`: tasks go to its scheduler, and batches come back through it.

    A batch comes as an event, on the stream on which the worker then tells that the task is finished. Dask's own way leaves a result with
    its worker until somebody asks for it: what is finished is lost with the worker, and where that loss leads to an error, the futures
    of `Client.get_executor` never end.
    """

    def __init__(self, client: Any):
        super().__init__(client)
        self._client = client
        self._where = client.scheduler.address
        # One group of tasks to the scheduler, which keeps those back that no worker has room for: few wait where one dies.
        self._name = f"fairpace-{uuid.uuid4().hex}"
        self._count = 0
        self._batches: dict[int, bytes] = {}
        self._threads = 0
        self._asked = float("-inf")
        self._warned = False
        client.subscribe_topic(self._name, self._came)

    def _came(self, event: tuple[float, tuple[int, bytes]]) -> None:
        number, batch = event[1]
        self._batches[number] = batch

    def submit(self, tasks: list[str]) -> list[Future[bytes]]:
        # Together: one at a time costs this process as much as the rest of a task's way.
        numbers = range(self._count, self._count + len(tasks))
        self._count += len(tasks)
        keys = [(self._name, number) for number in numbers]
        futures = self._client.map(at_worker, tasks, [self._name] * len(tasks), list(numbers), key=keys)
        loop = self._client.loop.asyncio_loop
        pairs = zip(futures, numbers, strict=True)
        return [asyncio.run_coroutine_threadsafe(self._bring(future, number), loop) for future, number in pairs]

    async def _bring(self, future: Any, number: int) -> bytes:
        """The batch of a task, or why there is none."""
        try:
            await wait([future])
            if number in self._batches:
                return self._batches.pop(number)
            raise await future.exception() or Lost("a task has finished, and its batch did not come")
        except KilledWorker as error:
            died = f"each of the {error.allowed_failures + 1} workers that were given it alone died; their logs say of what"
            raise WorkerDied(died) from error
        except (NoWorkerError, NoValidWorkerError) as error:
            raise Lost(f"the scheduler at {self._where} waited too long for a worker: {error}") from error
        except ImportError as error:
            raise RunError(f"a worker at {self._where} has no package `fairpace`: {error}") from error
        except FuturesCancelledError as error:
            raise Lost(f"the scheduler at {self._where} is lost: {' '.join(str(error).split())}") from error

    def close(self) -> None:
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._name)

    def most(self) -> int:
        if time.monotonic() - self._asked > _ASK:
            self._ask()
        return 64 + 2 * self._threads

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
