"""What plans are made for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FlowNeed:
    """What the application of one flow over a wireless link asks for; the defaults are a voice of the paper [aimd §IV].

    >>> import fairpace
    >>> plan = fairpace.plan_wireless([fairpace.FlowNeed(), fairpace.FlowNeed(max_jitter="100 ms")], error=0.05)
    >>> len(plan)
    2
    """

    #: The least RTT: everything but waiting, the packet's own slot included.
    rtt: str = "85 ms"
    #: How much longer an RTT may take.
    max_jitter: str = "50 ms"
    #: The part of the packets that may take longer, above 0 and below 1.
    outage: float = 0.01
    #: The part of the packets that may be lost on the link or be late, above 0 and below 1; None: what `outage` allows.
    loss: float | None = None
    #: The least throughput, headers included; None: what the share gives.
    throughput: str | None = None
    #: The share of the link, relative to those of the others; None: as the throughputs are, or all the same.
    share: float | None = None
