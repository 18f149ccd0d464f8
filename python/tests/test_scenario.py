"""Scenarios: from values, from text, from files; and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys

import fairpace
import pytest
from fairpace import tables


def test_values_objects_and_text_make_the_same_scenario(scenario):
    objects = fairpace.Scenario(
        name="small",
        duration="10 s",
        path=tables.Path(rate="1 Mbit/s", rtt="80 ms", loss={"kind": "random", "p": 0.01}),
        flows=[tables.Flow(name="video", controller="rcs"), tables.Flow(name="file", controller="tcp-sack")],
    )
    assert objects == scenario
    assert fairpace.Scenario.parse(scenario.toml) == scenario
    assert fairpace.Scenario(**scenario.to_dict()) == scenario


def test_a_scenario_survives_a_process_boundary(scenario):
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_file_of_the_repository_is_read(repository):
    geo = fairpace.Scenario.load(repository / "scenarios" / "geo.toml")
    assert geo.name == "geo"
    assert geo.duration_s > 0


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        ({"duration": "ten"}, "`duration`", None),
        ({"durration": "10 s"}, "durration", "duration"),
        ({"flows": [{"controller": "rsc"}]}, "`rsc`", "did you mean `rcs`?"),
        ({"flows": []}, "flows", None),
        ({"path": {"rate": "1 Mbit/s", "rtt": 80}}, "rtt", None),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(scenario, change, words, hint):
    with pytest.raises(fairpace.ScenarioError) as refused:
        fairpace.Scenario(**{**scenario.to_dict(), **change})
    assert words in str(refused.value)
    if hint:
        assert hint in refused.value.hint
        assert f"hint: {refused.value.hint}" in refused.value.__notes__


def test_a_value_that_no_file_can_hold_is_refused(scenario):
    with pytest.raises(TypeError, match="nothing that a scenario can hold"):
        fairpace.Scenario(**{**scenario.to_dict(), "duration": object()})


def test_a_controller_that_is_none_is_refused_with_the_nearest(scenario):
    with pytest.raises(fairpace.ScenarioError) as refused:
        scenario.with_controller("rpa")
    assert "did you mean `rap`?" in refused.value.hint


def test_none_leaves_a_field_to_its_default(scenario):
    fields = scenario.to_dict()
    assert fairpace.Scenario(**fields, satellite=None, wireless=None) == scenario


def test_the_classes_are_those_of_the_declarations():
    from importlib import resources

    from fairpace import _declare

    assert resources.files(fairpace).joinpath("tables.py").read_text() == _declare.text()
    assert _declare.stub() in resources.files(fairpace).joinpath("_fairpace.pyi").read_text()


def test_the_classes_are_there_for_the_first_line_that_uses_them():
    program = "import fairpace; print(fairpace.Scenario(path=fairpace.tables.Path(rate='1 Mbit/s'), flows=[{'name': 'v', 'controller': 'rap'}]).to_dict()['path']['rate'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 Mbit/s\n"), done.stderr
