"""A sweep by a scheduler and two workers in network namespaces of their own, joined by a bridge. Run beneath `unshare`.

usage: unshare --user --map-root-user --net in_namespaces.py FOLDER

Prints an object: the workers' addresses, and the digest of what came out.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import fairpace
from cluster import Processes
from distributed import Client
from test_sweep import VARY, digest


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def namespace(number: int) -> tuple[subprocess.Popen[bytes], tuple[str, ...]]:
    """A namespace with the address 10.77.0.NUMBER: the process that holds it, and what enters it."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    where = f"/proc/{holder.pid}/ns/net"
    while os.readlink(where) == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    enter = ("nsenter", f"--net={where}")
    run("ip", "link", "add", f"bridge{number}", "type", "veth", "peer", "name", f"worker{number}")
    run("ip", "link", "set", f"worker{number}", "netns", str(holder.pid))
    run("ip", "link", "set", f"bridge{number}", "master", "bridge", "up")
    run(*enter, "ip", "address", "add", f"10.77.0.{number}/24", "dev", f"worker{number}")
    run(*enter, "ip", "link", "set", f"worker{number}", "up")
    run(*enter, "ip", "link", "set", "lo", "up")
    return holder, enter


def main(folder: pathlib.Path) -> None:
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "address", "add", "10.77.0.1/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")
    holders = []
    try:
        with Processes(folder) as processes:
            address = processes.scheduler("10.77.0.1")
            for number in (2, 3):
                holder, enter = namespace(number)
                holders.append(holder)
                processes.worker(address, f"10.77.0.{number}", enter)
            with Client(address) as client:
                client.wait_for_workers(2, timeout=60)
                workers = sorted(about["host"] for about in client.scheduler_info()["workers"].values())
                scenario = fairpace.Scenario.load(folder / "scenario.toml")
                found = fairpace.sweep(scenario, VARY, seeds=4, batch=1, executor=client)
                where = client.run(lambda: os.readlink("/proc/self/ns/net"))
                print(json.dumps({"workers": workers, "namespaces": len(set(where.values())), "digest": digest(found)}))
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
