//! A satellite terminal that answers Quick-Start and asks for its capacity, to build a real one on: no I/O, no clock, no packets.
//!
//! Source: [qsd eq. (1), §3.4, App. A]. Guide, from the frame's layout to T_q: `docs/links/terminal.md`; a worked program:
//! `crates/net/examples/terminal.rs`. The simulated terminals ([`Dama`](crate::Dama)) decide by the same agent, estimators and formula.
//!
//! ```text
//!   packet without option ──on_packet──▶ uplink queue
//!   packet with option ────on_option──▶ rewritten; held until Decision::hold_until, then uplink queue
//!   TBTP ──────────────────on_tbtp────▶ what is free
//!   end of an interval ────request────▶ R + q / T_s + F, or C, and the rates approved since: to the NCC
//! ```
//!
//! Time must not go back. Memory is bounded by the parameters: a router's approvals ([`RouterParams`](super::RouterParams)) and the
//! observations of the [`LoadWindow`](super::LoadWindow).

use super::{AgentSpec, Channel, Decision, Observation, QsAgent, QsCounters, QsError};
use crate::dama::requested;
use fairpace_units::{Bytes, Duration, Instant, QsOption, Rate};

/// The properties of a terminal, as plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalSpec {
    /// The agent: whether and how it answers, and how it learns what is free.
    pub agent: AgentSpec,
    /// RTT_m of the network: how long a question to the NCC takes ([`Estimator::OnDemand`](super::Estimator::OnDemand)).
    pub mean_rtt: Duration,
    /// C of eq. (1): what is asked for at least.
    pub constant: Rate,
    /// Whether R of eq. (1), the traffic of the interval, is asked for.
    pub rate_based: bool,
    /// T_s of eq. (1): in which time the uplink queue shall be empty, above zero; `None`: the queue is not asked for.
    pub volume: Option<Duration>,
}

/// A request for capacity, with what it is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityRequest {
    /// R: what arrived in the interval.
    pub traffic: Rate,
    /// q: what waits in the uplink queue.
    pub queue: Bytes,
    /// The rates that the agent approved in the interval, not yet in the traffic.
    pub quick_start: Rate,
    /// All of the request: max(R + q / T_s + F, C) and the approved rates.
    pub rate: Rate,
}

/// A terminal: its agent, its knowledge of the channel, and what it will ask for.
#[derive(Clone, Debug)]
pub struct Terminal {
    spec: TerminalSpec,
    agent: QsAgent,
    channel: Channel,
    arrived: Bytes,
    approved: Rate,
}

impl Terminal {
    /// A terminal that has heard nothing of its channel yet, so that nothing looks free: tell it at once by [`Terminal::on_tbtp`] what
    /// holds. `seed` and `name` are those of its random streams ([`QsAgent::new`]); the seed makes the nonces of lowered requests, and
    /// must come from a source fit for secrets.
    ///
    /// # Errors
    /// [`QsError`] names the parameter that cannot be.
    pub fn new(spec: TerminalSpec, seed: u64, name: &str) -> Result<Terminal, QsError> {
        if spec.volume.is_some_and(|t_s| t_s.is_zero()) {
            return Err(QsError { field: "volume", found: 0.0, allowed: "above 0 s" });
        }
        Ok(Terminal {
            agent: QsAgent::new(&spec.agent, spec.mean_rtt, seed, name)?,
            channel: Channel::new(spec.agent.router.load),
            arrived: Bytes::ZERO,
            approved: Rate::ZERO,
            spec,
        })
    }

    /// A packet of `size` bytes without a Quick-Start option has come from the terminal's side; it joins the uplink queue.
    pub fn on_packet(&mut self, size: Bytes) {
        self.arrived += size;
    }

    /// A packet with a Quick-Start option has come from `source`: changes the option as a router does, and says when the packet may join
    /// the uplink queue. The option has to be written back into the packet in any case.
    pub fn on_option(&mut self, now: Instant, size: Bytes, source: u64, option: &mut QsOption) -> Decision {
        self.arrived += size;
        let decision = self.agent.on_request(now, option, source, &self.channel);
        self.approved = self.approved + decision.add_to_request;
        decision
    }

    /// A TBTP has arrived: what it says of the carrier, and what was sent since the one before.
    pub fn on_tbtp(&mut self, observation: Observation) {
        self.channel.observe(observation);
    }

    /// The NCC has answered with its latest allocation; only for [`Estimator::OnDemand`](super::Estimator::OnDemand).
    pub fn on_allocation(&mut self, allocation: Observation) {
        self.channel.decided(allocation);
    }

    /// The request at the end of an interval of that length, in which `queued` bytes wait; `free` is F, what the terminal has by free
    /// capacity assignment. The next interval begins.
    pub fn request(&mut self, interval: Duration, queued: Bytes, free: Rate) -> CapacityRequest {
        let (arrived, quick_start) = (core::mem::take(&mut self.arrived), core::mem::take(&mut self.approved));
        let per_second = |bytes: Bytes, time: Duration| bytes.as_f64() * 8.0 / time.as_secs_f64().max(1e-9);
        let traffic = per_second(arrived, interval);
        let rate_based = if self.spec.rate_based { traffic } else { 0.0 };
        let volume = self.spec.volume.map_or(0.0, |t_s| per_second(queued, t_s));
        let asked = requested(rate_based, volume, free.as_bps(), self.spec.constant.as_bps());
        let (traffic, rate) = (Rate::bps(traffic), Rate::bps(asked) + quick_start);
        CapacityRequest { traffic, queue: queued, quick_start, rate }
    }

    /// The agent's decisions so far.
    pub fn counters(&self) -> &QsCounters {
        self.agent.router().counters()
    }
}

impl From<&crate::DamaSpec> for TerminalSpec {
    /// A terminal of that satellite.
    fn from(spec: &crate::DamaSpec) -> TerminalSpec {
        TerminalSpec {
            agent: spec.quick_start,
            mean_rtt: spec.mean_rtt(),
            constant: spec.cra,
            rate_based: spec.rbdc,
            volume: spec.vbdc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dama::DamaEventKind;
    use crate::quick_start::{Agent, RouterParams};
    use crate::{Dama, DamaSpec, Datagram, Plain};
    use fairpace_units::{QsFunction, QsNonce, QsRate};

    /// A packet of that size, and its option.
    #[derive(Clone, Copy, Debug)]
    struct Asking(Plain, Option<QsOption>);

    impl Datagram for Asking {
        fn size(&self) -> Bytes {
            self.0.size()
        }
        fn class(&self) -> fairpace_units::Class {
            self.0.class()
        }
        fn ecn(&self) -> fairpace_units::Ecn {
            self.0.ecn()
        }
        fn set_ecn(&mut self, ecn: fairpace_units::Ecn) {
            self.0.set_ecn(ecn);
        }
        fn quick_start(&mut self) -> Option<&mut QsOption> {
            self.1.as_mut()
        }
    }

    fn option() -> QsOption {
        let rate = QsRate::from_code(3).unwrap();
        QsOption { function: QsFunction::Request, rate, qs_ttl: 91, ip_ttl: 63, nonce: QsNonce::new(7) }
    }

    fn idle(spec: &DamaSpec) -> Observation {
        let (assigned, free_assigned, sent) = (Rate::kbps(220.0), Rate::ZERO, Rate::ZERO);
        Observation { capacity: spec.capacity, assigned, free_assigned, sent }
    }

    /// Eq. (1) by hand, over an interval of 2 s.
    #[test]
    fn a_request_is_traffic_and_queue_and_what_was_approved_but_no_less_than_the_constant() {
        let hold = Duration::from_millis(500);
        let spec = TerminalSpec {
            agent: AgentSpec {
                router: RouterParams { source_share: 1.0, ..RouterParams::default() },
                ..AgentSpec::new(Agent::Qsd { hold }, Duration::from_secs(2), Duration::from_secs(4))
            },
            mean_rtt: Duration::from_millis(700),
            constant: Rate::kbps(50.0),
            rate_based: true,
            volume: Some(Duration::from_secs(1)),
        };
        let mut terminal = Terminal::new(spec, 1, "terminal").unwrap();
        let (now, interval) = (Instant::from_secs_f64(1.0), Duration::from_secs(2));
        // Nothing is known of the channel: refused, not held, and nothing is asked for but the constant rate.
        let mut refused = option();
        let decision = terminal.on_option(now, Bytes::new(1_000), 9, &mut refused);
        assert_eq!((decision.hold_until, decision.add_to_request, refused.rate), (now, Rate::ZERO, QsRate::ZERO));
        // 1,000 B in 2 s are 4 kbit/s.
        let asked = terminal.request(interval, Bytes::ZERO, Rate::ZERO);
        assert_eq!((asked.traffic, asked.quick_start, asked.rate), (Rate::kbps(4.0), Rate::ZERO, Rate::kbps(50.0)));
        terminal.on_tbtp(idle(&DamaSpec::large()));
        let mut approved = option();
        let decision = terminal.on_option(now, Bytes::new(1_000), 9, &mut approved);
        assert_eq!((decision.hold_until, decision.add_to_request), (now + hold, Rate::kbps(320.0)));
        assert_eq!((approved.rate, approved.ttl_diff()), (option().rate, option().ttl_diff()));
        for _ in 0..24 {
            terminal.on_packet(Bytes::new(1_000));
        }
        // 25,000 B in 2 s, 5,000 B to leave within 1 s, 7 by FCA: 100 + 40 + 7, and 320 that was approved.
        let asked = terminal.request(interval, Bytes::new(5_000), Rate::kbps(7.0));
        assert_eq!(
            (asked.traffic, asked.quick_start, asked.rate),
            (Rate::kbps(100.0), Rate::kbps(320.0), Rate::kbps(467.0))
        );
        // Once.
        assert_eq!(terminal.request(interval, Bytes::ZERO, Rate::ZERO).rate, Rate::kbps(50.0));
        assert_eq!((terminal.counters().approved, terminal.counters().refused.iter().sum()), (1, 1_u64));
        assert!(Terminal::new(TerminalSpec { volume: Some(Duration::ZERO), ..spec }, 1, "t").is_err());
    }

    /// Packet by packet the terminal asks for what a simulated one asks for.
    #[test]
    fn it_asks_as_the_simulated_terminals_do() {
        let spec = DamaSpec { vbdc: Some(Duration::from_secs(3)), ..DamaSpec::large() };
        let hold = spec.t_q_opt();
        let spec = spec.with_agent(Agent::Qsd { hold });
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        dama.record_events(true);
        let mut terminal = Terminal::new(TerminalSpec::from(&spec), 1, "dama.0").unwrap();
        terminal.on_tbtp(idle(&spec));
        let mut requests = 0;
        let sent = |i: u64| Instant::from_nanos(100_000_000 + i * 37_000_000);
        let mut check = |dama: &mut Dama<Asking>, terminal: &mut Terminal| {
            while let Some(event) = dama.take_event() {
                let DamaEventKind::Request { traffic, queue, quick_start, rate } = event.what else { continue };
                if event.terminal != 0 {
                    continue;
                }
                let asked = terminal.request(spec.super_frame(), queue, Rate::ZERO);
                let near = |a: Rate, b: Rate| (a.as_bps() - b.as_bps()).abs() < 1.0;
                assert!(near(asked.traffic, traffic) && near(asked.quick_start, quick_start), "{event:?} {asked:?}");
                assert!(near(asked.rate, rate), "{event:?} {asked:?}");
                requests += 1;
            }
        };
        for i in 0..200 {
            let (now, size) = (sent(i), Bytes::new(300 + 7 * i));
            // Everything up to now first: requests at boundaries.
            dama.advance(now);
            check(&mut dama, &mut terminal);
            let mut asks = (i == 30).then(option);
            match &mut asks {
                Some(option) => drop(terminal.on_option(now, size, 0, option)),
                None => terminal.on_packet(size),
            }
            dama.push(now, 0, Asking(Plain::new(size), (i == 30).then(option)));
        }
        assert!(requests >= 6, "{requests}");
    }
}
