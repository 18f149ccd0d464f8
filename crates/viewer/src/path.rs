//! The simulator's path with the two ends of one media session, in virtual time.

use fairpace_control::ParamError;
use fairpace_media::MediaError;
use fairpace_scenario::{Record, Scenario, ScenarioError, sim_config};
use fairpace_sim::{Carries, Direction, Entering, FlowConfig, FlowCounts, Network, Protocol, SimError};
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant};
use std::collections::BTreeMap;

/// Why a path cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The scenario says something that cannot be simulated.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator refuses the path.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A parameter of the controller.
    #[error(transparent)]
    Control(#[from] ParamError),
    /// The source of frames.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The scenario has no media flow whose place the video could take.
    #[error("`{scenario}` has no media flow: give it one, whose place on the path the video takes")]
    NoMedia {
        /// The scenario's name.
        scenario: String,
    },
}

/// The purpose of a packet, for the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Part of the frame captured at that tick of the 90-kHz clock.
    Media(u32),
    /// Part of that frame again.
    Repair(u32),
    /// The sum of several packets of frames.
    Fec,
    /// Filler that probes the path.
    Dummy,
    /// Challenges, reports, feedback, requests.
    Control,
}

/// A packet at one end of the path; `M` is its content.
#[derive(Clone, Debug)]
pub struct Wire<M> {
    /// Its IP size.
    pub size: Bytes,
    /// The code point it is sent with.
    pub dscp: Dscp,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its purpose.
    pub about: About,
    /// Its content.
    pub body: M,
}

/// One end of a media session, without I/O and without a clock.
pub trait End<M> {
    /// A packet has arrived.
    fn on_packet(&mut self, now: Instant, packet: &Wire<M>);
    /// Appends the packets that leave now; gives when to ask again if nothing arrives.
    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<M>>) -> Instant;
    /// The run is over.
    fn finish(&mut self, _now: Instant) {}
}

/// A packet's way: when it left, and whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Its purpose.
    pub about: About,
    /// Its IP size.
    pub size: Bytes,
    /// When it left.
    pub left: Instant,
    /// When it arrived; `None` if the path dropped it, or it was under way at the end.
    pub arrived: Option<Instant>,
}

/// The packets of the session on a path, and the flows beside it.
#[derive(Debug)]
pub struct PathRun {
    /// Everything that the sender sent, in order.
    pub trips: Vec<Trip>,
    /// The way back: packets and bytes with IP headers.
    pub back: (u64, Bytes),
    /// The other flows' names and counts.
    pub beside: Vec<(String, FlowCounts)>,
    /// How long the run took, in its own time.
    pub duration: Duration,
}

/// Runs two ends over a scenario's path for the scenario's duration. Its media flows are left out.
///
/// # Errors
/// [`PathError`]: the scenario cannot be simulated, or has no media flow.
pub fn run<M>(
    scenario: &Scenario,
    seed: u64,
    sender: &mut dyn End<M>,
    receiver: &mut dyn End<M>,
) -> Result<PathRun, PathError> {
    let mut config = sim_config(scenario, seed, Record::default())?;
    let video = config.flows.iter().find(|f| matches!(f.protocol, Protocol::Media(_))).cloned();
    let video = video.ok_or_else(|| PathError::NoMedia { scenario: scenario.name.clone() })?;
    config.flows.retain(|f| !matches!(f.protocol, Protocol::Media(_)));
    config.flows.push(FlowConfig { protocol: Protocol::External, start: Instant::ZERO, ..video.clone() });
    let end = Instant::ZERO + config.duration;
    let network = Network::new(&config)?;
    let flow = network.flow_id(&video.name).unwrap_or_default();
    let mut run =
        Running { network, flow, under_way: BTreeMap::new(), next_token: 0, trips: Vec::new(), back: (0, Bytes::ZERO) };
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    // When each end is to be polled, whatever comes: at once, as soon as something has come for it. All else in the network is none of its business.
    let mut due = [Instant::ZERO; 2];
    loop {
        run.network.advance(now);
        while let Some(delivered) = run.network.take_delivered() {
            let Some((mut wire, trip)) = run.under_way.remove(&delivered.token) else { continue };
            wire.ecn = delivered.ecn;
            match trip {
                Some(trip) => {
                    if let Some(t) = run.trips.get_mut(trip) {
                        t.arrived = Some(delivered.at);
                    }
                    receiver.on_packet(now, &wire);
                    due[1] = now;
                }
                None => {
                    sender.on_packet(now, &wire);
                    due[0] = now;
                }
            }
        }
        while let Some(dropped) = run.network.take_dropped() {
            run.under_way.remove(&dropped.token);
        }
        if due[0] <= now {
            due[0] = sender.poll(now, &mut out);
            run.inject(now, Direction::Forward, &mut out);
        }
        if due[1] <= now {
            due[1] = receiver.poll(now, &mut out);
            run.inject(now, Direction::Back, &mut out);
        }
        // A packet that a link takes in and lets out at once is there at the same instant.
        let next = due[0].min(due[1]).min(run.network.next()).max(now);
        if next > end {
            break;
        }
        now = next;
    }
    sender.finish(end);
    receiver.finish(end);
    run.network.advance(end);
    let beside = config.flows.iter().filter(|f| f.name != video.name);
    let beside = beside.filter_map(|f| Some((f.name.clone(), *run.network.counts(run.network.flow_id(&f.name)?)?)));
    Ok(PathRun { beside: beside.collect(), trips: run.trips, back: run.back, duration: config.duration })
}

struct Running<M> {
    network: Network,
    flow: u32,
    /// By token: the packet, and its place among the trips if it goes forward.
    under_way: BTreeMap<u64, (Wire<M>, Option<usize>)>,
    next_token: u64,
    trips: Vec<Trip>,
    back: (u64, Bytes),
}

impl<M> Running<M> {
    fn inject(&mut self, now: Instant, direction: Direction, out: &mut Vec<Wire<M>>) {
        for wire in out.drain(..) {
            let token = self.next_token;
            self.next_token += 1;
            let trip = match direction {
                Direction::Forward => {
                    self.trips.push(Trip { about: wire.about, size: wire.size, left: now, arrived: None });
                    Some(self.trips.len() - 1)
                }
                Direction::Back => {
                    self.back = (self.back.0 + 1, self.back.1 + wire.size);
                    None
                }
            };
            let carries = match wire.about {
                About::Media(_) | About::Repair(_) | About::Fec => Carries::Data,
                About::Dummy => Carries::Dummy,
                About::Control => Carries::Control,
            };
            let entering = Entering::new(self.flow, direction, wire.size, token);
            self.network.inject(now, Entering { class: wire.dscp.class(), ecn: wire.ecn, carries, ..entering });
            self.under_way.insert(token, (wire, trip));
        }
    }
}
