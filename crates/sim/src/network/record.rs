//! The records of a run, and the report made of them: nothing here moves a packet.

use fairpace_path::{Arq, Dama, Lane, Medium};
use fairpace_units::{Duration, Instant};

use super::carrier::Carrier;
use super::notes::{Group, Notes};
use super::store::Store;
use super::{Network, SAMPLE, Slot, just_after, nanos, target_of};
use crate::base_station::Station;
use crate::counts::per_second;
use crate::flow_state::{Endpoint, Place};
use crate::packet::{FlowId, Packet};
use crate::pcapng::{PacketEvent, PacketFate};
use crate::radio::Radio;
use crate::report::{GroupReport, LinkReport, LinkRow, SimReport};
use crate::satellite::Satellite;

impl Network {
    #[inline]
    pub(super) fn note_fate(&mut self, at: Instant, packet: &Packet, fate: PacketFate) {
        if self.observed {
            self.tell_observers(at, packet, fate);
        }
    }

    #[cold]
    fn tell_observers(&mut self, at: Instant, packet: &Packet, fate: PacketFate) {
        let place = packet.flow;
        let flow = self.flows.get(place as usize).and_then(|flow| flow.number(place)).unwrap_or(place);
        let event = PacketEvent { at, packet: Packet { flow, ..*packet }, fate };
        if let Some(pcap) = &mut self.pcap {
            pcap.write(&event);
        }
        if let Some(observer) = &mut self.observer {
            observer.on_packet(&event);
        }
    }

    pub(super) fn note_e2ed(&mut self, i: usize, e2ed: Duration, born: Instant) {
        let flow = &mut self.flows[i];
        let group = &mut self.groups[flow.group as usize];
        if group.shared {
            flow.e2ed.record_among(nanos(e2ed), &mut group.e2ed);
        } else {
            flow.e2ed.record(e2ed);
        }
        if self.opening.is_some_and(|opening| born.since(flow.started) < opening) {
            group.opening.record(e2ed);
        }
    }

    /// Takes what a satellite or a wireless link has logged.
    #[cold]
    pub(super) fn collect_log(&mut self, medium: u32) {
        let Carrier::Other(other) = &mut self.media[medium as usize].carrier else { return };
        match &mut **other {
            Medium::Dama(dama) => {
                if let Some(satellite) = self.satellites.iter_mut().find(|s| s.medium == medium) {
                    satellite.collect_events(dama);
                }
            }
            Medium::Arq(arq) => {
                if let Some(radio) = self.radios.iter_mut().find(|r| r.medium == medium) {
                    radio.collect_slots(arq);
                }
            }
            Medium::Link(_) | Medium::Custom(_) => {}
        }
    }

    fn each_satellite(&mut self, mut what: impl FnMut(&mut Satellite, &mut Dama<Packet>)) {
        for satellite in &mut self.satellites {
            if let Some(Medium::Dama(dama)) = self.media[satellite.medium as usize].carrier.other() {
                what(satellite, dama);
            }
        }
    }

    fn each_radio(&mut self, mut what: impl FnMut(&mut Radio, &mut Arq<Packet>)) {
        for radio in &mut self.radios {
            if let Some(Medium::Arq(arq)) = self.media[radio.medium as usize].carrier.other() {
                what(radio, arq);
            }
        }
    }

    /// Every base station hears of something, with its downlink at hand.
    pub(super) fn each_base_station(&mut self, mut what: impl FnMut(&mut Station, &mut Arq<Packet>)) {
        for station in &mut self.base_stations {
            if let Some(Medium::Arq(arq)) = self.media[station.downlink as usize].carrier.other() {
                what(station, arq);
            }
        }
    }

    pub(super) fn end_warmup(&mut self, at: Instant) {
        self.settle_shared(at);
        self.set_early_until();
        let inside = self.known_inside(None);
        for (((i, slot), entrance), notes) in (0..).zip(&mut self.media).zip(&mut self.entrances).zip(&mut self.notes) {
            if slot.carrier.is_link() {
                slot.settle(at, at);
                slot.restore(entrance, i, &inside);
            }
            if let Carrier::Link(link) = &mut slot.carrier {
                link.restart_maximum();
                entrance.lane = Lane::default();
                notes.at_warmup = Some(Box::new(link.counters()));
            }
        }
        self.each_satellite(|satellite, dama| satellite.end_warmup(dama, at));
        self.each_radio(|radio, arq| radio.end_warmup(arq, at));
        for flow in &mut self.flows {
            flow.end_warmup(at);
        }
        if let Some(comers) = &mut self.comers {
            comers.ended.iter_mut().for_each(|flow| flow.end_warmup(at));
        }
        for group in &mut self.groups {
            for delays in [&mut group.owd, &mut group.e2ed, &mut group.opening] {
                delays.clear();
            }
        }
    }

    pub(super) fn note_plans(&mut self, at: Instant) {
        self.each_satellite(|satellite, dama| satellite.note_plans(dama, at));
    }

    pub(super) fn sample(&mut self, at: Instant) {
        self.settle_shared(at);
        let Some(sampling) = &mut self.sampling else { return };
        let interval = at.since(sampling.last);
        sampling.last = at;
        for (medium, before) in &mut sampling.links {
            let Carrier::Link(link) = &self.media[*medium as usize].carrier else { continue };
            let since = link.counters().since(before);
            *before = link.counters();
            self.link_series.push(LinkRow {
                at,
                link: self.notes[*medium as usize].first_port,
                queue_packets: link.queue_len() as u64,
                queue_bytes: link.queue_bytes(),
                throughput: per_second(since.transmitted.bytes, interval),
                capacity: link.capacity_at(at),
                drops: since.total().dropped_in_all().packets.get(),
            });
        }
        let next = at + sampling.interval;
        self.each_satellite(|satellite, dama| satellite.sample(dama, at, interval));
        self.each_radio(|radio, arq| radio.sample(arq, at, interval));
        // A flow that is over has one last row, for what came since the row before.
        if self.many {
            let begin = self.series.len();
            for place in &self.sampled {
                let flow = &mut self.flows[*place as usize];
                if let Some(number) = flow.number(*place) {
                    self.series.push(flow.sample(at, number, interval));
                }
            }
            self.series[begin..].sort_unstable_by_key(|row| row.flow);
            let is_over = |place: &FlowId| matches!(self.flows[*place as usize].endpoint, Endpoint::Over(_));
            let over: Vec<FlowId> = self.sampled.extract_if(.., |place| is_over(place)).collect();
            over.into_iter().for_each(|place| self.let_go(place));
        } else {
            for (i, flow) in (0..).zip(&mut self.flows).filter(|(_, flow)| !flow.rows_ended) {
                self.series.push(flow.sample(at, i, interval));
                flow.rows_ended = flow.is_over();
            }
        }
        self.events.push(next, target_of(SAMPLE, 0));
    }

    fn group_reports(&self) -> Vec<GroupReport> {
        let of = |group: &Group| GroupReport {
            name: group.name.clone(),
            flows: group.flows,
            owd: group.owd.clone(),
            e2ed: group.e2ed.clone(),
            opening: group.opening.clone(),
        };
        let mut reports: Vec<_> = self.groups.iter().map(of).collect();
        for flow in &self.flows {
            let (group, report) = (&self.groups[flow.group as usize], &mut reports[flow.group as usize]);
            if flow.number(0).is_none() {
                continue;
            }
            if group.flows == 1 && !group.shared {
                (report.owd, report.e2ed) = (flow.owd.clone(), flow.e2ed.clone());
            } else {
                report.owd.add(&flow.owd);
                report.e2ed.add(&flow.e2ed);
            }
        }
        reports
    }

    /// Brings all media up to now, and counts what they dropped: the links first, as their ports are numbered.
    fn settle_media(&mut self) {
        for links in [true, false] {
            for i in 0..self.media.len() {
                if self.media[i].carrier.is_link() == links {
                    self.media[i].settle(self.now, just_after(self.now));
                    self.collect_drops(i as u32);
                }
            }
        }
    }

    pub(super) fn make_report(&mut self, last: bool) -> SimReport {
        self.settle_media();
        let (warmup, end) = (self.warmup, self.now);
        let window = end.since(warmup);
        let mut report = SimReport { engine: self.stats, ..SimReport::default() };
        report.engine.events = self.events.handled();
        self.each_satellite(|satellite, dama| {
            report.engine.packet_hops += satellite.transmitted(dama);
            report.satellites.push(satellite.report(dama, warmup, end));
        });
        let mut windows: Vec<_> = self.base_stations.iter().map(|s| (s.downlink, s.windows().to_vec())).collect();
        self.each_radio(|radio, arq| {
            report.engine.packet_hops += radio.transmitted(arq);
            let given = windows.iter_mut().find(|(downlink, _)| *downlink == radio.medium);
            report.radios.push(radio.report(arq, given.map(|(_, w)| std::mem::take(w)).unwrap_or_default()));
        });
        report.engine.link_events = report.engine.events - self.stats.timer_events;
        report.engine.max_pending = self.events.max_len() as u64;
        report.groups = self.group_reports();
        // The last report takes the network apart piece by piece, so that both are never in memory as a whole.
        report.links.reserve_exact(self.links as usize);
        let inside = self.known_inside(None);
        if last {
            self.store = Store::default();
            let media = std::mem::take(&mut self.media).into_iter().zip(&mut self.entrances);
            for ((i, (mut slot, entrance)), notes) in (0..).zip(media).zip(&self.notes) {
                slot.restore(entrance, i, &inside);
                report.links.extend(link_report(&slot, notes, warmup, end));
            }
        } else {
            let media = self.media.iter_mut().zip(&mut self.entrances);
            for ((i, (slot, entrance)), notes) in (0..).zip(media).zip(&self.notes) {
                slot.restore(entrance, i, &inside);
                report.links.extend(link_report(slot, notes, warmup, end));
            }
        }
        report.engine.packet_hops += report.links.iter().map(|link| link.whole.transmitted.packets.get()).sum::<u64>();
        report.flows.reserve_exact(self.flows.len());
        let mut comers = Vec::new();
        for (place, flow) in (0..).zip(&mut self.flows) {
            let Some(number) = flow.number(place) else { continue };
            let came = matches!(flow.place, Place::Comer { .. });
            if came && matches!(flow.endpoint, Endpoint::Planned(_)) {
                continue;
            }
            let flow_report = flow.report(end, window, &self.groups[flow.group as usize].name, last);
            if came {
                comers.push((number, flow_report));
            } else {
                report.flows.push(flow_report);
            }
            if self.trace {
                report.events.extend(flow.drain_events().into_iter().map(|event| (number, event)));
            }
            if last {
                flow.endpoint = Endpoint::External;
            }
        }
        if let Some(state) = &mut self.comers {
            let ended = if last { std::mem::take(&mut state.ended) } else { state.ended.clone() };
            comers.extend(ended.into_iter().map(|flow| flow.report(end, window)));
            comers.sort_unstable_by_key(|(number, _)| *number);
            report.flows.extend(comers.into_iter().map(|(_, flow)| flow));
            report.events.append(&mut self.flow_events);
            report.events.sort_by_key(|(number, _)| *number);
        }
        if last {
            report.series = std::mem::take(&mut self.series);
            report.link_series = std::mem::take(&mut self.link_series);
            // Writing to memory cannot fail.
            report.pcapng = self.pcap.take().and_then(|pcap| pcap.finish().ok());
        } else {
            report.series.clone_from(&self.series);
            report.link_series.clone_from(&self.link_series);
        }
        report
    }
}

/// The report of a medium that is a link.
fn link_report(slot: &Slot, notes: &Notes, warmup: Instant, end: Instant) -> Option<LinkReport> {
    let Carrier::Link(link) = &slot.carrier else { return None };
    let whole = link.counters();
    let window = notes.at_warmup.as_deref().map(|before| Box::new(whole.since(before)));
    let measured = window.as_deref().unwrap_or(&whole);
    let carried = measured.transmitted.bytes.as_f64() * 8.0;
    let could = link.capacity_between(warmup, end).filter(|bits| *bits > 0.0);
    Some(LinkReport {
        name: notes.name.to_string(),
        whole,
        window,
        utilization: could.map(|bits| carried / bits),
        inside: link.inside() as u64,
        quick_start: link.quick_start().copied().map(Box::new),
    })
}
