"""Controllers written in Python: they control, and what is wrong with them is named."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import warnings
import weakref

import fairpace
import pytest


class Sawtooth(fairpace.Controller):
    """The tutorial's controller: a step up each round trip without a loss, half on a loss."""

    step = 20_000.0

    def start(self, now, rtt):
        self.rtt = rtt or 1.0
        self.cut_until = -1
        self.timer = now + self.rtt

    def on_ack(self, now, ack, rtt):
        self.rtt = rtt.smoothed or self.rtt

    def on_loss(self, now, loss, rtt):
        if loss.seq > self.cut_until:
            self.cut_until = loss.highest_sent
            self.change(now, self.rate / 2)

    def on_timeout(self, now, rtt):
        self.change(now, self.rate / 2)

    def on_timer(self, now, rtt):
        self.change(now, self.rate + self.step)

    def change(self, now, rate):
        self.rate = min(max(rate, self.env.min_rate), self.env.max_rate)
        self.timer = now + self.rtt


@pytest.fixture
def alone() -> fairpace.Scenario:
    return fairpace.Scenario(
        duration="60 s",
        feedback="1 ms",
        path={"rate": "1 Mbit/s", "rtt": "80 ms", "queue": {"kind": "drop-tail", "capacity": "20 pkt"}},
        flows=[{"name": "video", "controller": "fixed", "parameters": {"rate": "2 Mbit/s"}}],
    )


def test_it_follows_the_path_as_a_controller_of_rust_would(alone):
    results = fairpace.run(alone, controllers={"video": Sawtooth})
    assert results.flows["controller"] == ["Sawtooth"]
    # A sawtooth between half and all of the link, the queue of a round trip and more in between.
    assert 600e3 < results.mean("video", "throughput_bps")[0] <= 1e6
    rates = [x for x in results.series["target_rate_bps"] if x]
    assert max(rates) > 1e6 > min(rates[len(rates) // 2 :])
    again = fairpace.run(alone, controllers={"video": Sawtooth})
    assert again.series.to_csv() == results.series.to_csv()


def test_a_window_bounds_what_is_outstanding(alone):
    most = 0

    class Windowed(fairpace.Controller):
        def __init__(self, env):
            super().__init__(env)
            self.rate, self.window = env.max_rate, 5

        def on_ack(self, now, ack, rtt):
            nonlocal most
            most = max(most, ack.outstanding)

    results = fairpace.run(alone, controllers={"video": Windowed})
    assert most == 4  # the fifth is the one that the ACK is about
    # Five packets of 1,000 B a round trip of 80 ms and the time of one on the link.
    assert results.mean("video", "throughput_bps")[0] == pytest.approx(5 * 8_000 / 0.088, rel=0.1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"rate": True}, "`rate` is True: write a rate in bit/s, above 0"),
        ({"rate": float("nan")}, "`rate` is nan"),
        ({"rate": -1.0}, "`rate` is -1.0: write a rate in bit/s, above 0"),
        ({"rate": "fast"}, "`rate` is 'fast'"),
        ({"window": 0}, "`window` is 0"),
        ({"timer": "soon"}, "`timer` is 'soon'"),
    ],
)
def test_nonsense_is_named_with_flow_seed_and_time(alone, value, words):
    class Wrong(fairpace.Controller):
        def on_ack(self, now, ack, rtt):
            if now > 1:
                self.__dict__.update(value)

    with pytest.raises(ValueError, match=words.replace("(", ".")) as raised:
        fairpace.run(alone, controllers={"video": Wrong})
    [place] = raised.value.__notes__
    assert place.startswith("in flow `video`, seed 1 at 1.")


def test_an_exception_is_the_users_own(alone):
    class Broken(fairpace.Controller):
        def on_loss(self, now, loss, rtt):
            raise ZeroDivisionError("by hand")

        def on_timer(self, now, rtt):
            raise AssertionError("was not asked for")

        def start(self, now, rtt):
            self.rate = self.env.max_rate

    with pytest.raises(ZeroDivisionError, match="by hand") as raised:
        fairpace.run(alone, seeds=3, controllers={"video": Broken})
    assert "flow `video`" in raised.value.__notes__[0]


def test_a_constructor_that_raises_is_named(alone):
    class Unmade(fairpace.Controller):
        def __init__(self, env):
            raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        fairpace.run(alone, controllers={"video": Unmade})


def test_what_is_no_controller_is_refused(alone):
    with pytest.raises(TypeError, match="is no fairpace.Controller"):
        fairpace.run(alone, controllers={"video": dict})
    with pytest.raises(TypeError, match="7 is no fairpace.Controller: give a class"):
        fairpace.run(alone, controllers={"video": 7})
    with pytest.raises(fairpace.ScenarioError, match="no flow `vidoe`") as refused:
        fairpace.run(alone, controllers={"vidoe": Sawtooth})
    assert refused.value.hint == "did you mean `video`?"


def test_tcp_has_no_controller_to_replace(scenario):
    with pytest.raises(fairpace.ScenarioError, match="flow `file` is `tcp-sack`"):
        fairpace.run(scenario, controllers={"file": Sawtooth})


def test_an_object_that_is_kept_outlives_its_run_and_does_no_harm(alone):
    kept = []

    class Kept(Sawtooth):
        def on_ack(self, now, ack, rtt):
            super().on_ack(now, ack, rtt)
            kept.append((self, ack, rtt))

    fairpace.run(alone, controllers={"video": Kept})
    controller, ack, rtt = kept[-1]
    assert controller.rate > 0 and ack.seq > 0 and rtt.smoothed > 0
    with pytest.raises(AttributeError):
        ack.seq = 0
    gone = weakref.ref(controller)
    del controller, ack, rtt
    kept.clear()
    gc.collect()
    assert gone() is None


def test_only_the_flow_of_that_name_is_replaced():
    flow = {"controller": "rap"}
    scenario = fairpace.Scenario(
        duration="5 s",
        path={"rate": "2 Mbit/s"},
        flows=[{"name": "video", "count": 2, **flow}, {"name": "video-hd", **flow}],
    )
    flows = fairpace.run(scenario, controllers={"video": Sawtooth}).flows
    assert dict(zip(flows["flow"], flows["controller"])) == {"video-1": "Sawtooth", "video-2": "Sawtooth", "video-hd": "rap"}


def test_a_timer_that_is_past_is_named(alone):
    class Late(fairpace.Controller):
        def on_ack(self, now, ack, rtt):
            self.timer = now

    with pytest.raises(ValueError, match="`timer` is .* yet to come"):
        fairpace.run(alone, controllers={"video": Late})


def test_each_seed_has_an_object_of_its_own(alone):
    made = []

    class Counted(Sawtooth):
        def __init__(self, env):
            super().__init__(env)
            made.append(id(self))

    fairpace.run(alone, seeds=3, controllers={"video": Counted})
    assert len(made) >= 3


def test_a_misspelt_method_and_an_init_that_leaves_out_the_bases_are_told():
    with pytest.raises(TypeError, match="`Deaf.on_los` would never be called; did you mean `on_loss`"):

        class Deaf(fairpace.Controller):
            def on_los(self, now, loss, rtt):
                pass

    class Bare(fairpace.Controller):
        def __init__(self, env):
            self.mine = env.max_rate

        def one_more(self):
            return self.mine

    with pytest.raises(AttributeError, match="has to call `super"):
        Bare(type("Env", (), {"max_rate": 1.0})).rate
    with pytest.raises(AttributeError, match="no attribute 'theirs'"):
        Bare(type("Env", (), {"max_rate": 1.0})).theirs


def test_a_method_that_could_do_nothing_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match=r"`Later.on_ack` would do nothing when it is called: it has `async` or `yield`"):

        class Later(fairpace.Controller):
            async def on_ack(self, now, ack, rtt):
                self.rate = 1e6

    with pytest.raises(TypeError, match=r"`Lazy.on_packet` would do nothing"):

        class Lazy(fairpace.LinkPart):
            def on_packet(self, now, packet):
                yield packet


def test_a_method_that_is_set_on_the_object_and_one_that_returns_something_are_named(alone):
    class Deaf(fairpace.Controller):
        def __init__(self, env):
            super().__init__(env)
            self.on_ack = lambda now, ack, rtt: None

    with pytest.raises(TypeError, match="`on_ack` is set on the object and would never be called: define it in the class `Deaf`"):
        fairpace.run(alone, controllers={"video": Deaf})

    class Phased(fairpace.Controller):
        """Its own attribute `start`, and a method that it replaces: both are its own affair."""

        def __init__(self, env):
            super().__init__(env)
            self.start, self.heard = 0.0, 0
            self.on_ack = self.first

        def first(self, now, ack, rtt):
            self.on_ack = self.later

        def later(self, now, ack, rtt):
            self.rate = 300_000.0

        def on_ack(self, now, ack, rtt):
            raise AssertionError("replaced")

    results = fairpace.run(alone, controllers={"video": Phased})
    assert max(rate for rate in results.series["target_rate_bps"] if rate) == 300_000.0

    class Telling(fairpace.Controller):
        def on_ack(self, now, ack, rtt):
            return 1e6

    with pytest.raises(TypeError, match="`on_ack` returned 1000000.0, which means nothing") as raised:
        fairpace.run(alone, controllers={"video": Telling})
    assert raised.value.__notes__[0].startswith("in flow `video`, seed 1 at ")


def test_a_method_that_does_not_return_is_told_of_and_ctrl_c_ends_it(alone):
    class Stuck(fairpace.Controller):
        def on_ack(self, now, ack, rtt):
            caught = 0
            while True:
                try:
                    time.sleep(0.01)
                except KeyboardInterrupt:
                    # The first is swallowed.
                    caught += 1
                    if caught == 2:
                        raise

    began = time.monotonic()
    threading.Timer(12.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with warnings.catch_warnings(record=True) as told, pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("always")
        fairpace.run(alone, seeds=2, threads=2, controllers={"video": Stuck})
    assert time.monotonic() - began < 40
    words = {str(warning.message) for warning in told}
    assert words == {f"`on_ack` has not returned for 5 s (in flow `video`, seed {n}): the run waits for it" for n in (1, 2)}


def test_python_knows_the_thread_of_a_run_from_its_first_call_to_its_last(alone):
    # A thread that came anew with each call would have nothing of its own from the call before, and cost several times the call.
    own = threading.local()

    class Counted(Sawtooth):
        most = 0

        def on_ack(self, now, ack, rtt):
            own.calls = getattr(own, "calls", 0) + 1
            Counted.most = max(Counted.most, own.calls)
            super().on_ack(now, ack, rtt)

    results = fairpace.run(alone, threads=1, controllers={"video": Counted})
    assert Counted.most == results.flows["acknowledged_packets"][0] > 1_000


def test_what_is_handed_over_shows_its_numbers(alone):
    shown = {}

    class Telling(Sawtooth):
        def on_sent(self, now, sent):
            shown.setdefault("sent", repr(sent))

        def on_ack(self, now, ack, rtt):
            shown.setdefault("ack", repr(ack))
            shown.setdefault("rtt", repr(rtt))
            super().on_ack(now, ack, rtt)

        def on_loss(self, now, loss, rtt):
            shown.setdefault("loss", repr(loss))
            super().on_loss(now, loss, rtt)

    fairpace.run(alone, controllers={"video": Telling})
    assert shown["sent"] == "Sent(seq=0, size=1000)"
    assert shown["ack"].startswith("Acked(seq=0, size=1000, sent_at=0.08")
    assert "late=False, rtt=0.0" in shown["ack"] and "outstanding=" in shown["ack"]
    assert shown["rtt"].startswith("Rtt(smoothed=0.0") and "variation=" in shown["rtt"]
    assert shown["loss"].startswith("Loss(seq=") and "highest_sent=" in shown["loss"]
