//! The record of an endpoint in real time, in the simulator's terms.

use fairpace_control::{FlowCounters, FlowEvent, StopReason};
use fairpace_sim::tcp::{TcpAreas, TcpCounters};
use fairpace_sim::{FlowId, FrameRecord};
use fairpace_units::{Bytes, Duration, Instant, Rate};

/// An endpoint at one time: what a row of the series has beside the network's counts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// The rate that the controller allows; zero for others.
    pub(crate) target_rate: Rate,
    /// Congestion window in packets, of TCP or of a media flow's TCP half; zero for others.
    pub(crate) cwnd: f64,
    pub(crate) rwnd: Option<u32>,
    pub(crate) srtt: Option<Duration>,
    pub(crate) rto: Option<Duration>,
    pub(crate) loss_event_rate: Option<f64>,
    pub(crate) send_buffer: Bytes,
    pub(crate) state: &'static str,
    /// Data packets acknowledged since the beginning.
    pub(crate) acknowledged: u64,
    /// TCP: what its sender counted since the beginning.
    pub(crate) tcp: TcpCounters,
}

/// One flow's sender, and what its receiver knows better than the network.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) flow: FlowId,
    /// As `FlowReport::protocol`.
    pub(crate) protocol: String,
    pub(crate) started: Instant,
    /// One per sampling interval or more, in order of time.
    pub(crate) moments: Vec<Moment>,
    /// The last moment of the warm-up.
    pub(crate) at_warmup: Moment,
    pub(crate) tcp: TcpCounters,
    pub(crate) ssthresh: f64,
    /// TCP: integrals over the measured window.
    pub(crate) areas: Option<TcpAreas>,
    /// TCP: payload bytes in order at the receiver, at the end of the warm-up and at the end.
    pub(crate) in_order: Option<[Bytes; 2]>,
    /// Media: what the controller's flow counted.
    pub(crate) flow_counters: Option<FlowCounters>,
    /// Media: frames that the source gave, and those dropped unsent.
    pub(crate) frames: [u64; 2],
    /// Media: its data units, as its receiver saw them.
    pub(crate) records: Vec<FrameRecord>,
    /// Media: feedback that was not believed.
    pub(crate) unproven: u64,
    pub(crate) events: Vec<FlowEvent>,
    pub(crate) finished: Option<Instant>,
    pub(crate) stopped: Option<StopReason>,
    /// Why it ended before its time; the run is not valid then.
    pub(crate) trouble: Option<String>,
}

impl Endpoint {
    pub(crate) fn new(flow: FlowId, protocol: String, started: Instant) -> Endpoint {
        Endpoint {
            flow,
            protocol,
            started,
            moments: Vec::new(),
            at_warmup: Moment::default(),
            tcp: TcpCounters::default(),
            ssthresh: f64::INFINITY,
            areas: None,
            in_order: None,
            flow_counters: None,
            frames: [0; 2],
            records: Vec::new(),
            unproven: 0,
            events: Vec::new(),
            finished: None,
            stopped: None,
            trouble: None,
        }
    }

    pub(crate) fn note(&mut self, moment: Moment, warmup: Instant) {
        if moment.at <= warmup {
            self.at_warmup = moment;
        }
        self.moments.push(moment);
    }

    /// As it was at that time: the last moment before it, or the first of all.
    pub(crate) fn at(&self, at: Instant) -> Option<&Moment> {
        let after = self.moments.partition_point(|m| m.at <= at);
        self.moments.get(after.saturating_sub(1)).filter(|_| after > 0)
    }

    pub(crate) fn last(&self) -> Moment {
        self.moments.last().copied().unwrap_or_default()
    }
}

/// Integrals over time of what a TCP sender says at each look, from the end of the warm-up on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Areas {
    last: Option<Moment>,
    pub(crate) sums: TcpAreas,
}

impl Areas {
    pub(crate) fn add(&mut self, moment: &Moment, warmup: Instant) {
        let Some(last) = self.last.replace(*moment).filter(|last| last.at >= warmup) else { return };
        let dt = moment.at.since(last.at).as_secs_f64();
        self.sums.time += dt;
        self.sums.cwnd += last.cwnd * dt;
        if let (Some(srtt), Some(rto)) = (last.srtt, last.rto) {
            self.sums.estimated += dt;
            self.sums.srtt += srtt.as_secs_f64() * dt;
            self.sums.rto += rto.as_secs_f64() * dt;
        }
    }
}
