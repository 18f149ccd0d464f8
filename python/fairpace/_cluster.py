"""The process that `fairpace sweep --dask` starts beside itself, since the command speaks no Dask.

The first line of standard input is the sweep, as an object of JSON. Standard input stays open as long as somebody waits for the
results: its end ends this process, when the batches that have come are on disk. Standard output has an object on each line: `done`,
`needed` and `what` after each batch and once before the first, when `what` is what the folder had; `notice` for what is worth a word;
`error` with `hint` and `kind` as the last line of a sweep that has come to nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import Any, BinaryIO

import fairpace

_INTERRUPTED = 130
#: What has come is on disk by then, in s, or the disk does not take it.
_GRACE = 10.0


class _Refused(Exception):
    def __init__(self, kind: str, message: str, hint: str):
        super().__init__(message)
        self.kind, self.hint = kind, hint


def _say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        hint = f"`{sys.executable} -m pip install 'distributed>=2026.8'`, or './python[dask]' in the repository"
        raise _Refused("usage", f"`{sys.executable}` has no Dask: {error}", hint) from error
    try:
        return Client(address, timeout="10 s")
    except (OSError, ValueError) as error:
        words = " ".join(str(error).split())
        hint = "an address is `tcp://HOST:PORT`, as `dask scheduler` prints it where it runs"
        raise _Refused("peer", f"no scheduler at `{address}`: {words}", hint) from error


def _sweep(asked: dict[str, Any]) -> None:
    if asked["version"] != fairpace.__version__:
        raise _Refused(
            "usage",
            f"the command is version {asked['version']}, and the package of `{sys.executable}` is {fairpace.__version__}",
            f"install the wheel of version {asked['version']}, or `./python[dask]` of its repository, there and at the workers",
        )
    scenario = fairpace.Scenario.parse(asked["scenario"], asked["file"])

    def progress(done: int, needed: int, what: str) -> None:
        _say(done=done, needed=needed, what=what)

    with _client(asked["dask"]) as client:
        from ._dask import Lost

        try:
            fairpace.sweep(scenario, asked["vary"], executor=client, progress=progress, **asked["options"])
        except Lost as error:
            raise _Refused("peer", str(error), error.hint or "") from error
        except fairpace.ForeignFolderError as error:
            raise _Refused("usage", str(error), error.hint or "") from error
        except fairpace.FolderError as error:
            raise _Refused("occupied", str(error), "") from error


def _end_with(whoever_waits: BinaryIO) -> None:
    whoever_waits.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(_INTERRUPTED)


def main() -> int:
    # The command hears Ctrl-C, and ends this process with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The command has said so itself.
    warnings.filterwarnings("ignore", message=".* points are different")
    warnings.showwarning = lambda message, *_, **__: _say(notice=str(message))
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    try:
        _sweep(asked)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except _Refused as error:
        _say(error=str(error), hint=error.hint, kind=error.kind)
    except fairpace.FairpaceError as error:
        kind = "scenario" if isinstance(error, fairpace.ScenarioError) else "failed"
        _say(error=str(error), hint=error.hint, kind=kind)
    except Exception as error:
        # Else the end of the interpreter meets the thread that reads standard input, and aborts before anybody is told.
        traceback.print_exc()
        _say(error=f"{type(error).__name__}: {error}", hint="", kind="failed")
    else:
        return 0
    return 1


if __name__ == "__main__":
    # Threads of Dask and of ours that still wait for something are not waited for.
    code = main()
    sys.stdout.flush()
    os._exit(code)
