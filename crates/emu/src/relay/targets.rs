//! Whatever a client or the target sends through the relay, under fuzzing: the decision whether a client is sent to.

use super::hearing::Hearing;
use fairpace_fuzz::{Script, Target, put_piece};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A challenge and its echo as APP packets, and an SRT handshake's four packets.
fn handshakes() -> Vec<Vec<u8>> {
    use fairpace_rtp::challenge::{Challenge, Echo};
    use fairpace_units::{Class, Dscp, Duration, Ecn};
    let (mut challenge, mut echo) = (Vec::new(), Vec::new());
    Challenge {
        token: 77,
        class: Class::Normal,
        codec: fairpace_rtp::Codec::Vp8,
        media: (96, 1),
        dummy: (97, 2),
        retransmission: None,
        fec: None,
        form: fairpace_rtp::feedback::Request::Ccfb,
        proof: None,
    }
    .emit(&mut challenge);
    Echo {
        receiver: 9,
        token: 77,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        delay: Duration::ZERO,
        rwnd: None,
        feedback_interval: Duration::ZERO,
        next_report: 1,
        taken: false,
        fec: false,
        busy: false,
        ends: false,
        show: false,
    }
    .emit(&mut echo);
    let srt = |kind: u32, cookie: u32| {
        let mut packet = vec![0; 64];
        packet[0] = 0x80;
        packet[36..40].copy_from_slice(&kind.to_be_bytes());
        packet[44..48].copy_from_slice(&cookie.to_be_bytes());
        packet
    };
    vec![challenge, echo, srt(1, 0), srt(1, 0x1234), srt(u32::MAX, 0x1234)]
}

#[test]
fn a_client_that_has_shown_nothing_gets_three_times_what_it_sent_whatever_passes() {
    let packets = handshakes();
    // From the client: 0, from the target: 1.
    let of = |steps: &[(u8, usize)]| {
        let mut script = Vec::new();
        for (direction, n) in steps {
            script.push(*direction);
            put_piece(&packets[*n], &mut script);
        }
        script
    };
    let seeds = [
        of(&[(0, 2), (1, 3), (0, 4), (1, 0)]),
        of(&[(0, 1), (1, 0), (0, 1), (1, 1), (1, 1), (1, 1)]),
        of(&[(0, 0), (1, 0), (0, 1), (1, 3), (1, 3)]),
        of(&[(0, 2), (1, 2), (1, 2), (1, 2), (1, 2)]),
    ];
    Target::new("hearing", HERE).seeds(seeds).memory(64 << 10).cases(60_000).run(|bytes| {
        let (mut script, mut hearing) = (Script::new(bytes), Hearing::of(Some(0x5bd1_e995)));
        let (mut from, mut to, mut questions) = ((0, 0), (0, 0), Vec::new());
        let mut has_answered = false;
        while !script.is_over() {
            let is_client = script.byte() & 1 == 0;
            let mut packet = script.piece().to_vec();
            if is_client {
                from = (from.0 + packet.len(), from.1 + 1);
                // Whoever gives back eight bytes, or four, of what the target said may have shown something.
                has_answered |=
                    questions.iter().any(|q: &Vec<u8>| q.windows(4).any(|w| packet.windows(4).any(|p| p == w)));
                hearing.on_received(&mut packet);
                continue;
            }
            hearing.on_answer(&mut packet);
            if hearing.may_send(&packet) {
                to = (to.0 + packet.len(), to.1 + 1);
                questions.push(packet);
                assert!(has_answered || to.0 <= 3 * from.0 && to.1 <= 3 * from.1, "{to:?} for {from:?}");
            }
        }
    });
}

/// Places in [`of_a_flow`].
pub(super) const CHALLENGE: usize = 0;
pub(super) const ECHO: usize = 1;
pub(super) const ACK: usize = 2;
pub(super) const BYE: usize = 3;
pub(super) const MEDIA: usize = 4;
pub(super) const SEALED: usize = 5;

/// A challenge that asks for sack vectors; its echo, an ACK, a goodbye, media; the challenge sealed.
pub(super) fn of_a_flow() -> Vec<Vec<u8>> {
    use fairpace_rtp::feedback::sack_vector::wire::Ack;
    use fairpace_units::{Dscp, Ecn};
    let mut challenge = handshakes().swap_remove(0);
    // FMT 1.
    if let Some(fmt) = challenge.get_mut(27) {
        *fmt = 1;
    }
    let sealed = [&challenge[..], &[0x87, 204, 0, 15, 0, 0, 0, 1], b"FPCE", &[7; 52]].concat();
    let mut ack = Vec::new();
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    Ack { receiver: 9, number: 1, ack: 5, vector: 3, rwnd: None, dscp, ecn, delay: 0, arrival: 0, nonce_sum: 0 }
        .emit(&mut ack);
    let bye = vec![0x81, 203, 0, 1, 0, 0, 0, 1];
    let media = [&[0x80, 96, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 60]].concat();
    vec![challenge, handshakes().swap_remove(1), ack, bye, media, sealed]
}

/// Whatever passes a cell: no panic, nothing kept but what a client's state has room for, one membership at a time, and no window but a
/// smaller one written.
#[test]
fn a_cells_client_joins_and_leaves_in_turn_whatever_it_and_the_target_send() {
    use super::guest::{Change, Guest, Standing};
    use fairpace_rtp::base_station::lower_window;
    use fairpace_units::{Bytes, Duration, Instant};
    let packets = of_a_flow();
    let of = |steps: &[(u8, usize)]| {
        let mut script = Vec::new();
        for (direction, n) in steps {
            script.push(*direction);
            put_piece(&packets[*n], &mut script);
        }
        script
    };
    let seeds = [
        of(&[(0, CHALLENGE), (1, ECHO), (0, MEDIA), (1, ACK), (0, MEDIA), (0, BYE), (1, ACK)]),
        of(&[(0, SEALED), (1, ECHO), (0, MEDIA), (1, ACK)]),
        of(&[(0, CHALLENGE), (1, ACK), (0, BYE), (0, MEDIA), (1, ACK), (0, SEALED)]),
    ];
    Target::new("cell", HERE).seeds(seeds).memory(64 << 10).cases(60_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let client = std::net::SocketAddr::from(([192, 0, 2, 1], 9));
        let data = (Some(Duration::from_millis(50)), Bytes::new(125));
        let mut guest = Guest::new(0, "call", client, Instant::ZERO, data, Instant::ZERO);
        let (mut at, mut is_member) = (Instant::ZERO, false);
        while !script.is_over() {
            let byte = script.byte();
            at += Duration::from_millis(u64::from(byte) * 20);
            let mut packet = script.piece().to_vec();
            let change = match byte & 1 {
                0 => guest.on_sent(at, &packet),
                _ => guest.on_answered(at, &packet),
            };
            match change {
                Change::None => {}
                Change::Joins => assert!(!std::mem::replace(&mut is_member, true)),
                Change::Leaves => assert!(std::mem::replace(&mut is_member, false)),
            }
            assert_eq!(guest.is_planned(), is_member);
            assert!(!is_member || guest.visit.standing == Standing::Planned);
            if byte & 1 == 1 {
                let written = if is_member { lower_window(&mut packet, 20) } else { 0 };
                guest.on_told(at, &packet, is_member.then_some(20), written);
            }
            guest.judge();
        }
    });
}
