"""The base class of controllers written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._hooks import Hooks

if TYPE_CHECKING:
    from ._fairpace import Acked, Env, Loss, Rtt, Sent


class Controller(Hooks):
    """A rate controller: it hears facts about packets, and says how fast they may leave.

    A subclass sets three attributes; they are read after each call of a method:

    - ``rate``: the rate of data, bit/s on the wire. The encoder is told it, and packets are spaced by it.
    - ``window``: packets outstanding at most, from 1 on; None (the default) for no window.
    - ``timer``: when `on_timer` is wanted, s; None (the default) for never. It goes off once.

    All times are seconds since the beginning of the run. The rate is kept within the flow's limits, `env.min_rate` to
    `env.max_rate`. An ``__init__`` of its own takes `env` and hands it to ``super().__init__(env)``; `env` has the packet size and the
    limits of the rate. Methods that a subclass does not define cost nothing. Each flow of each run has an object of its own.

    >>> import fairpace
    >>> class Halving(fairpace.Controller):
    ...     def on_loss(self, now, loss, rtt):
    ...         self.rate /= 2
    >>> scenario = fairpace.Scenario(
    ...     duration="5 s",
    ...     path={"rate": "1 Mbit/s", "rtt": "50 ms"},
    ...     flows=[{"name": "video", "controller": "fixed", "parameters": {"rate": "2 Mbit/s"}}],
    ... )
    >>> results = fairpace.run(scenario, controllers={"video": Halving})
    >>> results.flows["controller"]
    ['Halving']
    """

    #: Does the scheme lower its rate when the path is full? The circuit breaker ends flows that do not.
    responsive: bool = True

    _set_by_init = ("env", "rate", "window", "timer")

    def __init__(self, env: Env) -> None:
        self.env = env
        self.rate: float = env.start_rate or 200_000.0
        self.window: float | None = None
        self.timer: float | None = None

    def start(self, now: float, rtt: float | None) -> None:
        """The flow begins; `rtt` is the round trip if one is known, s."""

    def on_sent(self, now: float, sent: Sent) -> None:
        """A packet has left."""

    def on_ack(self, now: float, ack: Acked, rtt: Rtt) -> None:
        """A packet is acknowledged; once per packet, whatever the feedback repeats."""

    def on_loss(self, now: float, loss: Loss, rtt: Rtt) -> None:
        """A packet is lost; once per packet, after the `on_ack` that showed it."""

    def on_timeout(self, now: float, rtt: Rtt) -> None:
        """Nothing was acknowledged for a retransmission timeout although packets are outstanding: all of them count as lost."""

    def on_timer(self, now: float, rtt: Rtt) -> None:
        """The instant of `timer` has come; `timer` is None again."""
