"""Users' programs pass a type checker, and one with a wrong argument does not."""

from __future__ import annotations

import subprocess
import sys

GOOD = """
import pathlib
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import fairpace
from fairpace import tables


class Client:
    def submit(self, function: Any, *args: Any, key: str | None = None, **options: Any) -> Any: ...


scenario = fairpace.Scenario(path=tables.Path(rate="1 Mbit/s"), flows=[tables.Flow(name="video", controller="rap")])
vary = {"path.loss.p": [0.1]}
fairpace.sweep(scenario, vary, folder=pathlib.Path("results"), executor=ProcessPoolExecutor())
page: pathlib.Path = fairpace.sweep(scenario, vary, executor=Client()).report(pathlib.Path("report.html"), metric=None)
"""

WRONG = """
import fairpace

fairpace.run(fairpace.Scenario.load("s.toml"), seeds="three")
"""


def checked(program: str, tmp_path) -> tuple[int, str]:
    file = tmp_path / "program.py"
    file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_what_the_pages_show_passes_a_type_checker(tmp_path):
    assert checked(GOOD, tmp_path)[0] == 0, checked(GOOD, tmp_path)[1]


def test_a_text_for_a_count_does_not(tmp_path):
    code, said = checked(WRONG, tmp_path)
    assert code == 1 and 'incompatible type "str"' in said
