"""The object that ran in the simulator sends in real time, to the command's receiver."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess

import fairpace
import pytest
from test_controller import Sawtooth


@pytest.fixture
def receiver(program, tmp_path):
    """`fairpace receive` at a port of its own; ended and waited for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, "receive", str(port), "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield f"127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def test_a_controller_of_python_sends_in_real_time(receiver):
    to, process = receiver
    sent = fairpace.send("model", to, controller=Sawtooth, duration="3 s", max_rate="2 Mbit/s")
    assert sent["end"] == "finished"
    assert sent["sent_packets"] > 50
    assert sent["acknowledged_packets"] >= 0.9 * sent["sent_packets"]
    # From 200 kbit/s up by a step each round trip, up to what the model's encoder gives.
    assert sent["send_rate_bps"] > 200_000
    out, _ = process.communicate(timeout=20)
    assert json.loads(out)["media"]["received_packets"] >= 0.9 * sent["sent_packets"]


def test_what_a_controller_raises_ends_the_stream_and_is_raised(receiver):
    to, _ = receiver

    class Broken(Sawtooth):
        def on_ack(self, now, ack, rtt):
            if ack.seq >= 10:
                raise ZeroDivisionError("by hand")

    with pytest.raises(ZeroDivisionError, match="by hand") as raised:
        fairpace.send("model", to, controller=Broken, duration="20 s")
    assert raised.value.__notes__[0].startswith(f"in the stream to {to} at ")


def test_a_key_that_others_may_read_or_that_is_none_is_refused(tmp_path):
    key = tmp_path / "stream.key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o640)
    with pytest.raises(fairpace.RunError, match=r"others may read the key .* \(mode 640\)"):
        fairpace.send("model", "127.0.0.1:9", key_file=key)
    key.chmod(0o600)
    key.write_text("0" * 64)
    with pytest.raises(fairpace.RunError, match="anybody can guess the key"):
        fairpace.send("model", "127.0.0.1:9", key_file=key)


def test_ctrl_c_ends_a_stream(receiver):
    import threading

    to, _ = receiver
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        fairpace.send("model", to, duration="60 s")


def test_an_encoder_of_one_rate_fills_its_buffer_and_one_that_follows_does_not(receiver):
    to, _ = receiver
    # `fixed` sends 1 Mbit/s, headers included: an encoder of 1.2 Mbit/s fills 20 kB within a second.
    slow = {"controller": "fixed", "duration": "3 s", "max_rate": "1.2 Mbit/s"}
    sent = fairpace.send("model", to, adaptation="buffer", encoder_rate="1.2 Mbit/s", buffer="20 kB", **slow)
    waited = sent["adaptation"]
    assert waited["who"] == "buffer"
    assert 10_000 <= waited["fullest_bytes"] <= 20_000
    assert waited["dropped_bytes"] > 10_000
    assert waited["longest_wait_ms"] < 1_000


def test_an_architecture_that_is_none_and_a_buffer_without_one_are_refused_before_the_first_packet():
    to = "127.0.0.1:9"
    for wrong, said in [
        ({"adaptation": "none"}, "`adaptation` is `none`, which is none: one of `encoder`, `buffer`, `unbuffered`"),
        (
            {"buffer": "1 MB", "encoder_rate": "30 Mbit/s"},
            "`buffer` and `encoder_rate` are of no effect under the adaptation `encoder`",
        ),
        ({"adaptation": "buffer", "buffer": "17 MiB"}, "`buffer` is 17825792 B: 1 B to 16777216 B"),
        ({"adaptation": "buffer", "buffer": "much"}, "`buffer` is `much`"),
        ({"adaptation": "buffer", "encoder_rate": "2 pkt/s"}, "`encoder_rate` is `2 pkt/s`: write it in bits"),
        (
            {"adaptation": "buffer", "encoder_rate": "3 Mbit/s", "max_rate": "2 Mbit/s"},
            "`encoder_rate` is 3 Mbit/s, and the flow may send 2 Mbit/s at most",
        ),
    ]:
        with pytest.raises(ValueError) as raised:
            fairpace.send("model", to, **wrong)
        assert str(raised.value).startswith(said)
    with pytest.raises(ValueError, match="`encoder_rate` is of no effect on `constant:1 Mbit/s`"):
        fairpace.send("constant:1 Mbit/s", to, adaptation="buffer", encoder_rate="1 Mbit/s")
    with pytest.raises(fairpace.RunError, match="`adaptation` is unbuffered for `tfrc-sp`"):
        fairpace.send("model", to, controller="tfrc-sp", adaptation="unbuffered")


def test_what_is_wrong_is_named_before_the_first_packet():
    with pytest.raises(fairpace.RunError, match="rsc"):
        fairpace.send("model", "127.0.0.1:9", controller="rsc")
    with pytest.raises(fairpace.RunError, match="no port"):
        fairpace.send("model", "localhost")
    with pytest.raises(ValueError, match="`duration` is `soon`"):
        fairpace.send("model", "127.0.0.1:9", duration="soon")
