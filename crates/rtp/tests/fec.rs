//! FlexFEC [RFC 8627] end to end: media packets lost, repair packets beside them, and what comes back.

use fairpace_rtp::fec::{Cover, Decoder, Encoder, Header, Kind, MAX_PACKET, PAYLOAD_TYPE, Plan, emit_packet_header};
use fairpace_rtp::packet::Packet;
use fairpace_units::{Probability, RandomStream};
use proptest::prelude::*;

const MEDIA: u32 = 0x1111_2222;
const REPAIR: u32 = 0x3333_4444;

fn plan(window: u16, overhead: f64) -> Plan {
    Plan { window, overhead: Probability::new(overhead).unwrap() }
}

/// A media packet of any shape: marker, type, padding, extension, contributing sources and length drawn.
fn media(sequence: u16, random: &mut RandomStream) -> Vec<u8> {
    let (dice, sources) = (random.bits(), random.below(3) as u8);
    let (extension, padding) = (dice & 1 == 1, dice & 2 == 2);
    let mut p = vec![0x80 | u8::from(padding) << 5 | u8::from(extension) << 4 | sources, (dice >> 8) as u8];
    p.extend_from_slice(&sequence.to_be_bytes());
    p.extend_from_slice(&(random.bits() as u32).to_be_bytes());
    p.extend_from_slice(&MEDIA.to_be_bytes());
    p.extend((0..4 * sources).map(|_| random.bits() as u8));
    if extension {
        p.extend_from_slice(&[0xbe, 0xde, 0, 1, 0, 0, 0, 0]);
    }
    p.extend((0..random.below(1_200)).map(|_| random.bits() as u8));
    if padding {
        p.extend_from_slice(&[0, 0, 3]);
    }
    p
}

fn repair_packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let packet = Packet {
        marker: false,
        payload_type: PAYLOAD_TYPE,
        sequence,
        timestamp: 0,
        ssrc: REPAIR,
        extensions: Default::default(),
        payload: &[],
    };
    let mut out = Vec::new();
    emit_packet_header(&packet, MEDIA, &mut out);
    out.extend_from_slice(payload);
    out
}

/// A repair packet with any cover over the media packets whose first is `media[0]`.
fn parity(media: &[Vec<u8>], first: usize, cover: Cover) -> Vec<u8> {
    let mut sum = vec![0; 8];
    for distance in cover.distances() {
        let p = &media[first + usize::from(distance)];
        let mut symbol = vec![p[0] & 0x3f, p[1]];
        symbol.extend_from_slice(&(p.len() as u16 - 12).to_be_bytes());
        symbol.extend_from_slice(&p[4..8]);
        symbol.extend_from_slice(&p[12..]);
        sum.resize(sum.len().max(symbol.len()), 0);
        sum.iter_mut().zip(&symbol).for_each(|(a, b)| *a ^= b);
    }
    let base = u16::from_be_bytes([media[first][2], media[first][3]]);
    let mut out = Vec::new();
    Header {
        flags: [sum[0], sum[1]],
        length: u16::from_be_bytes([sum[2], sum[3]]),
        timestamp: u32::from_be_bytes([sum[4], sum[5], sum[6], sum[7]]),
        kind: Kind::Parity { base, cover },
    }
    .emit(&mut out);
    out.extend_from_slice(&sum[8..]);
    repair_packet(0, &out)
}

fn stream(n: u16, first: u16, seed: u64) -> Vec<Vec<u8>> {
    let mut random = RandomStream::named(seed, "media");
    (0..n).map(|i| media(first.wrapping_add(i), &mut random)).collect()
}

fn drain(d: &mut Decoder) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| d.poll()).collect()
}

//= 8627-6.3.2-1
//= 8627-6.3.2-2
//= 8627-6.3.3-1
#[test]
fn one_lost_packet_of_a_row_comes_back_by_hand() {
    let mut d = Decoder::new(MEDIA);
    let of = |first: [u8; 4], time: u8, payload: &[u8]| {
        [&first[..], &[0, 0, 0, time], &MEDIA.to_be_bytes(), payload].concat()
    };
    d.on_media(&of([0x80, 0xe0, 0xff, 0xff], 0x10, &[1, 2, 3])).unwrap();
    // The vector of the encoder's test: 00 80, length 6, time 21, base ffff, mask 11.
    let payload = [0, 0x80, 0, 6, 0, 0, 0, 0x21, 0xff, 0xff, 0x60, 0, 0xfe, 2, 0, 4, 5];
    d.on_repair(&repair_packet(1, &payload)).unwrap();
    // 80 ^ e0 = 60: no marker, type 96; 6 ^ 3 = 5 bytes; 21 ^ 10 = 31; fe ^ 01, 02 ^ 02, 00 ^ 03, 04, 05.
    assert_eq!(drain(&mut d), [of([0x80, 0x60, 0, 0], 0x31, &[0xff, 0, 3, 4, 5])]);
    assert_eq!((d.stats().recovered, d.stats().wrong), (1, 0));
}

//= 8627-4.2.2.3-1
#[test]
fn a_retransmission_in_the_form_of_flexfec_is_taken() {
    let all = stream(3, 70, 5);
    let mut d = Decoder::new(MEDIA);
    d.on_media(&all[0]).unwrap();
    d.on_media(&all[2]).unwrap();
    let mut again = all[1].clone();
    again[0] = 0x80 | again[0] & 0x3f; // R = 1, F = 0 in the version's place
    d.on_repair(&repair_packet(1, &again)).unwrap();
    assert_eq!(drain(&mut d), [all[1].clone()]);
    d.on_repair(&repair_packet(1, &again)).unwrap();
    assert!(drain(&mut d).is_empty(), "once is enough");
}

//= 8627-6.3.4-1
#[test]
fn rows_and_columns_together_recover_what_neither_does_alone() {
    // 3 x 3, lost: 0, 1, 3. Row 0 lacks two, column 0 lacks two; row 1 gives 3, then column 0 gives 0, row 0 gives 1.
    let all = stream(9, 65_530, 6);
    // Numbers before the first that came are never asked for, so that one before the block comes first.
    let mut d = Decoder::new(MEDIA);
    d.on_media(&stream(1, 65_529, 7)[0]).unwrap();
    for i in [2, 4, 5, 6, 7, 8] {
        d.on_media(&all[i]).unwrap();
    }
    d.on_repair(&parity(&all, 0, Cover::Fixed { columns: 3, rows: 1 })).unwrap();
    d.on_repair(&parity(&all, 0, Cover::Fixed { columns: 3, rows: 3 })).unwrap();
    assert!(drain(&mut d).is_empty());
    d.on_repair(&parity(&all, 3, Cover::Fixed { columns: 3, rows: 1 })).unwrap();
    let mut back = drain(&mut d);
    back.sort_by_key(|p| u16::from_be_bytes([p[2], p[3]]));
    assert_eq!(back, [all[0].clone(), all[1].clone(), all[3].clone()]);
}

//= 8627-6.3.1-1
#[test]
fn other_streams_are_neither_repaired_nor_believed() {
    let all = stream(2, 5, 8);
    let mut d = Decoder::new(MEDIA + 1);
    d.on_media(&all[0]).unwrap();
    d.on_repair(&parity(&all, 0, Cover::Mask(3))).unwrap();
    assert_eq!((drain(&mut d).len(), d.stats().repair), (0, 0));
}

#[test]
fn a_damaged_solution_is_not_handed_out() {
    // Plain headers, so that a packet of any length is one: only its end tells.
    let plain =
        |number: u8, payload: &[u8]| [&[0x80, 96, 0, number, 0, 0, 0, 0][..], &MEDIA.to_be_bytes(), payload].concat();
    let all = [plain(5, &[1; 20]), plain(6, &[2; 30])];
    let whole = parity(&all, 0, Cover::Mask(3));
    // The length field: behind the RTP header with one source, two octets in. 65,535 is longer than what is there.
    let (mut long, mut short) = (whole.clone(), whole.clone());
    long[18] ^= 0xff;
    let sum = u16::from_be_bytes([whole[18], whole[19]]);
    let wanted = (all[1].len() as u16 - 12) ^ (all[0].len() as u16 - 12);
    assert_eq!(sum, wanted);
    short[18..20].copy_from_slice(&(all[0].len() as u16 - 12).to_be_bytes()); // length 0: octets are left behind it
    for bad in [long, short] {
        let mut d = Decoder::new(MEDIA);
        d.on_media(&all[0]).unwrap();
        d.on_repair(&bad).unwrap();
        assert_eq!((drain(&mut d).len(), d.stats().wrong), (0, 1));
        // The right one still helps.
        d.on_repair(&whole).unwrap();
        assert_eq!(drain(&mut d), [all[1].clone()]);
    }
    assert!(Decoder::new(MEDIA).on_repair(&[&whole[..], &[0; MAX_PACKET]].concat()).is_err());
}

#[test]
fn a_contradiction_is_counted_and_forgotten() {
    let all = stream(3, 5, 10);
    let mut d = Decoder::new(MEDIA);
    d.on_media(&all[0]).unwrap();
    let (one, mut other) = (parity(&all, 0, Cover::Mask(7)), parity(&all, 0, Cover::Mask(7)));
    *other.last_mut().unwrap() ^= 1;
    d.on_repair(&one).unwrap();
    d.on_repair(&other).unwrap();
    assert_eq!((d.stats().wrong, d.stats().useless), (1, 1));
    d.on_media(&all[1]).unwrap();
    assert_eq!(drain(&mut d), [all[2].clone()]);
}

/// The `lost` packets that follow from the equations, the naive way: a matrix over GF(2) reduced from scratch.
fn determined(lost: &[u16], covers: &[Vec<u16>]) -> Vec<u16> {
    let column = |n: &u16| lost.iter().position(|l| l == n);
    let bits = |cover: &Vec<u16>| cover.iter().filter_map(column).fold(0_u128, |row, c| row ^ 1 << c);
    let mut rows: Vec<u128> = covers.iter().map(bits).collect();
    let mut done = 0;
    for c in 0..lost.len() {
        if let Some(k) = (done..rows.len()).find(|&k| rows[k] >> c & 1 == 1) {
            rows.swap(done, k);
            let pivot = rows[done];
            for (i, row) in rows.iter_mut().enumerate() {
                if i != done && *row >> c & 1 == 1 {
                    *row ^= pivot;
                }
            }
            done += 1;
        }
    }
    rows.iter().filter(|r| r.count_ones() == 1).map(|r| lost[r.trailing_zeros() as usize]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// In any order, across the wrap: all that follows comes back, once, bit for bit; nothing else does.
    #[test]
    fn all_that_follows_comes_back_bit_for_bit_and_nothing_else(
        seed: u64, first: u16, window in 1_u16..=120, overhead in 0.05_f64..0.6, loss in 0.0_f64..0.3, mixed in 0_u64..12,
    ) {
        let mut random = RandomStream::named(seed, "path");
        let all = stream(150, first, seed);
        let mut encoder = Encoder::new(plan(window, overhead));
        let (mut sent, mut covers, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for (i, packet) in all.iter().enumerate() {
            encoder.on_sent(packet).unwrap();
            if i > 0 && random.uniform() < loss {
                lost.push(i as u16);
            } else {
                sent.push((2 * i as u64 + if i == 0 { 0 } else { random.below(mixed + 1) }, true, packet.clone()));
            }
            let mut payload = Vec::new();
            while encoder.poll(&mut random, &mut payload) {
                let (header, _) = Header::parse(&payload).unwrap();
                if let (Kind::Parity { base, cover }, true) = (header.kind, random.uniform() >= loss) {
                    covers.push(cover.distances().map(|d| base.wrapping_add(d).wrapping_sub(first)).collect());
                    sent.push((2 * i as u64 + 1 + random.below(mixed + 1), false, repair_packet(0, &payload)));
                }
                payload.clear();
            }
        }
        sent.sort_by_key(|(at, ..)| *at);
        let mut d = Decoder::new(MEDIA);
        let (mut back, mut came) = (Vec::new(), vec![false; all.len()]);
        for (_, is_media, packet) in &sent {
            if *is_media {
                d.on_media(packet).unwrap();
                came[usize::from(u16::from_be_bytes([packet[2], packet[3]]).wrapping_sub(first))] = true;
            } else {
                d.on_repair(packet).unwrap();
            }
            for p in drain(&mut d) {
                let i = u16::from_be_bytes([p[2], p[3]]).wrapping_sub(first);
                prop_assert_eq!(&p, &all[usize::from(i)]);
                prop_assert!(!came[usize::from(i)], "{} is there already", i);
                back.push(i);
            }
        }
        // Packets that came later than their repair are among those that came back; of the lost, all that follow did.
        back.retain(|i| lost.contains(i));
        back.sort_unstable();
        let mut expected = determined(&lost, &covers);
        expected.sort_unstable();
        if covers.len() <= 64 && lost.len() <= 100 {
            prop_assert_eq!(back, expected);
        }
        prop_assert_eq!(d.stats().wrong, 0);
    }

    /// A hostile peer: any covers, any contents, any numbers.
    #[test]
    fn anything_at_all_does_no_harm(
        seed: u64, steps in prop::collection::vec((any::<bool>(), any::<u16>(), any::<u128>(), 0_u8..3), 1..400),
    ) {
        let mut random = RandomStream::named(seed, "noise");
        let mut d = Decoder::new(MEDIA);
        d.on_media(&media(0, &mut random)).unwrap();
        for (is_media, number, bits, form) in steps {
            if is_media {
                let _ = d.on_media(&media(number % 2_000, &mut random));
            } else {
                let cover = match form {
                    0 => Cover::Mask(bits),
                    1 => Cover::Fixed { columns: bits as u8, rows: (bits >> 8) as u8 },
                    _ => Cover::Mask(bits & 0xff),
                };
                let header = Header {
                    flags: [0, bits as u8],
                    length: (bits >> 16) as u16 % 40,
                    timestamp: 0,
                    kind: Kind::Parity { base: number % 2_000, cover },
                };
                let mut payload = Vec::new();
                header.emit(&mut payload);
                payload.extend((0..random.below(40)).map(|_| random.bits() as u8));
                let _ = d.on_repair(&repair_packet(0, &payload));
            }
            let handed_out = drain(&mut d);
            prop_assert!(handed_out.len() <= 65, "{}", handed_out.len());
            for p in handed_out {
                prop_assert!(Packet::parse(&p).is_ok_and(|p| p.ssrc == MEDIA) && p.len() <= MAX_PACKET);
            }
        }
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
        let _ = (d.on_media(&bytes), d.on_repair(&bytes));
    }
}
