"""The base class of parts of links written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._hooks import Hooks

if TYPE_CHECKING:
    from ._fairpace import LinkEnv, Packet


class LinkPart(Hooks):
    """A part of a path that stands before a link: each packet on its way to the link is forwarded, delayed, marked or dropped.

    A subclass hears of each packet (`on_packet`), says by `forward` and `drop` what becomes of it, at once or later, and holds it
    meanwhile. ``timer`` is when `on_timer` is wanted, s; None (the default) for never; it goes off once. Packets that come out at
    the same time do so in the order in which they were forwarded.

    All times are seconds since the beginning of the run. Each link of each run has an object of its own; numbers that are drawn from
    ``random.Random(env.seed)`` repeat with the scenario's seed.

    >>> import fairpace
    >>> class EveryTenth(fairpace.LinkPart):
    ...     def on_packet(self, now, packet):
    ...         if packet.number % 10 == 9:
    ...             self.drop(packet, "link_error")
    ...         else:
    ...             self.forward(packet)
    >>> scenario = fairpace.Scenario(
    ...     duration="5 s",
    ...     path={"rate": "1 Mbit/s", "rtt": "50 ms"},
    ...     flows=[{"name": "video", "controller": "fixed", "parameters": {"rate": "400 kbit/s"}}],
    ... )
    >>> results = fairpace.run(scenario, parts={"bottleneck": EveryTenth})
    >>> 0.09 < results.mean("video", "loss_ratio")[0] < 0.11
    True
    """

    _set_by_init = ("env", "timer", "_decisions")

    def __init__(self, env: LinkEnv) -> None:
        self.env = env
        self.timer: float | None = None
        self._decisions: list[tuple[Packet, float | None, bool, str | None]] = []

    def on_packet(self, now: float, packet: Packet) -> None:
        """A packet enters. One of which nothing is said is held."""
        self.forward(packet)

    def on_timer(self, now: float) -> None:
        """The instant of `timer` has come; `timer` is None again."""

    def forward(self, packet: Packet, at: float | None = None, *, mark: bool = False) -> None:
        """The packet comes out at that instant, s; at once if none is given. With `mark`, which needs ``packet.ecn_capable``, as "congestion
        experienced"."""
        self._decisions.append((packet, at, mark, None))

    def drop(self, packet: Packet, reason: str = "queue_full") -> None:
        """The packet does not come out. Reasons are those of the results: ``"queue_full"``, ``"early"``, ``"pushed_out"``,
        ``"link_error"``, ``"outage"``."""
        self._decisions.append((packet, None, False, reason))
