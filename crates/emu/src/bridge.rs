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

use crate::address::AddressPlan;
use crate::capture::Capture;
use crate::device::Port;
use crate::ip::{Header, set_ecn};
use crate::report::SideReport;
use crate::segment::{Cutter, Framing, VNET, Vnet, join};
use crate::store::Store;
use crate::{Side, TestbedOptions};
use fairpace_net::{Lateness, LatenessSummary};
use fairpace_rtp::quick_start;
use fairpace_sim::{Carries, Delivered, Direction, Entering, FlowId, Network, PacketFate, Protocol, SimConfig};
use fairpace_units::{Bytes, Duration, Ecn, Instant, Packets, QsOption};
use nix::errno::Errno;
use std::io::IoSlice;

/// What is remembered of a packet under way.
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
    lateness: Lateness,
    /// Since when a device may have had something to read, not counting sleep.
    busy_since: [Instant; 2],
    unread: Lateness,
    sides: [SideReport; 2],
    drops_before: [u64; 2],
}

/// What a look at a device found.
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
        options: &TestbedOptions,
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
            lateness: Lateness::new(),
            busy_since: [Instant::ZERO; 2],
            unread: Lateness::new(),
            sides: [SideReport::default(); 2],
            drops_before,
        }
    }

    /// The device of that side; `None` if it is gone.
    pub(crate) fn port(&self, side: Side) -> Option<&P> {
        self.ports[side as usize].as_ref()
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

    /// What has come to a device goes into the path, but no more than about `budget` segments: how many that were.
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
        let since = &mut self.busy_since[side as usize];
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
        let Some(port) = &mut self.ports[side as usize] else { return Read::Empty };
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
        let counts = &mut sides[side as usize];
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
        // What does not parse has no option that a router would find.
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
        Read::Packet((self.sides[side as usize].read.packets.get() - before) as usize)
    }

    /// What has come out of the path is written, but no more than about `budget` segments: true if that was all.
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
            // It was read when the packet came; so it can be written.
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
        let counts = &mut self.sides[side as usize];
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
        let Some(port) = &mut ports[side as usize] else { return (Err(Errno::EBADFD), 0) };
        if others.is_empty() {
            let vnet = meta.framing.vnet.bytes();
            let parts = [IoSlice::new(&vnet), IoSlice::new(bytes)];
            return (twice(port, if *offload { &parts } else { &parts[1..] }), bytes.len());
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
        (twice(port, &parts[..n]), length + joined.len() * cut)
    }

    fn lose(&mut self, side: Side) {
        self.look_at_kernel_drops();
        self.ports[side as usize] = None;
        self.sides[side as usize].gone = true;
    }

    fn look_at_kernel_drops(&mut self) {
        for ((port, counts), before) in self.ports.iter_mut().zip(&mut self.sides).zip(self.drops_before) {
            if let Some(port) = port {
                counts.kernel_drops = port.kernel_drops().saturating_sub(before);
            }
        }
    }

    /// What there is to tell in the end.
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

/// What is left of a bridge.
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
mod tests {
    use super::*;
    use crate::ip::tests::v4;
    use crate::segment::tests::super_packet;
    use crate::{Limits, NetNs};
    use fairpace_path::{Capacity, DelayModel, LinkSpec, QueueModel, RateModel, RedParams, Thresholds};
    use fairpace_rtp::quick_start::ipv4_checksum_holds;
    use fairpace_sim::tcp::{TcpParams, TcpSource};
    use fairpace_sim::{FlowConfig, HopConfig};
    use fairpace_units::Rate;
    use std::collections::VecDeque;

    /// A device of which the test is the other end.
    #[derive(Default)]
    struct Fake {
        to_read: VecDeque<Vec<u8>>,
        written: Vec<Vec<u8>>,
        /// What the next writes are answered with.
        refuse: VecDeque<Errno>,
        gone: bool,
    }

    impl Port for Fake {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
            if self.gone {
                return Err(Errno::EBADFD);
            }
            let packet = self.to_read.pop_front().ok_or(Errno::EAGAIN)?;
            buffer[..packet.len()].copy_from_slice(&packet);
            Ok(packet.len())
        }

        fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<(), Errno> {
            match self.refuse.pop_front() {
                Some(errno) => Err(errno),
                None => {
                    self.written.push(parts.iter().flat_map(|p| p.to_vec()).collect());
                    Ok(())
                }
            }
        }

        fn kernel_drops(&mut self) -> u64 {
            0
        }
    }

    fn bridge(link: LinkSpec, offload: bool, memory: u64) -> Bridge<Fake> {
        let simulated = FlowConfig {
            start: Instant::from_secs_f64(1e6),
            ..FlowConfig::new("tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))
        };
        let flows = vec![FlowConfig::new("a", Protocol::External), simulated];
        let config =
            SimConfig { hops: vec![HopConfig::path(link, LinkSpec::default())], flows, ..SimConfig::default() };
        let here = || NetNs::current("here").unwrap();
        let options = TestbedOptions { offload, memory: Bytes::new(memory), ..TestbedOptions::new(here(), here()) };
        let ports = [Fake::default(), Fake::default()];
        let network = Network::new(&config).unwrap();
        Bridge::new(ports, &config, network, AddressPlan::new(0, 2), Capture::default(), &options)
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// From sender 0 to receiver 0, or back.
    fn packet(side: Side, tos: u8, length: usize) -> Vec<u8> {
        let (a, b) = ([10, 77, 0, 1], [10, 77, 128, 1]);
        let (from, to) = if side == Side::Senders { (a, b) } else { (b, a) };
        v4(tos, 17, from, to, &vec![5; length - 20])
    }

    impl Bridge<Fake> {
        fn fake(&mut self, side: Side) -> &mut Fake {
            self.ports[side as usize].as_mut().unwrap()
        }

        fn come(&mut self, side: Side, packets: &[Vec<u8>], now: Instant) {
            self.fake(side).to_read.extend(packets.to_vec());
            self.read(side, 1_000, || now);
        }

        fn written(&mut self, side: Side, now: Instant) -> Vec<Vec<u8>> {
            assert!(self.release(1_000, || now));
            std::mem::take(&mut self.fake(side).written)
        }
    }

    #[test]
    fn a_packet_is_written_when_it_is_due_and_not_before() {
        let delay = DelayModel::constant(Duration::from_micros(500));
        let mut b = bridge(LinkSpec { delay, ..LinkSpec::default() }, false, 10_000);
        let there = packet(Side::Senders, 0, 100);
        b.come(Side::Senders, std::slice::from_ref(&there), at(1_000));
        b.come(Side::Receivers, &[packet(Side::Receivers, 0, 60)], at(1_000));
        assert_eq!(b.next(), at(1_000), "the way back has no delay");
        assert_eq!(b.written(Side::Receivers, at(1_499)), Vec::<Vec<u8>>::new());
        assert_eq!(b.next(), at(1_500));
        assert_eq!(b.written(Side::Receivers, at(1_520)), [there]);
        let ended = b.finish();
        // 499 us on the way back, since nobody looked, and 20 us there.
        assert_eq!((ended.lateness.count, ended.under_way), (2, 0));
        assert!(ended.lateness.max >= Duration::from_micros(499) && ended.lateness.p50 <= Duration::from_micros(21));
    }

    #[test]
    fn what_is_no_flows_is_counted_and_goes_nowhere() {
        let mut b = bridge(LinkSpec::default(), false, 10_000);
        let unknown = v4(0, 17, [10, 77, 0, 1], [10, 77, 128, 2], b"");
        let simulated = v4(0, 17, [10, 77, 0, 2], [10, 77, 128, 2], b"");
        let group = v4(0, 2, [10, 77, 0, 1], [224, 0, 0, 22], b"");
        let packets = [
            unknown.clone(),
            simulated,
            group,
            vec![0x45; 19],
            packet(Side::Receivers, 0, 40),
            packet(Side::Senders, 0, 40),
        ];
        b.come(Side::Senders, &packets, at(1));
        assert_eq!(b.written(Side::Receivers, at(2)).len(), 1);
        let SideReport { unknown: strangers, multicast, malformed, read, .. } = b.sides[0];
        assert_eq!((strangers, multicast, malformed, read.packets.get()), (3, 1, 1, 1));
        // Unless somebody takes them in.
        b.stray = Some(0);
        b.come(Side::Senders, &[unknown], at(3));
        assert_eq!(b.written(Side::Receivers, at(3)).len(), 1);
    }

    #[test]
    fn a_mark_of_the_path_is_in_the_bytes() {
        let capacity = Capacity::Packets(Packets::new(100));
        // The average follows at once; marked by chance from one packet on.
        let thresholds = Thresholds::Packets { min: Packets::new(1), max: Packets::new(50) };
        let red = RedParams {
            thresholds,
            weight: 1.0,
            max_probability: 1.0,
            ecn: true,
            ..RedParams::for_capacity(capacity, Bytes::new(1_000))
        };
        let link =
            LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue: QueueModel::Red(red), ..LinkSpec::default() };
        let mut b = bridge(link, false, 100_000);
        let sent: Vec<_> = (0..20).map(|_| packet(Side::Senders, 0x02 | 0x20, 1_000)).collect();
        b.come(Side::Senders, &sent, at(0));
        let out = b.written(Side::Receivers, at(100_000));
        let marked = out.iter().filter(|p| p[1] == 0x23).count();
        assert!(marked > 0 && out.iter().all(|p| p[1] & 0xfc == 0x20 && ipv4_checksum_holds(p)), "{marked}");
        assert!(out.iter().all(|p| p[12..] == sent[0][12..]));
    }

    #[test]
    fn segments_are_queued_one_by_one_and_joined_if_they_leave_together() {
        let (vnet, packet) = super_packet(10_000, 1_000);
        let whole = [vnet, packet].concat();
        // Without a rate the ten leave at the same instant.
        let mut b = bridge(LinkSpec::default(), true, 100_000);
        b.come(Side::Senders, std::slice::from_ref(&whole), at(0));
        let out = b.written(Side::Receivers, at(0));
        assert_eq!(out.len(), 1);
        assert_eq!(
            (out[0][..36 + VNET].to_vec(), &out[0][38 + VNET..]),
            (whole[..36 + VNET].to_vec(), &whole[38 + VNET..])
        );
        let ended = b.finish();
        assert_eq!((ended.sides[1].written.packets.get(), ended.sides[1].written_joined), (10, 1));
        assert_eq!(ended.sides[1].written.bytes, Bytes::new(10 * 1_052));
        // With one each takes 1,052 us, and the queue has room for four besides the one in transmission.
        let capacity = Capacity::Packets(Packets::new(5));
        let rate = RateModel::Fixed(Rate::mbps(8.0));
        let mut b =
            bridge(LinkSpec { rate, queue: QueueModel::DropTail { capacity }, ..LinkSpec::default() }, true, 100_000);
        b.come(Side::Senders, std::slice::from_ref(&whole), at(0));
        assert_eq!(b.written(Side::Receivers, at(1_051)).len(), 0);
        let out = b.written(Side::Receivers, at(1_052));
        assert_eq!((out.len(), out[0].len()), (1, VNET + 1_052));
        assert_eq!(b.written(Side::Receivers, at(100_000)).len(), 4);
        let mut network = b.finish().network;
        assert_eq!(network.report().flows[0].whole.dropped_in_all().packets.get(), 5);
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_said() {
        let delay = DelayModel::constant(Duration::from_secs(1));
        let mut b = bridge(LinkSpec { delay, ..LinkSpec::default() }, false, 2_500);
        let sent: Vec<_> = (0..4).map(|_| packet(Side::Senders, 0, 1_000)).collect();
        b.come(Side::Senders, &sent, at(0));
        let ended = b.finish();
        assert_eq!((ended.sides[0].no_room, ended.under_way, ended.peak_memory), (2, 2, Bytes::new(2_000)));
    }

    #[test]
    fn every_way_in_which_a_write_can_fail_has_its_count() {
        let mut b = bridge(LinkSpec::default(), false, 10_000);
        let sent: Vec<_> = (0..6).map(|_| packet(Side::Senders, 0, 100)).collect();
        b.come(Side::Senders, &sent, at(0));
        b.fake(Side::Receivers).refuse =
            [Errno::ENOBUFS, Errno::EAGAIN, Errno::EAGAIN, Errno::EIO, Errno::EINVAL].into();
        let out = b.written(Side::Receivers, at(0));
        let SideReport { refused, down, not_written, .. } = b.sides[1];
        // ENOBUFS, EAGAIN: the first packet is refused. EAGAIN, EIO: the second met a device that was down.
        assert_eq!((out.len(), refused, down, not_written), (3, 1, 1, 1));
        // A device that is taken away: what is for it is counted, the other side goes on.
        b.fake(Side::Receivers).gone = true;
        assert_eq!(b.read(Side::Receivers, 10, || at(1)), 0);
        b.come(Side::Senders, &sent, at(1));
        assert!(b.release(1_000, || at(1)));
        let mut report = crate::EmuReport {
            elapsed: Duration::ZERO,
            lateness: b.lateness.summary(),
            unread: b.unread.summary(),
            cpu: 0.0,
            real_time: false,
            sides: b.finish().sides,
            under_way: 0,
            peak_memory: Bytes::ZERO,
            device_queue: 1,
            offload: false,
            invalid: Vec::new(),
        };
        assert_eq!((report.sides[1].gone, report.sides[1].not_written), (true, 7));
        report.judge(&Limits::default(), Bytes::ZERO);
        assert_eq!(
            report.invalid,
            ["the kernel had no memory for 1 packets to the receivers", "the device of the receivers was taken away"]
        );
    }

    #[test]
    fn a_long_backlog_is_written_with_looks_at_the_devices_in_between() {
        let mut b = bridge(LinkSpec::default(), false, 100_000);
        let sent: Vec<_> = (0..100).map(|_| packet(Side::Senders, 0, 100)).collect();
        b.come(Side::Senders, &sent, at(0));
        assert!(!b.release(30, || at(0)));
        assert_eq!(b.fake(Side::Receivers).written.len(), 30);
        while !b.release(30, || at(0)) {}
        assert_eq!(b.fake(Side::Receivers).written.len(), 100);
    }
}
