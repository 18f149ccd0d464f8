"""Parts of links written in Python: packets come out as they decide, and what is wrong with them is named."""

from __future__ import annotations

import random
from collections import deque

import fairpace
import pytest


class Bottleneck(fairpace.LinkPart):
    """A drop-tail queue in packets before a transmitter, as a link of ours has them."""

    rate = 1e6
    capacity = 20

    def __init__(self, env):
        super().__init__(env)
        self.queue = deque()

    def on_packet(self, now, packet):
        if len(self.queue) == self.capacity:
            self.drop(packet)
            return
        self.queue.append(packet)
        if len(self.queue) == 1:
            self.timer = now + packet.size * 8 / self.rate

    def on_timer(self, now):
        self.forward(self.queue.popleft())
        if self.queue:
            self.timer = now + self.queue[0].size * 8 / self.rate


def path(start_spread="0 s", **fields) -> fairpace.Scenario:
    return fairpace.Scenario(
        duration="60 s",
        path={"rtt": "80 ms", **fields},
        flows=[
            {"name": "video", "controller": "rcs", "max_rate": "4 Mbit/s"},
            {"name": "file", "controller": "tcp-newreno", "start_spread": start_spread},
        ],
    )


WIDE = {"rate": "1 Gbit/s", "queue": {"kind": "drop-tail", "capacity": "1000 pkt"}}


@pytest.fixture
def wide() -> fairpace.Scenario:
    return path(**WIDE)


def test_a_queue_of_python_is_a_queue_of_rust(wide):
    # One run of two flows in step says little: a nanosecond decides who loses.
    ours = path(rate="1 Mbit/s", queue={"kind": "drop-tail", "capacity": "20 pkt"}, start_spread="2 s")
    python = path(**WIDE, start_spread="2 s")
    ours, theirs = fairpace.run(ours, seeds=16), fairpace.run(python, parts={"bottleneck": Bottleneck}, seeds=16)
    for flow in ("video", "file"):
        expected, found = (r.mean(flow, "throughput_bps")[0] for r in (ours, theirs))
        assert found == pytest.approx(expected, rel=0.03)
    # Packets that it drops are counted where those of a link are.
    assert all(x > 0 for x in theirs.flows["drops_queue_full_packets"])
    theirs, again = (fairpace.run(wide, parts={"bottleneck": Bottleneck}) for _ in range(2))
    assert again.flows.to_csv() == theirs.flows.to_csv()


def test_before_the_reverse_link_feedback_passes_and_data_does_not():
    seen = {"bottleneck": set(), "reverse": set()}

    class Watch(fairpace.LinkPart):
        def on_packet(self, now, packet):
            seen[self.env.link].add((packet.flow, packet.size > 100))
            self.forward(packet, now + 0.01)

    scenario = path(rate="1 Mbit/s")
    results = fairpace.run(scenario, parts={"bottleneck": Watch, "reverse": Watch})
    assert {("video", True), ("file", True)} <= seen["bottleneck"]
    assert ("file", True) not in seen["reverse"] and ("file", False) in seen["reverse"]
    without = fairpace.run(scenario)
    later = min(x for x in results.series["srtt_ms"] if x) - min(x for x in without.series["srtt_ms"] if x)
    assert later == pytest.approx(20, abs=3)


def test_random_numbers_repeat_with_the_seed_and_differ_between_seeds():
    class Loses(fairpace.LinkPart):
        def __init__(self, env):
            super().__init__(env)
            self.random = random.Random(env.seed)

        def on_packet(self, now, packet):
            if self.random.random() < 0.01:
                self.drop(packet, "link_error")
            else:
                self.forward(packet)

    scenario = path(rate="2 Mbit/s")
    first = fairpace.run(scenario, seeds=3, parts={"bottleneck": Loses})
    again = fairpace.run(scenario, seeds=3, threads=1, parts={"bottleneck": Loses})
    assert first.flows.to_csv() == again.flows.to_csv()
    lost = first.flows["drops_link_error_packets"]
    assert all(lost) and len(set(lost)) > 2


def test_marks_reach_the_sender():
    class Marks(fairpace.LinkPart):
        def on_packet(self, now, packet):
            self.forward(packet, mark=packet.ecn_capable and packet.number % 50 == 49)

    scenario = fairpace.Scenario(
        duration="30 s",
        path={"rate": "10 Mbit/s", "rtt": "50 ms"},
        flows=[{"name": "file", "controller": "tcp-newreno", "tcp": {"ecn": True}}],
    )
    free = fairpace.run(scenario).mean("file", "throughput_bps")[0]
    results = fairpace.run(scenario, parts={"bottleneck": Marks})
    assert results.mean("file", "throughput_bps")[0] < 0.8 * free
    assert results.mean("file", "loss_ratio")[0] == 0


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (lambda part, now, packet: 1 / 0, ZeroDivisionError, "division"),
        (lambda part, now, packet: part.forward(packet, now - 1), ValueError, "`at` is .* not past"),
        (lambda part, now, packet: part.forward(packet, float("nan")), ValueError, "`at` is nan"),
        (lambda part, now, packet: (part.forward(packet), part.drop(packet)), ValueError, "once"),
        (lambda part, now, packet: part.drop(packet, "because"), ValueError, "queue_full"),
        (lambda part, now, packet: part.forward("packet"), ValueError, "only a packet that is held"),
        (lambda part, now, packet: part.forward(packet, mark=True), ValueError, "cannot be marked"),
        (lambda part, now, packet: setattr(part, "timer", now), ValueError, "`timer` is"),
    ],
)
def test_a_decision_that_makes_no_sense_is_raised_with_link_seed_and_time(body, error, words):
    class Wrong(fairpace.LinkPart):
        def on_packet(self, now, packet):
            body(self, now, packet)

    with pytest.raises(error, match=words) as raised:
        fairpace.run(path(rate="1 Mbit/s"), parts={"bottleneck": Wrong})
    assert any("before link `bottleneck`, seed 1 at " in note for note in raised.value.__notes__)


def test_links_and_classes_that_are_none_are_refused(wide):
    with pytest.raises(fairpace.ScenarioError, match="no link `bottlenek`") as refused:
        fairpace.run(wide, parts={"bottlenek": Bottleneck})
    assert refused.value.hint == "did you mean `bottleneck`?"
    with pytest.raises(TypeError, match=r"is no fairpace\.LinkPart"):
        fairpace.run(wide, parts={"bottleneck": fairpace.Controller})


def test_packets_that_are_held_for_ever_are_under_way_and_kept_references_do_no_harm(wide):
    kept = []

    class Holds(fairpace.LinkPart):
        def on_packet(self, now, packet):
            kept.append((self, packet))

    results = fairpace.run(wide, parts={"bottleneck": Holds})
    assert results.mean("video", "throughput_bps")[0] == 0
    part, packet = kept[0]
    part.forward(packet)
    assert packet.size > 0
