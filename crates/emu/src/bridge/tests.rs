use super::*;
use crate::ip::tests::v4;
use crate::segment::tests::super_packet;
use fairpace_path::{Capacity, DelayModel, LinkSpec, QueueModel, RateModel, RedParams, Thresholds};
use fairpace_rtp::quick_start::ipv4_checksum_holds;
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{FlowConfig, HopConfig};
use fairpace_units::Rate;
use std::collections::VecDeque;

/// A device of which the test is the other end.
#[derive(Default)]
pub(super) struct Fake {
    to_read: VecDeque<Vec<u8>>,
    written: Vec<Vec<u8>>,
    /// The errors that answer the next writes.
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

pub(super) fn bridge(link: LinkSpec, offload: bool, memory: u64) -> Bridge<Fake> {
    bridge_with(link, offload, memory, None)
}

/// As [`bridge`], with a flow for packets of unknown addresses.
pub(super) fn bridge_with(link: LinkSpec, offload: bool, memory: u64, stray: Option<FlowId>) -> Bridge<Fake> {
    let simulated = FlowConfig {
        start: Instant::from_secs_f64(1e6),
        ..FlowConfig::new("tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))
    };
    let flows = vec![FlowConfig::new("a", Protocol::External), simulated];
    let config = SimConfig { hops: vec![HopConfig::path(link, LinkSpec::default())], flows, ..SimConfig::default() };
    let options = BridgeOptions { offload, stray, memory: Bytes::new(memory) };
    let ports = [Fake::default(), Fake::default()];
    let network = Network::new(&config).unwrap();
    Bridge::new(ports, &config, network, AddressPlan::new(0, 2), Capture::default(), &options)
}

pub(super) fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// From sender 0 to receiver 0, or back.
pub(super) fn packet(side: Side, tos: u8, length: usize) -> Vec<u8> {
    let (a, b) = ([10, 77, 0, 1], [10, 77, 128, 1]);
    let (from, to) = if side == Side::Senders { (a, b) } else { (b, a) };
    v4(tos, 17, from, to, &vec![5; length - 20])
}

impl Bridge<Fake> {
    fn fake(&mut self, side: Side) -> &mut Fake {
        self.ports[side as usize].as_mut().unwrap()
    }

    pub(super) fn come(&mut self, side: Side, packets: &[Vec<u8>], now: Instant) {
        self.fake(side).to_read.extend(packets.to_vec());
        self.read(side, 1_000, || now);
    }

    pub(super) fn written(&mut self, side: Side, now: Instant) -> Vec<Vec<u8>> {
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
    let link = LinkSpec { rate: RateModel::Fixed(Rate::mbps(8.0)), queue: QueueModel::Red(red), ..LinkSpec::default() };
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
    b.fake(Side::Receivers).refuse = [Errno::ENOBUFS, Errno::EAGAIN, Errno::EAGAIN, Errno::EIO, Errno::EINVAL].into();
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
    report.judge(&crate::Limits::default(), Bytes::ZERO);
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
