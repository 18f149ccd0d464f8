//! The loop's work: packets of two devices go into the simulator's network at the instant they are read, and
//! what comes out is written at its instant or after, never before.
//!
//! ```text
//!   device of side s ──read──▶ [flow of the addresses] ──inject──▶ Network ──delivered──▶ device of the far side
//!                                bytes ──▶ Store ───────────────────────────────▶ bytes
//! ```
//!
//! On its way a packet changes as in a router: ECN where the path marks it, TTL and option where it carries a
//! Quick-Start request. Everything else, and what is above IP, is none of the path's business.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use crate::Side;
use crate::address::AddressPlan;
use crate::capture::Capture;
use crate::device::Port;
use crate::ip::{Header, set_ecn};
use crate::report::SideReport;
use crate::segment::{Cutter, Framing, VNET, Vnet, join};
use crate::store::Store;
use fairpace_net::{LatenessHistogram, LatenessSummary};
use fairpace_rtp::quick_start;
use fairpace_sim::{Carries, Delivered, Direction, Entering, FlowId, Network, PacketFate, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Ecn, Instant, Packets, QsOption};
use nix::errno::Errno;
use std::io::IoSlice;

/// The memory of a packet under way.
#[derive(Clone, Copy, Debug)]
struct Meta {
    framing: Framing,
    ecn: Ecn,
    quick_start: Option<QsOption>,
}

/// Most segments of one super-packet: those of 64 KiB, if each has 512 B; more are written as several.
const MAX_JOINED: usize = 128;
/// Segments of one super-packet that leave within this of the one before, and are due, are written together: less
/// than what it takes to write them one by one. At 1,500 B that is a link of 6 Gbit/s and more.
const TOGETHER: Duration = Duration::from_micros(2);

/// The devices of both sides, the path between them, and what is under way.
pub(crate) struct Bridge<P> {
    /// `None`: the device is gone.
    ports: [Option<P>; 2],
    /// There is a header before each packet.
    offload: bool,
    plan: AddressPlan,
    /// Of each flow: whether its packets come from here, or from the simulator.
    external: Vec<bool>,
    /// The flow that takes the packets of all addresses that belong to no flow; `None` drops them.
    stray: Option<FlowId>,
    network: Network,
    store: Store<Meta>,
    cutter: Cutter,
    capture: Capture,
    buffer: Vec<u8>,
    header: Vec<u8>,
    /// Segments of one super-packet that leave together: their tokens.
    joined: Vec<u64>,
    /// The last of them.
    last: Option<Delivered>,
    lateness: LatenessHistogram,
    /// Since when a device may have had something to read, not counting sleep.
    busy_since: [Instant; 2],
    unread: LatenessHistogram,
    sides: [SideReport; 2],
    drops_before: [u64; 2],
}

/// How a bridge treats packets.
pub(crate) struct BridgeOptions {
    /// The devices hand out and take several segments at a time.
    pub(crate) offload: bool,
    /// The flow of packets between addresses that are no flow's; `None`: they are dropped.
    pub(crate) stray: Option<FlowId>,
    /// Bytes of packets under way at most.
    pub(crate) memory: Bytes,
}

/// The result of a look at a device.
enum Read {
    /// A packet, of so many segments.
    Packet(usize),
    /// Nothing.
    Empty,
}

impl<P: Port> Bridge<P> {
    pub(crate) fn new(
        mut ports: [P; 2],
        config: &SimConfig,
        network: Network,
        plan: AddressPlan,
        capture: Capture,
        options: &BridgeOptions,
    ) -> Bridge<P> {
        let drops_before = ports.each_mut().map(Port::kernel_drops);
        Bridge {
            ports: ports.map(Some),
            offload: options.offload,
            plan,
            external: config.flows.iter().map(|f| matches!(f.protocol, Protocol::External)).collect(),
            stray: options.stray,
            network,
            store: Store::new(usize::try_from(options.memory.get()).unwrap_or(usize::MAX)),
            cutter: Cutter::default(),
            capture,
            buffer: vec![0; VNET + 65_536],
            header: Vec::new(),
            joined: Vec::new(),
            last: None,
            lateness: LatenessHistogram::new(),
            busy_since: [Instant::ZERO; 2],
            unread: LatenessHistogram::new(),
            sides: [SideReport::default(); 2],
            drops_before,
        }
    }

    /// The device of that side; `None` if it is gone.
    pub(crate) fn port(&self, side: Side) -> Option<&P> {
        of_side(&self.ports, side).as_ref()
    }

    /// When something happens next in the path.
    pub(crate) fn next(&self) -> Instant {
        self.network.next()
    }

    /// The loop has waited for the devices that long: time in which what came was seen at once.
    pub(crate) fn slept(&mut self, time: Duration) {
        for since in &mut self.busy_since {
            *since += time;
        }
    }

    /// Moves packets from a device into the path, but no more than about `budget` segments; returns the number of
    /// segments.
    pub(crate) fn read(&mut self, side: Side, budget: usize, mut now: impl FnMut() -> Instant) -> usize {
        let (mut segments, mut first, mut last) = (0, None, None);
        let empty = loop {
            let look = self.read_one(side, || {
                let at = now();
                first.get_or_insert(at);
                last = Some(at);
                at
            });
            match look {
                Read::Packet(n) => segments += n,
                Read::Empty => break true,
            }
            if segments >= budget {
                break false;
            }
        };
        let since = of_side_mut(&mut self.busy_since, side);
        if let Some(first) = first {
            self.unread.record(first.since(*since));
        }
        if empty {
            // Nothing can have waited since before the last packet.
            *since = last.unwrap_or_else(now);
        }
        segments
    }

    /// The next packet that has come to a device goes into the path.
    fn read_one(&mut self, side: Side, now: impl FnOnce() -> Instant) -> Read {
        let Some(port) = of_side_mut(&mut self.ports, side) else { return Read::Empty };
        let length = match port.read(&mut self.buffer) {
            Ok(0) => return Read::Empty,
            Ok(length) => length,
            Err(Errno::EINTR) => return Read::Packet(0),
            Err(Errno::EBADFD | Errno::ENODEV | Errno::ENXIO) => {
                self.lose(side);
                return Read::Empty;
            }
            Err(_) => return Read::Empty,
        };
        let now = now();
        let Bridge { buffer, sides, plan, external, .. } = self;
        let counts = of_side_mut(sides, side);
        let bytes = buffer.get(..length).unwrap_or_default();
        let (vnet, packet) = match bytes.split_first_chunk::<VNET>() {
            Some((vnet, packet)) if self.offload => (Vnet::parse(vnet), packet),
            _ => (Vnet::default(), bytes),
        };
        let Some(header) = Header::parse(packet) else {
            counts.malformed += 1;
            return Read::Packet(1);
        };
        if header.is_multicast() {
            counts.multicast += 1;
            return Read::Packet(1);
        }
        let of_flow = plan.flow_of(side, header.source, header.destination);
        let of_flow = of_flow.filter(|flow| external.get(*flow as usize) == Some(&true));
        let Some(flow) = of_flow.or(self.stray) else {
            counts.unknown += 1;
            return Read::Packet(1);
        };
        // A packet that does not parse has no option that a router would find.
        let quick_start = if header.options { quick_start::parse(packet).ok().flatten() } else { None };
        let mut inject = Inject {
            network: &mut self.network,
            store: &mut self.store,
            capture: &mut self.capture,
            counts,
            now,
            flow,
            direction: direction_from(side),
            header,
            carries: header.carries(packet),
            quick_start,
        };
        if !vnet.is_super() {
            inject.put(packet, &[], Framing::single(&vnet));
            return Read::Packet(1);
        }
        let before = inject.counts.read.packets.get();
        let cut = self.cutter.cut(&vnet, packet, |header, payload, framing| inject.put(header, payload, framing));
        if cut.is_err() {
            counts.malformed += 1;
        } else {
            counts.read_joined += 1;
        }
        Read::Packet((of_side(&self.sides, side).read.packets.get() - before) as usize)
    }

    /// Writes the packets that have come out of the path, but no more than about `budget` segments; true if none is
    /// left.
    pub(crate) fn release(&mut self, budget: usize, mut now: impl FnMut() -> Instant) -> bool {
        let mut at = now();
        self.network.advance(at);
        let mut written = 0;
        while let Some(out) = self.network.take_delivered() {
            self.stamp(&out);
            if !self.last.is_some_and(|last| self.belongs(&last, &out)) && !self.joined.is_empty() {
                written += self.joined.len();
                self.write_joined();
                at = now();
            }
            self.lateness.record(at.since(out.at));
            self.joined.push(out.token);
            self.last = Some(out);
            if written >= budget {
                return false;
            }
        }
        self.write_joined();
        while let Some(lost) = self.network.take_dropped() {
            if let Some((bytes, _)) = self.store.get(lost.token) {
                self.capture.write(lost.at, PacketFate::Dropped { reason: lost.reason, link: lost.link }, &[bytes]);
            }
            self.store.remove(lost.token);
        }
        true
    }

    /// Writes into a packet's bytes what happened to it on the way.
    fn stamp(&mut self, out: &Delivered) {
        let Some((bytes, meta)) = self.store.get_mut(out.token) else { return };
        if meta.ecn != out.ecn {
            set_ecn(bytes, out.ecn);
            meta.ecn = out.ecn;
        }
        if let (Some(option), Some(_)) = (out.quick_start, meta.quick_start) {
            // The option was read when the packet came; so it can be written.
            let _ = quick_start::forward(bytes, |_, its| *its = option);
        }
        self.capture.write(out.at, PacketFate::Received, &[bytes]);
    }

    /// Whether a segment is written together with the one before it.
    fn belongs(&self, before: &Delivered, out: &Delivered) -> bool {
        let same = before.direction == out.direction && before.ecn == out.ecn;
        same && out.at.since(before.at) <= TOGETHER
            && self.joined.len() < MAX_JOINED
            && match (self.store.get(before.token), self.store.get(out.token)) {
                (Some((_, before)), Some((_, this))) => this.framing.follows(&before.framing),
                _ => false,
            }
    }

    /// Writes the segments that belong together, and forgets them.
    fn write_joined(&mut self) {
        let Some(last) = self.last.take() else { return };
        let side = match last.direction {
            Direction::Forward => Side::Receivers,
            Direction::Back => Side::Senders,
        };
        let (written, bytes) = self.write(side);
        let counts = of_side_mut(&mut self.sides, side);
        match written {
            Ok(()) => {
                counts.written.packets += Packets::new(self.joined.len() as u64);
                counts.written.bytes += Bytes::new(bytes as u64);
                counts.written_joined += u64::from(self.joined.len() > 1);
            }
            Err(Errno::EIO) => counts.down += self.joined.len() as u64,
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => counts.refused += self.joined.len() as u64,
            Err(_) => counts.not_written += self.joined.len() as u64,
        }
        if matches!(written, Err(Errno::EBADFD | Errno::ENODEV | Errno::ENXIO)) {
            self.lose(side);
        }
        for token in self.joined.drain(..) {
            self.store.remove(token);
        }
    }

    /// Writes them as one packet: what became of it, and its bytes counted as segments.
    fn write(&mut self, side: Side) -> (Result<(), Errno>, usize) {
        let Bridge { ports, store, joined, header, offload, .. } = self;
        let [first, others @ ..] = joined.as_slice() else { return (Ok(()), 0) };
        let Some((bytes, meta)) = store.get(*first) else { return (Ok(()), 0) };
        let Some(port) = of_side_mut(ports, side) else { return (Err(Errno::EBADFD), 0) };
        if others.is_empty() {
            let vnet = meta.framing.vnet.bytes();
            let (vnet, bytes) = (IoSlice::new(&vnet), IoSlice::new(bytes));
            return (if *offload { twice(port, &[vnet, bytes]) } else { twice(port, &[bytes]) }, bytes.len());
        }
        let cut = meta.framing.header();
        let Some((head, payload)) = bytes.split_at_checked(cut) else { return (Err(Errno::EINVAL), 0) };
        let mut parts = [IoSlice::new(&[]); MAX_JOINED + 2];
        let (mut length, mut n, mut last) = (payload.len(), 3, head);
        parts[2] = IoSlice::new(payload);
        for (part, token) in parts.iter_mut().skip(3).zip(others) {
            let Some((head, payload)) = store.get(*token).and_then(|(b, _)| b.split_at_checked(cut)) else { break };
            *part = IoSlice::new(payload);
            (length, n, last) = (length + payload.len(), n + 1, head);
        }
        header.clear();
        header.extend_from_slice(head);
        let Ok(vnet) = join(header, &meta.framing, last, length) else { return (Err(Errno::EINVAL), 0) };
        let vnet = vnet.bytes();
        (parts[0], parts[1]) = (IoSlice::new(&vnet), IoSlice::new(header));
        let Some(parts) = parts.get(..n) else { return (Err(Errno::EINVAL), 0) };
        (twice(port, parts), length + joined.len() * cut)
    }

    fn lose(&mut self, side: Side) {
        self.look_at_kernel_drops();
        *of_side_mut(&mut self.ports, side) = None;
        of_side_mut(&mut self.sides, side).gone = true;
    }

    fn look_at_kernel_drops(&mut self) {
        for ((port, counts), before) in self.ports.iter_mut().zip(&mut self.sides).zip(self.drops_before) {
            if let Some(port) = port {
                counts.kernel_drops = port.kernel_drops().saturating_sub(before);
            }
        }
    }

    /// Nothing has come for a while, and nothing was due.
    pub(crate) fn nothing_came(&mut self, now: Instant) {
        self.capture.nothing_came(now);
    }

    /// The record of the bridge at its end.
    pub(crate) fn finish(mut self) -> Ended {
        self.look_at_kernel_drops();
        Ended {
            under_way: self.store.len() as u64,
            peak_memory: Bytes::new(self.store.max_held() as u64),
            lateness: self.lateness.summary(),
            unread: self.unread.summary(),
            sides: self.sides,
            capture: self.capture.finish(),
            network: self.network,
        }
    }
}

/// The remains of a bridge.
pub(crate) struct Ended {
    pub(crate) network: Network,
    pub(crate) lateness: LatenessSummary,
    pub(crate) unread: LatenessSummary,
    pub(crate) sides: [SideReport; 2],
    pub(crate) under_way: u64,
    pub(crate) peak_memory: Bytes,
    pub(crate) capture: Result<Option<Vec<u8>>, std::io::Error>,
}

/// The kernel is out of memory for a moment now and then: a packet is worth a second try, and no more, since
/// others wait.
fn twice<P: Port>(port: &mut P, parts: &[IoSlice<'_>]) -> Result<(), Errno> {
    match port.write(parts) {
        Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::EINTR) => port.write(parts),
        done => done,
    }
}

/// Of two, the one of that side.
fn of_side<T>([senders, receivers]: &[T; 2], side: Side) -> &T {
    match side {
        Side::Senders => senders,
        Side::Receivers => receivers,
    }
}

fn of_side_mut<T>([senders, receivers]: &mut [T; 2], side: Side) -> &mut T {
    match side {
        Side::Senders => senders,
        Side::Receivers => receivers,
    }
}

fn direction_from(side: Side) -> Direction {
    match side {
        Side::Senders => Direction::Forward,
        Side::Receivers => Direction::Back,
    }
}

/// A packet that was read, about to enter the path.
struct Inject<'a> {
    network: &'a mut Network,
    store: &'a mut Store<Meta>,
    capture: &'a mut Capture,
    counts: &'a mut SideReport,
    now: Instant,
    flow: FlowId,
    direction: Direction,
    header: Header,
    carries: Carries,
    quick_start: Option<QsOption>,
}

impl Inject<'_> {
    fn put(&mut self, head: &[u8], payload: &[u8], framing: Framing) {
        let Header { ecn, dscp, .. } = self.header;
        let size = Bytes::new((head.len() + payload.len()) as u64);
        self.counts.read.packets += Packets::new(1);
        self.counts.read.bytes += size;
        let meta = Meta { framing, ecn, quick_start: self.quick_start };
        let Some(token) = self.store.put(&[head, payload], meta) else {
            self.counts.no_room += 1;
            return;
        };
        self.capture.write(self.now, PacketFate::Sent, &[head, payload]);
        let Inject { carries, now, flow, direction, quick_start, .. } = *self;
        let packet = Entering { flow, direction, size, class: dscp.class(), ecn, quick_start, carries, token };
        self.network.inject(now, packet);
    }
}

#[cfg(test)]
mod targets;
#[cfg(test)]
mod tests;
