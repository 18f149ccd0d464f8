//! Flows that come one after another ([`Coming`]): the network has a place for each that goes on, and one for the next.
//!
//! A place is a [`FlowState`] and its two routes. A flow that comes takes one that is vacant and has the same hops, or a new one; when it is over, its report
//! is kept until somebody takes it, and the place is vacant. So memory is that of the flows that go on at one time. A network finds out about routes
//! before it begins, and that holds for those flows, too: a first look at all of them tells which routes there are, each of which gets a place at once, and what is wrong
//! with any of them.
//!
//! A packet has the number of its flow's place; what tells flows apart on the way (a fair queue) takes those that have one place after another for one flow. Rows,
//! reports and observers have the number of the flow.

use fairpace_units::Instant;

use super::build::SharedHop;
use super::comers::{Comers, Ended, Stock};
use super::notes::Group;
use super::{Network, START, STOP, SimError, target_of};
use crate::check::{bad, check};
use crate::config::{Access, Coming, FlowConfig, Protocol, SimConfig};
use crate::flow_state::{Endpoint, FlowState, MOST_FLOWS_TRACED, Place};
use crate::packet::FlowId;
use crate::report::FlowReport;

impl Network {
    /// Looks at all flows that will come.
    pub(super) fn expect(&mut self, coming: &Coming, sim: &SimConfig, hops: &[SharedHop]) -> Result<(), SimError> {
        let mut comers = Comers::new(coming, sim);
        comers.groups = (0..).zip(&self.groups).map(|(i, group)| (group.name.clone(), i)).collect();
        let mut last = Instant::ZERO;
        for flow in coming.flows() {
            // There may be no end of them.
            if flow.start > comers.end {
                break;
            }
            check_coming(&flow, last)?;
            last = flow.start;
            let known = comers.routes.get(&flow.route).copied();
            let way = match known {
                Some(way) => way,
                None => self.add_places(&mut comers, &flow, hops)?,
            };
            let bursty = comers.ways[way as usize].bursty;
            let state = FlowState::new(&flow, 0, sim.seed, false, true, bursty, &mut comers.shared)?;
            if state.takes_window {
                let allowed = "windows are planned for flows that are known before the run: put it into `flows`";
                return Err(bad(format!("flow `{}`: protocol", flow.name), "one that takes windows", allowed));
            }
            let next = self.groups.len() as u32;
            if *comers.groups.entry(flow.group.clone()).or_insert(next) == next {
                self.groups.push(Group::new(flow.group.clone()));
            }
            self.groups[comers.groups[&flow.group] as usize].shared = true;
        }
        if comers.ways.is_empty() && sim.flows.is_empty() {
            return Err(SimError::NoFlows);
        }
        self.comers = Some(Box::new(comers));
        Ok(())
    }

    /// The first place of flows with that route.
    fn add_places(&mut self, comers: &mut Comers, flow: &FlowConfig, hops: &[SharedHop]) -> Result<u32, SimError> {
        let bursty = self.add_way(flow, comers.seed, hops)?.bursty;
        let some = self.flows.len() as FlowId;
        let mut state = FlowState::new(flow, 0, comers.seed, false, true, bursty, &mut comers.shared)?;
        state.vacate();
        self.add_place(state);
        let way = comers.ways.len() as u32;
        comers.ways.push(Stock { some, vacant: vec![some], bursty });
        comers.routes.insert(flow.route.clone(), way);
        Ok(way)
    }

    /// Makes the next flow ready that comes, if there is one more.
    pub(super) fn expect_next(&mut self) {
        let Some(mut comers) = self.comers.take() else { return };
        while let Some(flow) = comers.flows.next().filter(|flow| flow.start <= comers.end) {
            let ready = self.make_ready(&mut comers, &flow);
            debug_assert!(ready.is_some(), "`{}` was not there at the first look", flow.name);
            if ready.is_some() {
                break;
            }
        }
        self.comers = Some(comers);
    }

    fn make_ready(&mut self, comers: &mut Comers, config: &FlowConfig) -> Option<()> {
        let (way, group) = (*comers.routes.get(&config.route)?, *comers.groups.get(&config.group)?);
        let (places, state) = (comers.ways.get_mut(way as usize)?, self.groups.get(group as usize)?);
        let trace = self.trace && state.flows < MOST_FLOWS_TRACED;
        let mut flow =
            FlowState::new(config, group, comers.seed, trace, true, places.bursty, &mut comers.shared).ok()?;
        flow.place = Place::Comer { number: comers.number, way, stop: config.stop.unwrap_or(Instant::NEVER) };
        flow.go_as(&self.flows[places.some as usize]);
        comers.checkpoints[..comers.noted].iter().for_each(|at| flow.note_checkpoint(*at));
        comers.number += 1;
        let start = flow.started.max(self.now);
        let place = match places.vacant.pop() {
            Some(place) => {
                self.flows[place as usize] = flow;
                place
            }
            None => {
                self.routes.repeat(places.some);
                self.flows.push(flow);
                self.flows.len() as FlowId - 1
            }
        };
        self.events.push(start, target_of(START, place));
        if let Some(stop) = config.stop {
            self.events.push(stop.max(self.now), target_of(STOP, place));
        }
        Some(())
    }

    /// A checkpoint: those that come later have nothing then, those that are over what they had in the end.
    pub(super) fn pass_checkpoint(&mut self, at: Instant) {
        if let Some(comers) = &mut self.comers {
            comers.noted = comers.checkpoints.partition_point(|checkpoint| *checkpoint <= at);
        }
    }

    /// Whether the flow that has that place now stops at that instant, and not one that had it before.
    pub(super) fn stops(&self, place: usize, at: Instant) -> bool {
        !matches!(self.flows[place].place, Place::Comer { stop, .. } if stop != at) && !self.is_vacant(place)
    }

    fn is_vacant(&self, place: usize) -> bool {
        matches!(self.flows[place].place, Place::Vacant)
    }

    /// If a flow came, is over, and its last row of series is not to come, its report is made, and its place is vacant.
    #[cold]
    pub(super) fn let_go(&mut self, place: FlowId) {
        let flow = &mut self.flows[place as usize];
        let (Place::Comer { number, way, .. }, Endpoint::Over(_)) = (flow.place, &flow.endpoint) else { return };
        let Some(comers) = self.comers.as_mut().filter(|_| !self.sampled.contains(&place)) else { return };
        comers.checkpoints[comers.noted..].iter().for_each(|at| flow.note_checkpoint(*at));
        let (group, tcp) = (&mut self.groups[flow.group as usize], flow.tcp_account());
        let report = flow.report(comers.end, comers.end.since(self.warmup), &group.name, true);
        group.owd.add(&report.owd);
        group.e2ed.add(&report.e2ed);
        if self.trace {
            self.flow_events.extend(flow.drain_events().into_iter().map(|event| (number, event)));
        }
        flow.vacate();
        comers.ended.push(Ended { number, report, tcp });
        comers.ways[way as usize].vacant.push(place);
    }

    /// The reports of flows of [`SimConfig::coming`] that are over, since the last call, with their numbers, as of a run that goes on to
    /// [`SimConfig::duration`]; no [`SimReport`](crate::SimReport) has these then: whoever takes them now and then holds few, however many flows there are. Numbers
    /// begin behind the last of [`SimConfig::flows`].
    pub fn take_ended(&mut self) -> Vec<(FlowId, FlowReport)> {
        let Some(comers) = &mut self.comers else { return Vec::new() };
        let (warmup, end, in_warmup) = (self.warmup, comers.end, self.now < self.warmup);
        let finish = |mut flow: Ended| {
            if in_warmup {
                flow.end_warmup(warmup);
            }
            flow.report(end, end.since(warmup))
        };
        std::mem::take(&mut comers.ended).into_iter().map(finish).collect()
    }
}

/// Everything about a flow that comes which need not be so of others.
fn check_coming(flow: &FlowConfig, last: Instant) -> Result<(), SimError> {
    check(flow)?;
    let field = |name: &str| format!("flow `{}`: {name}", flow.name);
    if flow.start < last {
        return Err(bad(field("start"), flow.start, "flows that come are told in the order of their starts"));
    }
    if flow.stop.is_some_and(|stop| stop <= flow.start) {
        return Err(bad(
            field("stop"),
            flow.stop.unwrap_or(flow.start),
            "it must come after `start`: leave such a flow out",
        ));
    }
    if !flow.start_spread.is_zero() {
        return Err(bad(field("start_spread"), format!("{:?}", flow.start_spread), "a flow that comes has none"));
    }
    let Access { forward_in, forward_out, back_in, back_out } = &flow.access;
    if [forward_in, forward_out, back_in, back_out].into_iter().any(Option::is_some) {
        return Err(bad(field("access"), "given", "flows that come have no links of their own: give them a hop"));
    }
    let asks = match &flow.protocol {
        Protocol::Media(media) => media.flow.quick_start.is_some(),
        Protocol::Constant(constant) => constant.quick_start.is_some(),
        Protocol::Tcp(..) | Protocol::External => false,
    };
    if asks {
        let allowed = "routers grant rates by source, and flows that come share theirs: put it into `flows`";
        return Err(bad(field("quick_start"), "given", allowed));
    }
    if matches!(flow.protocol, Protocol::External) {
        return Err(bad(
            field("protocol"),
            "external",
            "its driver has to know it before the run: put it into `flows`",
        ));
    }
    Ok(())
}
