"""The tables of a scenario as classes: each field with its effect, its range and its default.

Made by `python -m fairpace._declare` from the declarations that check scenarios. A field that is not given is left to its
default. Times, sizes and rates are text with their unit, as in a scenario file: ``"550 ms"``, ``"2 Mbit/s"``.

>>> Path(rate="2 Mbit/s", rtt="550 ms")
Path(rate='2 Mbit/s', rtt='550 ms')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ._table import _json, _Table  # noqa: F401


@dataclass(kw_only=True, repr=False)
class Path(_Table):
    """The shared bottleneck, forward, and its way back.

    rate: capacity; this or `trace`; a rate, at least 1 bit/s, or `unlimited`, or a list of tables, 0 only as a
        step or by `outages`; optional
    trace: capacity from a recording, which repeats when it ends; a table; optional
    rtt: propagation there and back, half each way, without queues; a duration, at most 1 h; default 0 s
    jitter: random extra delay forward, uniform from 0 to this; a duration, at most 1 h; default 0 s
    reorder: whether that may reorder packets; if not, a packet waits for the one before it; `true` or `false`;
        default false
    queue: the queue before the bottleneck; a queue, as in `{ kind, capacity, … }`; default `drop-tail`
    loss: loss by link errors, forward, after the transmitter: a lost packet has used capacity; a loss, as in `{
        kind, … }`; default `none`
    outages: times without signal; a list of tables; default none
    quick_start: the router before the bottleneck knows Quick-Start; without it every request fails here; a table;
        optional
    reverse: the way back; a table; default a wire
    """

    rate: str | Literal["unlimited"] | Sequence[RateStep | Mapping[str, Any]] | None = None
    trace: Trace | Mapping[str, Any] | None = None
    rtt: str | None = None
    jitter: str | None = None
    reorder: bool | None = None
    queue: str | float | Mapping[str, Any] | None = None
    loss: str | float | Mapping[str, Any] | None = None
    outages: Sequence[Outage | Mapping[str, Any]] | None = None
    quick_start: Router | Mapping[str, Any] | None = None
    reverse: Reverse | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class RateStep(_Table):
    """One step of a rate that changes.

    at: from when on; the first step is at `0 s`; a duration; must be given
    rate: the rate from then on; a rate; must be given
    """

    at: str | None = None
    rate: str | None = None


@dataclass(kw_only=True, repr=False)
class Trace(_Table):
    """A recorded link.

    file: the recording, relative to the scenario file; text; must be given
    format: `mahimahi`: a line for each packet of 1,500 B, its time in ms; `csv`: a table with the time in its
        first column; `mahimahi`, `csv`; default by the file's ending
    column: `csv`: the column with the rate in Mbit/s, or in kbit/s or bit/s where its name ends in `_kbps` or
        `_bps`; text; optional
    gaps: `csv`: the rate where samples are missing: the last one, or zero; or the gap is left out; `hold`,
        `zero`, `cut`; default `hold`
    """

    file: str | None = None
    format: Literal["mahimahi", "csv"] | None = None
    column: str | None = None
    gaps: Literal["hold", "zero", "cut"] | None = None


@dataclass(kw_only=True, repr=False)
class Outage(_Table):
    """A time without signal.

    start: when it begins, within the run; a duration; must be given
    length: how long it lasts; a duration, above 0 s; must be given
    direction: which way is dark; `both`, `forward`, `reverse`; default `both`
    in_flight: what becomes of packets that are on the link when it begins; `delivered`, `lost`; default
        `delivered`
    """

    start: str | None = None
    length: str | None = None
    direction: Literal["both", "forward", "reverse"] | None = None
    in_flight: Literal["delivered", "lost"] | None = None


@dataclass(kw_only=True, repr=False)
class Router(_Table):
    """A router that knows Quick-Start [RFC 4782 §3.3].

    threshold: qs_thresh: share of the capacity up to which requests are approved; a probability, above 0, at most
        1; default 0.8
    intervals: M: for how many intervals of `state_delay` an approval is remembered; a whole number from 1 to
        1000; default 2
    state_delay: length of such an interval, and of one measurement of the load; a duration, at least 1 ms;
        default 150 ms
    statistic: the measure of the load: the average or the peak of the last `observations`; `average`, `peak`;
        default `average`
    observations: N: how many measurements that is taken over; a whole number from 1 to 1000; default 1
    per_source: requests per second that are considered from one source; a whole number from 1 to 1000000; default
        10; 10,000 with `safety = "paper"`
    in_all: requests per second that are considered in all; a whole number from 1 to 1000000; default 100; 10,000
        with `safety = "paper"`
    source_share: share of what the others leave that one source may hold in approvals; a probability, above 0, at
        most 1; default 0.25; 1 with `safety = "paper"`
    """

    threshold: float | None = None
    intervals: int | None = None
    state_delay: str | None = None
    statistic: Literal["average", "peak"] | None = None
    observations: int | None = None
    per_source: int | None = None
    in_all: int | None = None
    source_share: float | None = None


@dataclass(kw_only=True, repr=False)
class Reverse(_Table):
    """The way back, which carries feedback and TCP's ACKs; its delay is half the path's `rtt`.

    rate: capacity; a rate, at least 1 bit/s, or `unlimited`, or a list of tables, 0 only as a step or by
        `outages`; default `unlimited`
    queue: the queue before it; a queue, as in `{ kind, capacity, … }`; default `drop-tail`
    loss: loss of feedback and ACKs; a loss, as in `{ kind, … }`; default `none`
    jitter: random extra delay, uniform from 0 to this; a duration, at most 1 h; default 0 s
    reorder: whether the random delay may reorder packets; `true` or `false`; default false
    """

    rate: str | Literal["unlimited"] | Sequence[RateStep | Mapping[str, Any]] | None = None
    queue: str | float | Mapping[str, Any] | None = None
    loss: str | float | Mapping[str, Any] | None = None
    jitter: str | None = None
    reorder: bool | None = None


@dataclass(kw_only=True, repr=False)
class Satellite(_Table):
    """A satellite with demand-assigned capacity (DAMA): terminals that share the slots of a frame; in place of `path`.

    frame: `small`: multi-frames of 24 slots, T_f = 45.6 ms; `large`: 144 slots, 273 ms; super-frames are three of
        them (T_b = T_r); or numbers of slots; `small`, `large`, or a table; default `large`
    capacity: the rate of a carrier, shared by its terminals; a rate, from 1 bit/s to 1000 Gbit/s; default 6.336
        Mbit/s
    terminals: how many terminals; numbered from 0; a whole number from 1 to 1000000; default 5
    carriers: how many carriers the terminals are spread over, evenly and in order; a whole number from 1 to
        1000000; default as many as `minimum` and `cra` need
    propagation: T_p: from a terminal over the satellite to a terminal, or to the NCC; a duration, at most 10 s;
        default 252 ms
    allocation_delay: T_a: super-frames from the boundary at which a request is made to that from which its answer
        holds; a whole number from 1 to 1000; default 2 (large), 6 (small); of a frame of its own as few as T_p
        lets
    granularity: the unit in which capacity is given; divides the capacity; a rate, at least 1 bit/s; default 44
        kbit/s
    minimum: the capacity that every terminal always has, in units of `granularity`; a whole number from 0 to
        10000000; default 1
    cra: C: constant rate assignment [qsd eq. (1)]: at least this is given to each terminal, whatever it asks; a
        rate; default 0 bit/s
    rbdc: rate-based capacity: a terminal asks for the rate at which packets came in the super-frame before;
        `true` or `false`; default true
    vbdc: T_s: volume-based capacity: a terminal also asks for what empties its queue in this time; a duration,
        above 0 s, or left out; default off
    fca: free capacity assignment: the rest is given away in equal shares; `true` or `false`; default false
    release: how capacity is taken back from a terminal that asks for less [qsd eq. (2)]; a table; default as
        below
    queue: the room of a terminal's uplink queue; packets, bytes, or `unlimited`, here in packets only; default
        1000 pkt
    slots: where a terminal's slots lie in the multi-frame: one after the other, or spread evenly; `contiguous`,
        `spread`; default `contiguous`
    quick_start: how the terminals answer Quick-Start requests of flows, and whether capacity is asked for with
        them; a table; default no agents
    """

    frame: Literal["small", "large"] | OwnFrame | Mapping[str, Any] | None = None
    capacity: str | None = None
    terminals: int | None = None
    carriers: int | None = None
    propagation: str | None = None
    allocation_delay: int | None = None
    granularity: str | None = None
    minimum: int | None = None
    cra: str | None = None
    rbdc: bool | None = None
    vbdc: str | None = None
    fca: bool | None = None
    release: Release | Mapping[str, Any] | None = None
    queue: str | None = None
    slots: Literal["contiguous", "spread"] | None = None
    quick_start: SatelliteQuickStart | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class OwnFrame(_Table):
    """A frame in numbers.

    slot: the size of a slot; the default is eight MPEG packets; a size, from 1 B to 1000000 B; default 1504 B
    multi_frame: T_f: slots of a multi-frame, in which every terminal has its turn; a whole number from 1 to
        1000000; must be given
    super_frame: T_b, T_r: slots of a super-frame, for which they are given out: a multiple of `multi_frame`; a
        whole number from 1 to 1000000; must be given
    """

    slot: str | None = None
    multi_frame: int | None = None
    super_frame: int | None = None


@dataclass(kw_only=True, repr=False)
class Release(_Table):
    """N(t+1) = a N(t) + b (N_L(t) - N(t)): the next plan's grant to a terminal that asks for less, from the terminal's present one and from its traffic, N_L [qsd eq. (2)].

    a: a: weight of the present grant; a probability, from 0 to 1; default 1
    b: b: weight of the difference between the traffic and that grant, at most `a`; a probability, from 0 to 1;
        default 0.5
    of: `decided`: the NCC's last decision falls, by the traffic that the request tells of; `in-force`: the
        terminal's present capacity falls, by its traffic until now, which no real NCC hears of in time;
        `decided`, `in-force`; default `decided`
    """

    a: float | None = None
    b: float | None = None
    of: Literal["decided", "in-force"] | None = None


@dataclass(kw_only=True, repr=False)
class SatelliteQuickStart(_Table):
    """Quick-Start at every terminal: a router to the requests of its flows [RFC 4782] that may ask the NCC for the capacity with them [qsd §3.4].

    agent: `none`: requests pass, and fail; `qs`: they are answered; `qsd`: and the approved rate is added to the
        terminal's next request; `none`, `qs`, `qsd`; default `none`
    hold: T_q: `qsd`: how long the request is held back: a time, `max` [qsd eq. (3)], or `opt` [qsd eq. (6)]; a
        duration, at most 60 s, or `max`, `opt`; default 0 s
    threshold: qs_thresh: share of the capacity up to which requests are approved; a probability, above 0, at most
        1; default 0.8
    intervals: M: for how many intervals of `state_delay` an approval is remembered; a whole number from 1 to
        1000; default 2
    state_delay: length of such an interval, and of one measurement of the load; a duration, at least 1 ms;
        default (T_r + T_a) / `intervals`
    estimator: how a terminal knows what is free [qsd Appendix A]: `broadcast` by the NCC; `on-demand`, an RTT_m
        later; `tbtp-sum`, the slots that are nobody's, not with `fca`; `listening` to others; `broadcast`, `on-
        demand`, `tbtp-sum`, `listening`; default `broadcast`
    statistic: the measure of the load: the average or the peak of the last `observations`; `average`, `peak`;
        default `average`
    observations: N: how many measurements that is taken over; a whole number from 1 to 1000; default 1
    inaccuracy: `listening`: half-width of the relative error of what a terminal hears; a probability, from 0 to
        1; default 0
    spots: `listening`: spots over which the traffic is spread, of which a terminal hears its own; a whole number
        from 1 to 1000; default 1
    fade: `listening`: times of deep fading, in which a terminal hears less; a table; default none
    per_source: requests per second that are considered from one source; a whole number from 1 to 1000000; default
        10; 10,000 with `safety = "paper"`
    in_all: requests per second that are considered in all; a whole number from 1 to 1000000; default 100; 10,000
        with `safety = "paper"`
    source_share: share of what the others leave that one source may hold in approvals; a probability, above 0, at
        most 1; default 0.25; 1 with `safety = "paper"`
    """

    agent: Literal["none", "qs", "qsd"] | None = None
    hold: str | Literal["max", "opt"] | None = None
    threshold: float | None = None
    intervals: int | None = None
    state_delay: str | None = None
    estimator: Literal["broadcast", "on-demand", "tbtp-sum", "listening"] | None = None
    statistic: Literal["average", "peak"] | None = None
    observations: int | None = None
    inaccuracy: float | None = None
    spots: int | None = None
    fade: Fade | Mapping[str, Any] | None = None
    per_source: int | None = None
    in_all: int | None = None
    source_share: float | None = None


@dataclass(kw_only=True, repr=False)
class Fade(_Table):
    """When a terminal fades, and what it still hears then.

    clear: mean time of clear sky, exponential; a duration, at least 1 ms; must be given
    length: mean length of a fade, exponential; a duration, at least 1 ms; must be given
    heard: share of the bursts that a terminal hears in a fade; the others are taken for silence; a probability,
        from 0 to 1; must be given
    """

    clear: str | None = None
    length: str | None = None
    heard: float | None = None


@dataclass(kw_only=True, repr=False)
class Wireless(_Table):
    """A wireless link behind the backbone, in slots: one packet or piece of one in each, which fails or not.

    rate: the downlink's rate if every slot succeeds; a rate, at least 1 bit/s; default 200 kbit/s
    slot: τ: how long a slot lasts; this or `slot_size`, the other follows from `rate`; a duration, from 1 us to
        60 s; default as long as `slot_size` takes at `rate`
    slot_size: the size of a slot; larger packets are cut, and each piece needs a slot; a size, from 1 B to
        1000000 B; default `packet_size`
    scheme: after a failure: `none`, the packet is lost; `persistent`, again in the next slot; `limited`, so too,
        at most `retries` times; `optimal`, again after a slot of silence; `none`, `persistent`, `limited`,
        `optimal`; default `persistent`
    retries: `limited`: how often a piece is sent again before its packet is given up; a whole number from 0 to
        1000000; optional
    retry_delay: slots between a failure and the next try, beside the silence of `optimal`; a whole number from 0
        to 10000; default 0
    delay: from the end of a packet's last slot to its arrival; a duration, at most 1000000000 s; default 0 s
    work_conserving: whether the slots of users who have nothing to send go to others; if not, they are dedicated,
        and lost; `true` or `false`; default true
    channel: how slots fail; a channel, as in `{ kind, … }`; default `clear`
    buffer: the room of a user's queue at the base station, the packet under way included; with `plan` the base
        station sets that of users whose flows it tells their windows; packets, bytes, or `unlimited`; default
        unlimited
    users: the users, numbered from 0 in this order; at most 1,000, and slots go by weight; a list of tables;
        default one
    uplink: the way of each user's feedback to the backbone, which all of its flows share; a table; default a wire
    plan: the base station tells each `aimd` flow the largest window (`rwnd`) that keeps a promise on delay
        jitter, anew when flows join or leave, and sets the buffer to their sum; a table; default none
    """

    rate: str | None = None
    slot: str | None = None
    slot_size: str | None = None
    scheme: Literal["none", "persistent", "limited", "optimal"] | None = None
    retries: int | None = None
    retry_delay: int | None = None
    delay: str | None = None
    work_conserving: bool | None = None
    channel: str | float | Mapping[str, Any] | None = None
    buffer: str | None = None
    users: Sequence[WirelessUser | Mapping[str, Any]] | None = None
    uplink: Uplink | Mapping[str, Any] | None = None
    plan: Plan | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class WirelessUser(_Table):
    """A user of the downlink, or several alike.

    count: how many alike; a whole number from 1 to 1000; default 1
    weight: a user's part of the slots, against the weights of the others; a whole number from 1 to 10000; default
        1
    buffer: the room of a user's queue; packets, bytes, or `unlimited`; default `wireless.buffer`
    channel: how the slots of a user fail; a channel, as in `{ kind, … }`; default `wireless.channel`
    """

    count: int | None = None
    weight: int | None = None
    buffer: str | None = None
    channel: str | float | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class Uplink(_Table):
    """A user's way back to the backbone.

    rate: capacity; a rate, at least 1 bit/s, or `unlimited`, or a list of tables, 0 only as a step or by
        `outages`; default `unlimited`
    delay: propagation; a duration, at most 1 h; default 0 s
    queue: the queue before it; a queue, as in `{ kind, capacity, … }`; default `drop-tail`
    loss: loss of feedback; a loss, as in `{ kind, … }`; default `none`
    """

    rate: str | Literal["unlimited"] | Sequence[RateStep | Mapping[str, Any]] | None = None
    delay: str | None = None
    queue: str | float | Mapping[str, Any] | None = None
    loss: str | float | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class Plan(_Table):
    """The promise for which the base station plans windows.

    max_jitter: D: the tolerable delay jitter; a duration, at most 1 h, at least one slot; must be given
    outage: which part of the packets may have more, at most; a probability, above 0, below 1; default 0.01
    """

    max_jitter: str | None = None
    outage: float | None = None


@dataclass(kw_only=True, repr=False)
class Hop(_Table):
    """One hop of a path of several.

    name: for the flows' `enter` and `leave` and for results; letters, digits, `-` and `_`; text; must be given
    kind: `link`: its `link` says how; `satellite` and `wireless`, once each at the most: the scenario's table of
        that name; `link`, `satellite`, `wireless`; default `link`
    link: of a `link`: the fields of `path`, without `trace`; a table; optional
    """

    name: str | None = None
    kind: Literal["link", "satellite", "wireless"] | None = None
    link: Path | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class Flow(_Table):
    """A flow, or several alike.

    name: several alike get numbers: `video-1`, `video-2`; text; default the controller
    count: how many alike, at most 100,000 flows in all, and as many as fit into memory; with `arrivals`: how many
        sources; a whole number from 1 to 100000; default 1
    group: flows of one group are averaged together; text; default the name
    controller: the part that decides the rate: a media controller, one of the simulator's TCPs, with `--world
        emu` also one of the kernel's, or `constant`: packets at a fixed rate, no feedback; a controller of
        `fairpace list controllers`; must be given
    parameters: media controllers: the controller's own, by name; a table of text, numbers, `true`, `false`;
        optional
    tcp: `tcp-` controllers, and `tpba`, which sends over TCP and UDP in turn; a table; optional
    rate: `constant`: the rate while it is on; a rate, at least 1 bit/s; optional
    class: media controllers, `constant`: `low` data goes first in a full two-priority queue; `normal`, `low`;
        default `normal`
    start: when it starts; a duration; default 0 s
    start_spread: each flow starts at a random time within so much after `start`; a duration; default 0 s
    stop: when it stops sending; a duration; default the end
    on_off: `constant`, TCP: sends for a time, is silent for a time, and so on; a table; default always on
    transfer: TCP: ends after so much; a size, at least 1 B; default endless
    source: media controllers: the data that the application has to send; a table; default saturated
    enter: with `[[hop]]`: name of the first hop that its data passes; text; default the first of all
    leave: with `[[hop]]`: name of the last hop that its data passes; text; default the last of all
    terminals: over a satellite: data enters at the first and leaves at the second, feedback the other way;
        `random`: two for each flow, from the seed; `random`, or two terminals, as in `[1, 2]`; optional
    user: with `wireless`: the user whose downlink is the flow's last hop, and whose uplink its feedback's first;
        a whole number from 0 to 999; default none, the flow ends on a wire
    share: with `wireless.plan`: the flow's part of its user's downlink, against the sum of all shares there; a
        number, above 0, at most 1000000; default 1
    tolerable_jitter: D: a packet whose one-way delay is more than this above the least that there can be counts
        as delay outage; a duration, above 0 s, at most 1 h; default any
    quick_start: `tfrc`, `tfrc-sp`: the rate asked of the routers at the start and after idle times [RFC 4782],
        rounded up to one that the option can say; `constant` asks with each packet, whatever is answered (a
        flood). The flow's `access` links know Quick-Start; a rate, from 80 kbit/s to 1.31072 Gbit/s; optional
    send_buffer: media controllers with a source that has a rate: the room for packets that wait at the sender; a
        packet that finds no room is lost; packets, bytes, or `unlimited`; default unlimited
    tolerable_delay: media controllers with a source that has a rate: a packet whose end-to-end delay is more than
        this above the flow's shortest so far is late; a duration, above 0 s, at most 1 h; default any
    arrivals: flows that come and go: their starts are a Poisson process from `start` on, their lengths
        exponential; named `NAME-1`, `NAME-2` … in order of their starts, at most 200,000 on average; a table;
        optional
    packet_size: a data packet of this flow on the wire; a size, from 1 B to 65507 B, what fits into a datagram;
        default the scenario's
    feedback: media controllers: when this flow's receiver sends feedback; not where the receiver measures (`tfrc`
        with `measured_by = "receiver"`) or RTCP reports do (`lda`, `ldaf`, `tpba`: their parameter `t_rtcp`);
        `every packet`, or an interval from 1 ms to 10 s; the form `ccfb` or `twcc` before that; default the
        scenario's
    initial_rtt: media controllers: the RTT known at the start; a duration, from 100 us to 60 s; default measured
        by a challenge
    max_rate: media controllers: cap on data and dummies together; a rate, at least 1 bit/s; default 10 Mbit/s;
        none with `safety = "paper"`
    min_rate: media controllers: floor of the controller's rate; a rate, at least 1 bit/s; default 100 bit/s
    start_rate: media controllers: rate before anything is known; a rate, at least 1 bit/s; default the
        controller's
    access: the flow's own link to the bottleneck; a table; default none
    far_access: the flow's own link from the last hop to the receiver; a table; default none
    """

    name: str | None = None
    count: int | None = None
    group: str | None = None
    controller: str | float | Mapping[str, Any] | None = None
    parameters: str | float | Mapping[str, Any] | None = None
    tcp: Tcp | Mapping[str, Any] | None = None
    rate: str | None = None
    class_: Literal["normal", "low"] | None = None
    start: str | None = None
    start_spread: str | None = None
    stop: str | None = None
    on_off: OnOff | Mapping[str, Any] | None = None
    transfer: str | None = None
    source: Source | Mapping[str, Any] | None = None
    enter: str | None = None
    leave: str | None = None
    terminals: Literal["random"] | str | float | Mapping[str, Any] | None = None
    user: int | None = None
    share: float | None = None
    tolerable_jitter: str | None = None
    quick_start: str | None = None
    send_buffer: str | None = None
    tolerable_delay: str | None = None
    arrivals: Arrivals | Mapping[str, Any] | None = None
    packet_size: str | None = None
    feedback: str | float | Mapping[str, Any] | None = None
    initial_rtt: str | None = None
    max_rate: str | None = None
    min_rate: str | None = None
    start_rate: str | None = None
    access: Access | Mapping[str, Any] | None = None
    far_access: Access | Mapping[str, Any] | None = None


@dataclass(kw_only=True, repr=False)
class Tcp(_Table):
    """TCP's parameters.

    variant: `tpba`: its loss recovery; the name of a `tcp-` controller says it; `reno`, `newreno`, `sack`;
        default `reno`
    segment_size: `tpba`: a full segment on the wire; smaller packets share segments; a size, from 41 B to 65507
        B, headers of 40 B included; default that of the flow's packets
    restart_after_idle: the window falls to the initial one after a timeout's time without sending [RFC 5681
        §4.1]; `true` or `false`; default true; `tpba`: false
    initial_window: initial window in packets; a whole number from 1 to 10; default 2
    handshake: the connection is opened first, by a SYN of 40 B, and data begins a round trip later; not `tpba`;
        `true` or `false`; default false
    initial_ssthresh: where slow start ends the first time, in packets; a whole number from 2 to 10000000; default
        the largest window
    dup_threshold: duplicate ACKs that mean a loss; a whole number from 1 to 1000; default 3
    max_window: largest window in packets; a whole number from 1 to 10000000; default 100000
    min_rto: shortest retransmission timeout; a duration, from 1 ms to 1 h; default 200 ms
    max_rto: longest retransmission timeout; a duration, from 1 ms to 1 h; default 60 s
    initial_rto: retransmission timeout before the first RTT sample; a duration, from 1 ms to 1 h; default 3 s
    tick: granularity of the RTT clock; `0 s` is an exact one; a duration, from 0 s to 1 h; default 10 ms
    delayed_ack: the receiver delays ACKs at most so long, and answers every second segment at once; a duration,
        from 1 ms to 1 h; default each segment is answered at once
    limited_transmit: limited transmit [RFC 3042]; `true` or `false`; default true
    linux: loss recovery as Linux has it: with SACK proportional rate reduction [RFC 6937], losses found by what
        was sent later and arrived [RFC 8985], a scoreboard that a timeout keeps; NewReno's timer restarted at
        each partial ACK [RFC 6582 §4]; a timeout of the smoothed RTT and `min_rto` at least; a whole window,
        which grows by counted ACKs and is halved for each timeout's time of a pause [RFC 2861 §3]; `true` or
        `false`; default false
    ns2: SACK repairs as ns-2's Sack1: the pipe is a count, and every hole below a SACK is sent again; not with
        `linux`; `true` or `false`; default false
    ecn: new data goes out as ECT(0), and a queue's mark is answered as a loss [RFC 3168]; `true` or `false`;
        default false
    send_jitter: each packet leaves up to so much later, at random: breaks the phase effects of drop-tail queues;
        a duration, from 0 s to 1 h; default 0 s
    """

    variant: Literal["reno", "newreno", "sack"] | None = None
    segment_size: str | None = None
    restart_after_idle: bool | None = None
    initial_window: int | None = None
    handshake: bool | None = None
    initial_ssthresh: int | None = None
    dup_threshold: int | None = None
    max_window: int | None = None
    min_rto: str | None = None
    max_rto: str | None = None
    initial_rto: str | None = None
    tick: str | None = None
    delayed_ack: str | None = None
    limited_transmit: bool | None = None
    linux: bool | None = None
    ns2: bool | None = None
    ecn: bool | None = None
    send_jitter: str | None = None


@dataclass(kw_only=True, repr=False)
class OnOff(_Table):
    """On and off periods.

    on: mean length of an on period; a duration, at least 1 ms; must be given
    off: mean length of an off period; a duration, at least 1 ms; must be given
    lengths: `fixed`, or `exponential` around the means; `fixed`, `exponential`; default `fixed`
    """

    on: str | None = None
    off: str | None = None
    lengths: Literal["fixed", "exponential"] | None = None


@dataclass(kw_only=True, repr=False)
class Source(_Table):
    """The data that a media flow's application has to send.

    kind: `saturated`; `adus`: the same in data units of so many `packets`; `constant`: at most `rate`; `encoder`:
        a model of an adaptive video encoder, 25 pictures per second; the others: kinds of stream at a constant
        rate that also set `packet_size`, `send_buffer`, `tolerable_delay` and `arrivals` where the flow does not;
        `saturated`, `adus`, `constant`, `encoder`, `voip`, `video-call`, `iptv`; must be given
    rate: `constant`: the application's rate; `encoder`: its highest rate; a kind of stream: instead of its own; a
        rate, at least 1 bit/s; optional
    packets: `adus`: packets of each data unit; a whole number from 1 to 10000; optional
    """

    kind: Literal["saturated", "adus", "constant", "encoder", "voip", "video-call", "iptv"] | None = None
    rate: str | None = None
    packets: int | None = None


@dataclass(kw_only=True, repr=False)
class Arrivals(_Table):
    """Flows that come and go.

    interval: mean time between two starts, of all `count` sources together; a duration, at least 1 ms; default
        that of the kind of stream
    length: mean length of a flow; a duration, at least 1 ms; default that of the kind of stream
    """

    interval: str | None = None
    length: str | None = None


@dataclass(kw_only=True, repr=False)
class Access(_Table):
    """A flow's own link, before the bottleneck or behind the last hop.

    rtt: propagation there and back that this link adds; a duration, at most 1 h; default 0 s
    rtt_spread: each flow's `rtt` is longer by a random part up to this; a duration, at most 1 h; default 0 s
    rate: capacity, each way; a rate, at least 1 bit/s, or `unlimited`, or a list of tables, 0 only as a step or
        by `outages`; default `unlimited`
    queue: the queue before it; a queue, as in `{ kind, capacity, … }`; default `drop-tail`
    loss: loss by link errors, forward; a loss, as in `{ kind, … }`; default `none`
    reverse_loss: loss by link errors on the way back; a loss, as in `{ kind, … }`; default `none`
    """

    rtt: str | None = None
    rtt_spread: str | None = None
    rate: str | Literal["unlimited"] | Sequence[RateStep | Mapping[str, Any]] | None = None
    queue: str | float | Mapping[str, Any] | None = None
    loss: str | float | Mapping[str, Any] | None = None
    reverse_loss: str | float | Mapping[str, Any] | None = None


#: Each controller's parameters: `parameters` of a `Flow`.
PARAMETERS: dict[str, dict[str, str]] = {
    "auto": {
        "loss_waiting": "W: a loss whose neighbours waited so long in queues is congestion: the rate falls to TCP's fair share; from 1 ms to 1 s; default 5 ms",
        "most_loss": "where more is lost than this share of a round, the path is taken for full, queue or not; from 0 to 1; default 0.1",
    },
    "rcs": {
        "s_target": "S_Target: the rate of the stream at its best quality; Initial probes at it, and S never exceeds it; a rate within the flow's limits, or `max`: the flow's max_rate; default max",
        "t_b": "T_B: how long Backoff waits for an ACK before it starts again with Initial; at most 15 s unless safety is `paper`; a number of `SRTT` from 1 to 1000, a duration from 100 ms to 1 h, or `none`: without limit; default 10 SRTT",
        "backoff": "off: Detected without any ACK goes back to Steady, as the paper's comparison without Backoff(); `on` or `off`; default on",
        "wdsn_rounding": "wdsn: how SRTT · S becomes a count of dummy ACKs; `exact` keeps the fraction, which a test for zero never meets; `nearest`, `up`, `down` or `exact`; default nearest",
        "wdsn_test": "wdsn: `figure`: only wdsn = 0 raises S, so -1 after Initial is a guard; `text`: wdsn <= 0 raises it, so Initial's late ACKs do; `figure` or `text`; default figure",
        "loss_in_detected": "what a loss noticed in Detected does: nothing, or open another Detected phase; `ignore` or `restart`; default ignore",
        "old_losses": "losses of packets sent before the last Detected phase began, noticed after it; `ignore` or `count`; default ignore",
        "gap_after_backoff": "losses of packets sent before the signal came back, noticed afterwards; `ignore` or `count`; default ignore",
        "loss_with_queue": "`limit`: when a loss comes while SRTT shows a queue, dummies are a tenth of S; `ignore`: a loss is a loss, and always so if safety is `paper`; `limit` or `ignore`; default limit",
        "increase": "what raises S in Steady: one packet per SRTT each SRTT, each dummy ACK that wdsn lets through, or both; `both`, `timed` or `dummy`; default both",
        "dummy_acks_in_detected": "whether dummy ACKs that arrive in Detected count against wdsn and raise S; `ignore` or `count`; default ignore",
        "dup_threshold": "later data packets acknowledged that make a data packet lost; a whole number from 1 to 100; default 3",
        "min_rto": "lower bound of the timeout SRTT + 4 RTTVAR; from 1 ms to 60 s; default 200 ms",
        "rto_backoff": "double the timeout at each expiry; nothing is sent twice, so no ACK is ambiguous and it is off; `on` or `off`; default off",
    },
    "rap": {
        "fine_grain": "stretch each gap by the ratio of short-term to long-term RTT; `on` or `off`; default off",
        "kfrtt": "K_frtt: gain of the short-term RTT (fine grain only); from 0 to 1; default 0.9",
        "kxrtt": "K_xrtt: gain of the long-term RTT (fine grain only); from 0 to 1; default 0.01",
        "mu": "mu: timeout: multiple of SRTT; from 1 to 10; default 1.2",
        "phi": "phi: timeout: multiple of the RTT variance; from 0 to 100; default 4",
        "delta": "delta: gain of SRTT and of the variance; above 0, at most 1; default 0.5",
        "min_sent": "dpthresh: share of the permitted packets that must have been sent for the rate to grow; from 0 to 1; default 0.5",
        "dup_threshold": "later packets acknowledged that make a packet lost; a whole number from 1 to 100; default 3",
        "initial_gap": "IPG_0: gap between packets, and timeout, until the first RTT is known; from 1 ms to 60 s; default 2 s",
    },
    "srp": {
        "p_over": "p: over what the loss rate is measured: the last eight loss intervals, the round, the run, or the last packets; `intervals`, `round`, `run`, or a number of `packets` from 2 to 1000000; default intervals",
        "one_per_rtt": "losses that left within one round trip are one indication, as TCP counts them; off: each lost packet is one; `on` or `off`; default on",
        "without_loss": "X: in a round without loss the equation's rate is computed anew, or the last one is kept; `anew` or `kept`; default anew",
        "after_loss": "S: after a round with loss the equation's rate bounds the rate, or is the rate, higher or not; `bound` or `equation`; default bound",
        "b": "b: packets per ACK of the TCP to be fair to: 1, or 2 with delayed ACKs; from 1 to 2; default 1",
        "ecn": "send packets as ECN-capable; a mark is a loss indication; `on` or `off`; default off",
        "dup_threshold": "later packets acknowledged that make a packet lost; a whole number from 1 to 100; default 3",
        "min_rto": "lower bound of the timeout SRTT + 4 RTTVAR, in the equation too; from 1 ms to 60 s; default 200 ms",
    },
    "crp": {
        "p_over": "p: over what the loss rate is measured: the last eight loss intervals, the round, the run, or the last packets; `intervals`, `round`, `run`, or a number of `packets` from 2 to 1000000; default intervals",
        "one_per_rtt": "losses that left within one round trip are one indication, as TCP counts them; off: each lost packet is one; `on` or `off`; default on",
        "without_loss": "X: in a round without loss the equation's rate is computed anew, or the last one is kept; `anew` or `kept`; default anew",
        "after_loss": "S: after a round with loss the equation's rate bounds the rate, or is the rate, higher or not; `bound` or `equation`; default bound",
        "b": "b: packets per ACK of the TCP to be fair to: 1, or 2 with delayed ACKs; from 1 to 2; default 1",
        "ecn": "send packets as ECN-capable; a mark is a loss indication; `on` or `off`; default off",
        "dup_threshold": "later packets acknowledged that make a packet lost; a whole number from 1 to 100; default 3",
        "min_rto": "lower bound of the timeout SRTT + 4 RTTVAR, in the equation too; from 1 ms to 60 s; default 200 ms",
    },
    "mrp": {
        "p_over": "p: over what the loss rate is measured: the last eight loss intervals, the round, the run, or the last packets; `intervals`, `round`, `run`, or a number of `packets` from 2 to 1000000; default intervals",
        "one_per_rtt": "losses that left within one round trip are one indication, as TCP counts them; off: each lost packet is one; `on` or `off`; default on",
        "without_loss": "X: in a round without loss the equation's rate is computed anew, or the last one is kept; `anew` or `kept`; default anew",
        "after_loss": "S: after a round with loss the equation's rate bounds the rate, or is the rate, higher or not; `bound` or `equation`; default bound",
        "b": "b: packets per ACK of the TCP to be fair to: 1, or 2 with delayed ACKs; from 1 to 2; default 1",
        "ecn": "send packets as ECN-capable; a mark is a loss indication; `on` or `off`; default off",
        "dup_threshold": "later packets acknowledged that make a packet lost; a whole number from 1 to 100; default 3",
        "min_rto": "lower bound of the timeout SRTT + 4 RTTVAR, in the equation too; from 1 ms to 60 s; default 200 ms",
    },
    "tfrc": {
        "equation": "X_Bps: which of TCP's throughput equations; all with b = 1; `rfc5348`, `complex`, `modified` or `simple`; default rfc5348",
        "t_rto": "t_RTO: the timeout in the equation: 4R, or TCP's on a clock of 100 ms as in ns-2: SRTT + max(100 ms, 4 RTTVAR); `4r` or `tcp`; default 4r",
        "rfc": "`3448`: the initial rate, the limit by X_recv and the no-feedback timer of the older document; `5348` or `3448`; default 5348",
        "measured_by": "who computes p and X_recv: the sender from an ACK of every packet, or the receiver, whose word is taken; `sender` or `receiver`; default sender",
        "outage": "packets lost while the no-feedback timer expired: one loss event, or one per RTT; only if the sender measures; `one` or `rfc`; default one",
        "losses": "NDUPACK: `ns2`: a gap is a loss at once, not after three later packets, and one loss event at most; only if the receiver measures; `rfc` or `ns2`; default rfc",
        "discounting": "DF: older loss intervals count less while the current one is long; `on`: down to a quarter, `ns2`: to half; `on`, `off` or `ns2`; default off",
        "smoothing": "X_inst: oscillation reduction: packets are paced at X R_sqmean/sqrt(R_sample), slower while the RTT grows; `on` or `off`; default on",
        "ecn": "send ECN-capable packets; a mark counts as a loss; `on` or `off`; default off",
        "t_gran": "t_gran: the grain of the driver's timer: a packet may leave min(t_ipi, t_gran, R)/2 early; from 0 s to 100 ms; default 0 ms",
        "first_timer": "the no-feedback timer before the first RTT; `3 s` is what TCP had (RFC 2988); from 1 s to 60 s; default 2 s",
        "w_init": "W_init: `rfc3390`: with `rfc = 3448` too the first RTT has the window of RFC 3390, as in ns-2, not one packet; `rfc` or `rfc3390`; default rfc",
        "increase": "X: X rises to the equation's rate at once, or, `ns2`, by one packet per RTT in each RTT; `rfc` or `ns2`; default rfc",
        "pacing": "t_ipi: a report moves the packet that waits to leave, or, `ns2`, only those behind it; then each report of slow start and each expiry of the no-feedback timer lets one leave at once, and slow start comes up to X packet by packet; `rfc` or `ns2`; default rfc",
        "reports": "X_recv: `ns2`: a report for each loss event, and another 1.5 R after the last; the no-feedback timer of 2R; X_recv limits X to one packet per R or more; slow start as in ns-2; only if the receiver measures; `rfc` or `ns2`; default rfc",
        "qs_wait": "after a Quick-Start request send nothing more before feedback; else at the rate allowed without it; `on` or `off`; default off",
        "qs_validation": "a Quick-Start rate is kept until all packets of its first RTT are acknowledged, or only until the next feedback after the first on one of them; never for more than three RTTs; `all` or `next`; default all",
        "qs_limit": "X_recv: the first report after a Quick-Start rate lowers X to twice what was received, as the RFC's step 4 does, or to what was received; `twice` or `received`; default twice",
    },
    "tfrc-sp": {
        "equation": "X_Bps: which of TCP's throughput equations; all with b = 1; `rfc5348`, `complex`, `modified` or `simple`; default rfc5348",
        "t_rto": "t_RTO: the timeout in the equation: 4R, or TCP's on a clock of 100 ms as in ns-2: SRTT + max(100 ms, 4 RTTVAR); `4r` or `tcp`; default 4r",
        "rfc": "`3448`: the initial rate, the limit by X_recv and the no-feedback timer of the older document; `5348` or `3448`; default 5348",
        "measured_by": "who computes p and X_recv: the sender from an ACK of every packet, or the receiver, whose word is taken; `sender` or `receiver`; default sender",
        "outage": "packets lost while the no-feedback timer expired: one loss event, or one per RTT; only if the sender measures; `one` or `rfc`; default one",
        "losses": "NDUPACK: `ns2`: a gap is a loss at once, not after three later packets, and one loss event at most; only if the receiver measures; `rfc` or `ns2`; default rfc",
        "discounting": "DF: older loss intervals count less while the current one is long; `on`: down to a quarter, `ns2`: to half; `on`, `off` or `ns2`; default off",
        "smoothing": "X_inst: oscillation reduction: packets are paced at X R_sqmean/sqrt(R_sample), slower while the RTT grows; `on` or `off`; default on",
        "ecn": "send ECN-capable packets; a mark counts as a loss; `on` or `off`; default off",
        "t_gran": "t_gran: as for `tfrc`; from 10 ms on, three packets may leave within 30 ms instead of one every 10 ms; from 0 s to 100 ms; default 0 ms",
        "header": "H: bytes of each packet's headers that packet sizes do not count; 0 where they do; a whole number from 0 to 200; default 40",
        "first_timer": "the no-feedback timer before the first RTT; `3 s` is what TCP had (RFC 2988); from 1 s to 60 s; default 2 s",
        "w_init": "W_init: `rfc3390`: with `rfc = 3448` too the first RTT has the window of RFC 3390, as in ns-2, not one packet; `rfc` or `rfc3390`; default rfc",
        "increase": "X: X rises to the equation's rate at once, or, `ns2`, by one packet per RTT in each RTT; `rfc` or `ns2`; default rfc",
        "pacing": "t_ipi: a report moves the packet that waits to leave, or, `ns2`, only those behind it; then each report of slow start and each expiry of the no-feedback timer lets one leave at once, and slow start comes up to X packet by packet; `rfc` or `ns2`; default rfc",
        "reports": "X_recv: `ns2`: a report for each loss event, and another 1.5 R after the last; the no-feedback timer of 2R; X_recv limits X to one packet per R or more; slow start as in ns-2; only if the receiver measures; `rfc` or `ns2`; default rfc",
        "qs_wait": "after a Quick-Start request send nothing more before feedback; else at the rate allowed without it; `on` or `off`; default off",
        "qs_validation": "a Quick-Start rate is kept until all packets of its first RTT are acknowledged, or only until the next feedback after the first on one of them; never for more than three RTTs; `all` or `next`; default all",
        "qs_limit": "X_recv: the first report after a Quick-Start rate lowers X to twice what was received, as the RFC's step 4 does, or to what was received; `twice` or `received`; default twice",
        "first_rate": "s: before the first RTT 1,460 bytes may leave per second, or one packet, as with `tfrc`; `segment` or `packet`; default segment",
    },
    "aimd": {
        "alpha": "alpha: what the window grows by per RTT in congestion avoidance; a number of packets above 0, at most 100, or `friendly`: 3(1 - beta)/(1 + beta), as fast as TCP; default friendly",
        "beta": "beta: what remains of the outstanding data after a loss; TCP: 0.5; above 0, below 1; default 0.875",
        "rwnd": "rwnd: bound of the window beside what the receiver advertises; a whole number of packets from 1 to 8192, or `none`: what the receiver advertises; default none",
        "initial_window": "window at the start and after idle times; a whole number of packets from 1 to 10; default 2",
        "ecn": "send ECN-capable packets; a mark counts as a loss; `on` or `off`; default off",
    },
    "lda": {
        "r_0": "r_0: the rate at the start; a rate within the flow's limits, or `start`: the flow's start rate, 10 kbit/s if it has none; default start",
        "r_min": "r_min: no loss lowers the rate below this; a rate within the flow's limits, or `min_rate`: the flow's lowest; default min_rate",
        "air_0": "AIR_0: additive increase rate: at most that much more at each adaptation point; a rate above 0; default 10 kbit/s",
        "r_f": "R_f: reduction factor: a loss of p takes R_f times p off the rate; from 0 to 100; default 3",
        "t_adapt": "T_adapt: time between two adaptation points; from 10 ms to 1 h; default 3 s",
        "t_rtcp": "T_rtcp: how often the receiver reports; from 10 ms to 5 s; default 1 s",
    },
    "ldaf": {
        "r_0": "r_0: the rate at the start; a rate within the flow's limits, or `start`: the flow's start rate, 10 kbit/s if it has none; default start",
        "r_min": "r_min: no loss lowers the rate below this; a rate within the flow's limits, or `min_rate`: the flow's lowest; default min_rate",
        "air_0": "AIR_0: additive increase rate: at most that much more at each adaptation point; a rate above 0; default 10 kbit/s",
        "r_f": "R_f: reduction factor: a loss of p takes R_f times p off the rate; from 0 to 100; default 3",
        "t_adapt": "T_adapt: time between two adaptation points; from 10 ms to 1 h; default 3 s",
        "t_rtcp": "T_rtcp: how often the receiver reports; from 10 ms to 5 s; default 1 s",
    },
    "tpba": {
        "t_running": "T_running: length of a running period (UDP); from 10 ms to 1 h; default 10 s",
        "t_tcp": "T_TCP: length of a cycle of the probing period (TCP); from 1 ms to 60 s; default 1 s",
        "stop": "when the probing period ends: three rates within epsilon, or within z %, or the same of rates over the time between reductions of cwnd; `epsilon`, `percent` or `cwnd-cycle`; default epsilon",
        "epsilon": "epsilon: allowed difference (`stop = epsilon`); a rate above 0; default 30 kbit/s",
        "z": "z: allowed difference in percent (the other two stop rules); from 0.1 to 100; default 5",
        "r_min": "r_min: no loss lowers the rate below this; a rate within the flow's limits, or `min_rate`: the flow's lowest; default min_rate",
        "r_f": "R_f: reduction factor: a loss of p takes R_f times p off the rate; from 0 to 100; default 3",
        "t_adapt": "T_adapt: time between two adaptation points; from 10 ms to 1 h; default 3 s",
        "t_rtcp": "T_rtcp: how often the receiver reports; from 10 ms to 5 s; default 1 s",
        "keep_cwnd": "set TCP's congestion window to cwnd_new where probing begins; off: TCP restarts as after any idle time; `on` or `off`; default on",
        "drained": "when TCP has given way to UDP: all that it was given is acknowledged, or all of it has been sent, so that data over UDP may overtake the last of it; `acknowledged` or `sent`; default acknowledged",
        "reprobe_below": "the running period is over when its rate is below this share of r_s; 0: never; from 0 to 1; default 0",
    },
    "fixed": {
        "rate": "what is sent, whatever happens; a rate within the flow's limits, or `start`: the flow's start rate, 1 Mbit/s if it has none; default start",
    },
}
