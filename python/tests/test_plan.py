"""Plans: the numbers of the command, and what cannot be is named."""

from __future__ import annotations

import json
import os
import subprocess

import fairpace
import pytest

PROGRAM = os.environ.get("FAIRPACE")


def by_command(*arguments):
    if PROGRAM is None:
        pytest.skip("$FAIRPACE does not name the program")
    return json.loads(subprocess.run([PROGRAM, "plan", *arguments, "--json"], capture_output=True, check=True).stdout)


def test_windows_are_those_of_the_command():
    needs = [fairpace.FlowNeed(), fairpace.FlowNeed(rtt="125 ms", share=2.0)]
    plan = fairpace.plan_wireless(needs, memory=0.35)
    flows = by_command("wireless", "--rtt", "85ms,125ms", "--share", "1,2", "--memory", "0.35")["flows"]
    for column in ("r_slots", "d_slots", "share", "rwnd_packets", "throughput_bps", "delay_outage", "lost_or_late"):
        assert plan[column] == [flow[column] for flow in flows]


def test_starts_are_those_of_the_command():
    plan = fairpace.plan_quick_start("256 kbit/s")
    rows = by_command("quick-start", "--rate", "256kbit/s")["strategies"]
    assert plan["strategy"] == [row["strategy"] for row in rows]
    assert plan["t_q_ms"] == [row["t_q_ms"] for row in rows]
    assert plan["longest_median_ms"] == [row["max_e2ed_ms"]["median"] for row in rows]
    assert plan["median_greatest_ms"] == [row["median_e2ed_ms"]["greatest"] for row in rows]
    humps = [row["second_hump"] for row in rows]
    assert plan["second_hump_ms"] == [hump and hump["rise_ms"] for hump in humps]


@pytest.mark.parametrize(
    ("call", "words", "hint"),
    [
        (lambda: fairpace.plan_wireless([fairpace.FlowNeed(throughput="1 Mbit/s")]), "throughput|delivers", "possible is"),
        (lambda: fairpace.plan_wireless([fairpace.FlowNeed(rtt="85")]), "`rtt` is `85`", "has no unit"),
        (lambda: fairpace.plan_wireless([fairpace.FlowNeed()], scheme="sometimes"), "sometimes", "persistent"),
        (lambda: fairpace.plan_wireless([fairpace.FlowNeed()], slots=(3, 2)), "slots", "allowed is"),
        (lambda: fairpace.plan_quick_start("2 Gbit/s"), "2 Gbit/s", None),
        (lambda: fairpace.plan_quick_start("1 kbit/s", frame="medium"), "medium", "small"),
    ],
)
def test_what_cannot_be_is_named(call, words, hint):
    with pytest.raises(fairpace.ScenarioError, match=words) as refused:
        call()
    assert hint is None or hint in refused.value.hint


def test_an_option_without_effect_is_refused():
    with pytest.raises(ValueError, match="limited"):
        fairpace.plan_wireless([fairpace.FlowNeed()], retries=3)
    with pytest.raises(TypeError):
        fairpace.FlowNeed(jitter="50 ms")
