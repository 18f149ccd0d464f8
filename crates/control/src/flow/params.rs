//! How a flow is set up, and its answers to a driver.

use crate::breaker::{BreakerParams, StopReason};
use crate::quick_start::QuickStartParams;
use crate::registry::{Env, Safety};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, Kind, QsOption, Rate, Via};

/// How a flow is set up.
#[derive(Clone, Debug)]
pub struct FlowParams {
    /// As in the controller's [`Env`].
    pub packet_size: Bytes,
    /// The most that data and dummies together may use, enforced per packet.
    pub max_rate: Rate,
    /// With [`Safety::Paper`] there is no cap, and every RTT sample is believed.
    pub safety: Safety,
    /// The circuit breaker; `None` switches it off.
    pub breaker: Option<BreakerParams>,
    /// Keep events for [`Flow::drain_events`](super::Flow::drain_events).
    pub trace: bool,
    /// The class of data packets; dummies are always low.
    pub data_class: Class,
    /// The numbers of the first data packet and the first dummy.
    pub first_seq: [u64; 2],
    /// Packets of each kind remembered at most. An outstanding packet pushed out of the history is
    /// counted as lost and not reported.
    pub history: usize,
    /// Leave out one data number in that many, at random from this seed: a receiver that
    /// acknowledges one of them lies, and the flow stops. `None`: never.
    pub skip: Option<(u32, u64)>,
    /// The longest the receiver may hold an acknowledgement back; what it claims beyond that stays in
    /// the RTT, and only the timeout waits for it. The feedback interval and some room, 25 ms [RFC 9002 §5.3].
    pub max_ack_delay: Duration,
    /// Somewhere on the path capacity is granted in bursts, so that for round trips on end more may arrive than
    /// was sent. The rate that a measuring receiver claims is then compared with the data that left between the
    /// departures that two reports echo, over the time between the reports, if that is shorter.
    pub bursty_path: bool,
    /// Ask the routers for a rate at the start and after idle times; `None`: never. Only for networks
    /// whose routers are known to do it [RFC 4782 §10.3].
    pub quick_start: Option<QuickStartParams>,
    /// The pacing quantum: when a packet leaves, those that are due within this leave with it, so that a driver wakes
    /// up once for all of them. Rates are unchanged; what may leave within any time w is what may within w and a
    /// quantum without it. A timer less than two quanta before a packet may run with it. Zero: each packet at its own
    /// time. Schemes whose spacing is a rule of its own
    /// ([`Controller::may_leave_early`](crate::Controller::may_leave_early)) are paced without one.
    pub quantum: Duration,
    /// The lead: a data packet may leave so long before it is due, and by no more than the least round trip. Frames then leave as
    /// they are encoded, at the controller's rate in the mean [rcs Fig. 10]; what may leave within any time w is what may
    /// within w and a lead without it. Dummies, the cap and the breaker know of no lead, nor do schemes whose spacing is a rule of its own
    /// ([`Controller::may_leave_early`](crate::Controller::may_leave_early)).
    pub lead: Duration,
}

impl FlowParams {
    /// The parameters that fit a controller built in `env`: cap and breaker on unless `env.safety` is
    /// [`Safety::Paper`].
    pub fn new(env: &Env) -> Self {
        FlowParams {
            packet_size: env.packet_size,
            max_rate: env.max_rate,
            safety: env.safety,
            breaker: (env.safety == Safety::Default).then(BreakerParams::default),
            trace: false,
            data_class: Class::Normal,
            first_seq: [0, 0],
            history: 16_384,
            skip: None,
            max_ack_delay: Duration::from_millis(25),
            bursty_path: false,
            quick_start: None,
            quantum: Duration::ZERO,
            lead: Duration::ZERO,
        }
    }
}

/// Leave to send one packet. A permit is used up by [`Flow::on_sent`](super::Flow::on_sent); an unused one expires at the
/// next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Media or dummy.
    pub kind: Kind,
    /// The priority to mark it with.
    pub class: Class,
    /// The number to send it under, counted per kind.
    pub seq: u64,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// The Quick-Start option to put into its IP header, with the TTL to send it with.
    pub quick_start: Option<QsOption>,
    /// The transport to send it by.
    pub via: Via,
}

/// The answer to [`Flow::poll`](super::Flow::poll). The instant in a waiting answer is when to ask again even if
/// nothing else happens; [`Instant::NEVER`] if that is not needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transmit {
    /// Send this packet now, call [`Flow::on_sent`](super::Flow::on_sent), and ask again.
    Send(Permit),
    /// Nothing before that instant.
    WaitUntil(Instant),
    /// Data may go as soon as there is some.
    WaitForData(Instant),
    /// Nothing before feedback.
    WaitForFeedback(Instant),
    /// The flow has ended and stays so.
    Stopped(StopReason),
}
