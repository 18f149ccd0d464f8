"""A Dask cluster of separate processes, as an administrator starts one."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time


class Processes:
    """A scheduler and its workers. Each is a process; `enter` is what stands before its command, `nsenter …` for example."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        # Asked first: a nanny ends its worker, which would outlive it.
        for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
            for process in self._started:
                end(process)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and any(process.poll() is None for process in self._started):
                time.sleep(0.05)

    def _start(self, words: list[str], enter: tuple[str, ...] = (), **more: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{len(self._started)}.log").open("wb")
        command = [*enter, sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, env=os.environ | more)
        self._started.append(process)
        return process

    def scheduler(self, host: str = "127.0.0.1", enter: tuple[str, ...] = (), **more: str) -> str:
        """Starts a scheduler, and waits until it is there. Its address."""
        about = self._folder / f"scheduler-{len(self._started)}.json"
        words = ["scheduler", "--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
        self.process = self._start(words, enter, **more)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                return str(json.loads(about.read_text())["address"])
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)
        raise TimeoutError("the scheduler did not start: " + (self._folder / "0.log").read_text())

    def worker(
        self, scheduler: str, host: str = "127.0.0.1", enter: tuple[str, ...] = (), nanny: bool = False, **more: str
    ) -> subprocess.Popen[bytes]:
        """Starts a worker of one thread. With a nanny it is started again when it dies."""
        words = ["worker", scheduler, "--host", host, "--nthreads", "1", "--nanny" if nanny else "--no-nanny"]
        return self._start([*words, "--no-dashboard", "--local-directory", str(self._folder)], enter, **more)

    def kill_scheduler(self) -> None:
        """Ends the scheduler as a machine that fails does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def stamps(folder: pathlib.Path) -> dict[str, tuple[int, int]]:
    """The batches of a sweep's folder: one that is written anew has another inode or another time."""
    files = (folder / "batches").glob("*/[!.]*.json")
    return {path.name: ((about := path.stat()).st_ino, about.st_mtime_ns) for path in files}
