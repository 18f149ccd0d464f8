//! Whatever a device hands out, under fuzzing: packets of both families with segmentation headers, or anything else.

use super::tests::{at, bridge, bridge_with, packet};
use super::*;
use crate::ip::set_ecn;
use crate::segment::tests::super_packet;
use fairpace_fuzz::{Script, Target, put_piece};
use fairpace_path::{DelayModel, LinkSpec};
use fairpace_rtp::quick_start::{ipv4_option, ipv6_hop_by_hop};
use fairpace_units::{QsFunction, QsNonce, QsRate};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const MEMORY: u64 = 200_000;

fn request() -> QsOption {
    let (function, rate, nonce) =
        (QsFunction::Request, QsRate::at_most(fairpace_units::Rate::kbps(320.0)), QsNonce::new(7));
    QsOption { function, rate, qs_ttl: 90, ip_ttl: 64, nonce }
}

/// Packets of either family, as the kernel hands them out: a segmentation header before each.
fn packets() -> Vec<Vec<u8>> {
    let with_header = |packet: Vec<u8>| [&[0; VNET][..], &packet].concat();
    let mut asks = packet(Side::Senders, 0, 60);
    asks[0] = 0x47;
    asks.splice(20..20, ipv4_option(&request()));
    let mut six = vec![0x60, 0, 0, 0, 0, 24, 0, 64];
    six.extend([0xfd; 32]);
    six.extend(ipv6_hop_by_hop(17, &request()));
    six.extend([0; 8]);
    let mut marked = packet(Side::Senders, 2, 100);
    set_ecn(&mut marked, Ecn::Ce);
    let (vnet, whole) = super_packet(1_200, 300);
    let mut udp = packet(Side::Senders, 0, 500);
    udp[24..26].copy_from_slice(&480_u16.to_be_bytes());
    let of_udp = [&[1, 5, 28, 0, 100, 0, 20, 0, 6, 0][..], &udp].concat();
    vec![with_header(asks), with_header(six), with_header(marked), [vnet, whole].concat(), of_udp]
}

/// Scripts with a side, a time and a packet for each step, in some orders.
fn scripts() -> Vec<Vec<u8>> {
    let packets = packets();
    let mut all = vec![Vec::new(); packets.len() + 1];
    for (n, packet) in packets.iter().enumerate() {
        for (k, script) in all.iter_mut().enumerate() {
            if k == n || k == packets.len() {
                script.extend([0x80 | (n & 1) as u8, 1]);
                put_piece(packet, script);
            }
        }
    }
    all
}

#[test]
fn any_packets_of_a_device_pass_or_are_counted_and_memory_is_bounded() {
    let target = Target::new("bridge", HERE).seeds(scripts()).memory(4 << 20).cases(4_000);
    target.run(|bytes| {
        let delay = DelayModel::constant(Duration::from_micros(500));
        let link = LinkSpec { delay, ..LinkSpec::default() };
        let mut script = Script::new(bytes);
        let mut bridge = bridge_with(link, true, MEMORY, Some(0));
        let mut now = 0;
        while !script.is_over() {
            let side = if script.byte() & 1 == 0 { Side::Senders } else { Side::Receivers };
            now += u64::from(script.byte()) * 100;
            let piece = script.piece();
            bridge.come(side, &[piece.to_vec()], at(now));
            for side in [Side::Senders, Side::Receivers] {
                for packet in bridge.written(side, at(now)) {
                    assert!(packet.len() <= VNET + 65_535, "{} B", packet.len());
                }
            }
        }
        for side in [Side::Senders, Side::Receivers] {
            bridge.written(side, at(now + 1_000_000));
        }
        let ended = bridge.finish();
        assert!(ended.peak_memory <= Bytes::new(MEMORY));
        assert_eq!(ended.under_way, 0, "after a second everything has come out");
    });
}

#[test]
fn without_segmentation_headers_a_packet_comes_out_as_it_went_in_but_for_marks() {
    let plain = packets().into_iter().map(|packet| packet[VNET..].to_vec());
    Target::new("plain", HERE).seeds(plain).memory(4 << 20).cases(8_000).run(|bytes| {
        let mut bridge = bridge(LinkSpec::default(), false, MEMORY);
        bridge.come(Side::Senders, &[bytes.to_vec()], at(1));
        let out = bridge.written(Side::Receivers, at(2));
        assert!(out.len() <= 1);
        if let Some(out) = out.first() {
            assert_eq!(out.len(), bytes.len());
        }
    });
}
