//! The base station of a wireless link, which tells senders their windows.
//!
//! Source: [aimd §III-C, §III-D]. Page: `docs/sim/README.md`, "The radio".
//!
//! **Readings.** (a) The paper's base station informs the sender "during connection establishment": here the station
//! writes `rwnd` into the answer to the challenge, and into the feedback that passes, as soon as that leaves the uplink.
//! So a new plan reaches a sender one trip from the base station later, as long as feedback comes. (b) Its buffer
//! is the sum of the windows at every instant. While a plan is on its way, more than that may be: what a
//! lowered window still has under way and what the new one sends. Packets that do not fit are dropped.

use std::fmt;
use std::sync::Arc;

use fairpace_path::{Arq, Capacity};
use fairpace_units::{Duration, Instant, Packets, Rate};

use crate::packet::{Body, FlowId, Packet};

/// Changes of windows that are kept: the first so many.
pub const MOST_WINDOWS_NOTED: usize = 1 << 18;

/// A flow over the radio, as the base station sees it when it plans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// The flow.
    pub flow: FlowId,
    /// The user behind whose downlink it ends, from zero.
    pub user: u32,
    /// R of the paper, as time: [`SimConfig::min_rtt`](crate::SimConfig::min_rtt).
    pub min_rtt: Duration,
    /// p of eq. (4), not normalized: what it is to have of its user's downlink is this / the sum of it over that
    /// user's members. Above zero.
    pub share: f64,
}

/// The resource allocation of a base station [aimd §III-D, steps 4 and 5].
pub trait BaseStation: Send {
    /// The flow that is last in `members` has begun, or one that was among them has ended (none may be left): the
    /// `rwnd` of each from now on, in packets, in their order; zero: it may send nothing. Members are the flows whose
    /// receivers send sack vectors, in the order in which they began. Each window is in the feedback of its flow
    /// from then on, and in the answer to its challenge; a user's buffer becomes the sum of its members' windows,
    /// one packet at least, and that of a user without members stays.
    /// A member for which there is no number keeps what it had.
    fn plan(&mut self, now: Instant, members: &[Member]) -> Vec<u32>;

    /// The service that each of `members` may expect under these windows, one each, in their order, or why nothing can be promised. To a
    /// member for which there is no answer nothing is. Asked for by drivers that tell people; simulations do without.
    fn promises(&self, members: &[Member], windows: &[u32]) -> Vec<Result<Promise, String>> {
        let _ = (members, windows);
        Vec::new()
    }
}

/// The service that a flow may expect under its window while the wireless link is the bottleneck.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Promise {
    /// The part of its packets that have more delay jitter than they may.
    pub outage: f64,
    /// The part that was asked for at most: where `outage` is above it, the cell has less than it is asked for.
    pub bound: f64,
    /// Its throughput if it always has something to send.
    pub throughput: Rate,
}

impl Promise {
    /// Whether no more is late than was asked for.
    pub fn is_kept(&self) -> bool {
        self.outage <= self.bound
    }
}

/// A flow that is there, and its window.
#[derive(Clone, PartialEq, Debug)]
pub struct Allotted {
    /// The flow.
    pub flow: FlowId,
    /// `rwnd`, in packets; `None`: the base station has said none.
    pub rwnd: Option<u32>,
    /// The service that it may expect, or why nothing can be promised.
    pub promise: Result<Promise, String>,
}

/// A base station, made anew for each run.
#[derive(Clone)]
pub struct BaseStationSpec(pub Arc<dyn Fn() -> Box<dyn BaseStation> + Send + Sync>);

impl BaseStationSpec {
    /// From what makes one.
    pub fn new(make: impl Fn() -> Box<dyn BaseStation> + Send + Sync + 'static) -> Self {
        BaseStationSpec(Arc::new(make))
    }
}

impl fmt::Debug for BaseStationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base station")
    }
}

/// A window that the base station has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRow {
    /// The instant of the change.
    pub at: Instant,
    /// The flow that was given the window.
    pub flow: FlowId,
    /// `rwnd`, in packets.
    pub rwnd: u32,
}

/// A flow that the base station gives a window while it lasts.
struct Candidate {
    member: Member,
    rwnd: Option<u32>,
}

/// A base station in the network: between the uplinks of its users and what comes behind these.
pub(crate) struct Station {
    /// The place of its downlink among the network's media.
    pub(crate) downlink: u32,
    resources: Box<dyn BaseStation>,
    /// In order of their flows.
    candidates: Vec<Candidate>,
    /// Places among the candidates, in the order in which they joined.
    joined: Vec<usize>,
    windows: Vec<WindowRow>,
}

impl Station {
    pub(crate) fn new(downlink: u32, spec: &BaseStationSpec) -> Self {
        let (candidates, joined, windows) = (Vec::new(), Vec::new(), Vec::new());
        Station { downlink, resources: (spec.0)(), candidates, joined, windows }
    }

    /// The windows that changed: the first [`MOST_WINDOWS_NOTED`].
    pub(crate) fn windows(&self) -> &[WindowRow] {
        &self.windows
    }

    /// A flow that may join; flows come in order.
    pub(crate) fn attach(&mut self, member: Member) {
        self.candidates.push(Candidate { member, rwnd: None });
    }

    fn place(&self, flow: FlowId) -> Option<usize> {
        self.candidates.binary_search_by_key(&flow, |c| c.member.flow).ok()
    }

    /// A flow begins. Whether that is news.
    pub(crate) fn join(&mut self, arq: &mut Arq<Packet>, at: Instant, flow: FlowId) -> bool {
        let new = self.place(flow).filter(|place| !self.joined.contains(place));
        if let Some(place) = new {
            self.joined.push(place);
            self.plan(arq, at);
        }
        new.is_some()
    }

    /// A flow has ended; more than once is once. Whether that is news.
    pub(crate) fn leave(&mut self, arq: &mut Arq<Packet>, at: Instant, flow: FlowId) -> bool {
        let Some(place) = self.place(flow) else { return false };
        let before = self.joined.len();
        self.joined.retain(|p| *p != place);
        let is_news = self.joined.len() < before;
        if is_news {
            self.plan(arq, at);
        }
        is_news
    }

    /// The flows that are there, with their windows and what these promise.
    pub(crate) fn allotted(&self) -> Vec<Allotted> {
        let members: Vec<Member> = self.joined.iter().map(|place| self.candidates[*place].member).collect();
        let windows: Vec<Option<u32>> = self.joined.iter().map(|place| self.candidates[*place].rwnd).collect();
        // A promise rests on all of them.
        let known: Vec<u32> = windows.iter().copied().flatten().collect();
        let mut promises = match known.len() == members.len() {
            true => self.resources.promises(&members, &known),
            false => Vec::new(),
        };
        promises.resize(members.len(), Err("its base station promises nothing".to_owned()));
        let each = members.iter().zip(windows).zip(promises);
        each.map(|((member, rwnd), promise)| Allotted { flow: member.flow, rwnd, promise }).collect()
    }

    fn plan(&mut self, arq: &mut Arq<Packet>, at: Instant) {
        let members: Vec<Member> = self.joined.iter().map(|place| self.candidates[*place].member).collect();
        let windows = self.resources.plan(at, &members);
        for (place, rwnd) in self.joined.iter().zip(windows) {
            let candidate = &mut self.candidates[*place];
            if candidate.rwnd != Some(rwnd) && self.windows.len() < MOST_WINDOWS_NOTED {
                self.windows.push(WindowRow { at, flow: candidate.member.flow, rwnd });
            }
            candidate.rwnd = Some(rwnd);
        }
        let mut sums = vec![None; arq.users() as usize];
        for place in &self.joined {
            let Candidate { member, rwnd } = &self.candidates[*place];
            if let Some(rwnd) = rwnd {
                *sums[member.user as usize].get_or_insert(0) += u64::from(*rwnd);
            }
        }
        for (user, sum) in (0..).zip(sums) {
            if let Some(sum) = sum {
                // At least one packet: it cannot be refused.
                let _ = arq.set_buffer(user, Capacity::Packets(Packets::new(sum.max(1))));
            }
        }
    }

    /// Writes the sender's window into a packet that passes the base station on its way to that sender. (Receivers in
    /// the simulator have room for more, and say nothing.)
    pub(crate) fn write_window(&self, packet: &mut Packet) {
        let (Body::SackVector { rwnd, .. } | Body::Challenge { rwnd, .. } | Body::External { rwnd, .. }) =
            &mut packet.body
        else {
            return;
        };
        if let Some(place) = self.place(packet.flow)
            && let planned @ Some(_) = self.candidates[place].rwnd
        {
            *rwnd = planned;
        }
    }
}
