//! Quick-Start from end to end on real headers: a sender asks, routers rewrite the packet, a receiver answers,
//! honestly or not. [RFC 4782 §4.4, §9.4]

use fairpace_control::quick_start::{QsVerdict, QuickStartParams, Requester, answer};
use fairpace_path::quick_start::{Free, QsRouter, RouterParams, pass_unaware};
use fairpace_rtp::quick_start as wire;
use fairpace_units::{Duration, Instant, QsNonce, QsOption, QsRate, QsResponse, RandomStream, Rate};

fn code(code: u8) -> QsRate {
    QsRate::from_code(code).expect("a code")
}

/// A sender that has just asked for that rate, and what it sent.
fn asked(rate: u8, seed: u64) -> (Requester, QsOption) {
    let mut sender = Requester::new(QuickStartParams::new(code(rate).rate(), seed).expect("a rate"));
    let option = sender.request(code(rate)).expect("a request");
    sender.on_sent(Instant::ZERO, option, None);
    (sender, option)
}

fn judge(sender: &mut Requester, response: &QsResponse) -> QsVerdict {
    sender.on_response(Instant::ZERO + Duration::from_millis(500), response).0
}

fn router(seed: u64) -> QsRouter {
    let params = RouterParams { threshold: 1.0, source_share: 1.0, ..RouterParams::default() };
    QsRouter::new(&params, RandomStream::named(seed, "router")).expect("a router")
}

/// Room for that rate and nothing more.
fn room(rate: u8) -> Free {
    Free { capacity: code(rate).rate(), used: Rate::ZERO }
}

/// An IPv4 or IPv6 packet with the option in its header.
fn packet(v6: bool, option: &QsOption) -> Vec<u8> {
    if v6 {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, 0, option.ip_ttl];
        packet.extend([0x20; 32]);
        packet.extend(wire::ipv6_hop_by_hop(17, option));
        return packet;
    }
    let mut packet = vec![0x47, 0, 0, 36, 0, 0, 0x40, 0, option.ip_ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(wire::ipv4_option(option));
    // Summed word by word: no carry is lost with so few.
    let sum = packet.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum::<u32>();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn arrived(packet: &[u8]) -> QsOption {
    wire::parse(packet).expect("headers").expect("an option")
}

//= 4782-4.3-1
#[test]
fn a_request_is_lowered_on_the_way_answered_and_approved_and_the_report_passes() {
    for v6 in [false, true] {
        let (mut sender, option) = asked(9, 1);
        let mut bytes = packet(v6, &option);
        for (hop, rate) in [12, 7, 8].into_iter().enumerate() {
            let mut router = router(hop as u64);
            wire::forward(&mut bytes, |source, o| router.on_request(Instant::ZERO, source, o, || room(rate)))
                .expect("headers")
                .expect("an option");
            assert!(v6 || wire::ipv4_checksum_holds(&bytes), "hop {hop}");
        }
        let option = arrived(&bytes);
        assert_eq!((option.rate, option.ip_ttl), (code(7), 61));
        let response = answer(&option).expect("a response");
        assert_eq!(judge(&mut sender, &response), QsVerdict::Approved(code(7)));
        let report = sender.report().expect("a report");
        let mut bytes = packet(v6, &report);
        wire::forward(&mut bytes, |source, o| router(0).on_request(Instant::ZERO, source, o, || room(1)))
            .expect("headers");
        assert_eq!(arrived(&bytes), QsOption { ip_ttl: 63, ..report });
    }
}

/// How many of a million liars are believed who received a request for `asked` that a router had lowered to `told`,
/// and answer that nobody had: the pairs of the nonce that they do not know stay as they came.
fn believed(rate: u8, told: u8) -> u32 {
    let mut router = router(u64::from(told));
    let mut believed = 0;
    for trial in 0..1_000_000_u64 {
        let (mut sender, mut option) = asked(rate, trial);
        // Far enough apart for each to be considered, and the one before to be forgotten.
        router.on_request(Instant::ZERO + Duration::from_secs(trial), 1, &mut option, || room(told));
        assert_eq!(option.rate, code(told));
        let lie = QsResponse { rate: code(rate), ..option.response() };
        match judge(&mut sender, &lie) {
            QsVerdict::Approved(_) => believed += 1,
            verdict => {
                assert_eq!(verdict, QsVerdict::BadNonce);
                assert!(!sender.may_ask(Instant::ZERO + Duration::from_secs(3_600), None), "it asks this peer no more");
            }
        }
    }
    believed
}

/// [RFC 4782 §3.4]: 1/4 for each step. [RFC 4782 §9.4.2] prints 1/(2K) where it must be 4^-K.
//= 4782-3.4-5
//= 4782-4.4-2
//= 4782-4.4-4
#[test]
fn a_liar_who_adds_k_steps_is_believed_once_in_four_to_the_k() {
    for k in 1..=4 {
        let p = 0.25_f64.powi(i32::from(k));
        let believed = f64::from(believed(9, 9 - k)) / 1e6;
        let three_sigma = 3.0 * (p * (1.0 - p) / 1e6).sqrt();
        println!("{k} steps: {believed} of {p} +- {three_sigma:.6}");
        assert!((believed - p).abs() < three_sigma, "{k} steps: {believed}, not {p} +- {three_sigma}");
    }
}

/// A router that refuses leaves neither the QS TTL nor any pair: to be believed a liar must guess one in 256, and
/// for a rate of code K one in 4^K. The RFC prints 1/(2K) for the latter, which for K = 1 would be twice as often.
//= 4782-9.4.2-1
#[test]
fn a_liar_whose_request_was_refused_must_guess_ttl_and_nonce() {
    let mut guess = RandomStream::named(1, "liar");
    let mut router = router(1);
    let mut believed = 0;
    for trial in 0..1_000_000 {
        let (mut sender, mut option) = asked(1, trial);
        router.on_request(Instant::ZERO, 1, &mut option, || room(0));
        assert_eq!(answer(&option), None, "an honest receiver says nothing");
        let bits = guess.bits();
        let lie = QsResponse { rate: code(1), ttl_diff: (bits >> 32) as u8, nonce: QsNonce::new(bits as u32) };
        believed += u32::from(judge(&mut sender, &lie) == QsVerdict::Approved(code(1)));
    }
    // 1e6 / 1024 = 976.6, deviation 31.2.
    println!("refused: {believed} of 976.6");
    assert!((883..=1_070).contains(&believed), "{believed}");
}

//= 4782-3.3-3
//= 4782-4.4-1
#[test]
fn whoever_rewrites_the_ttl_by_whatever_is_found_out() {
    for v6 in [false, true] {
        for by in 1..=255_u8 {
            let (mut sender, option) = asked(5, u64::from(by));
            let mut bytes = packet(v6, &option);
            wire::forward(&mut bytes, |source, o| router(1).on_request(Instant::ZERO, source, o, || room(9)))
                .expect("headers");
            // Up by 1 to 255 is down by 255 to 1.
            wire::forward(&mut bytes, |_, o| o.ip_ttl = o.ip_ttl.wrapping_add(by)).expect("headers");
            wire::forward(&mut bytes, |source, o| router(2).on_request(Instant::ZERO, source, o, || room(9)))
                .expect("headers");
            let response = arrived(&bytes).response();
            assert_eq!(judge(&mut sender, &response), QsVerdict::BadTtl, "by {by}");
            assert_eq!(sender.report().map(|r| r.rate), Some(QsRate::ZERO));
        }
    }
}

//= 4782-4.4-1
#[test]
fn whoever_raises_the_rate_is_found_out() {
    for raised in 6..=15 {
        let (mut sender, option) = asked(5, u64::from(raised));
        let response = QsResponse { rate: code(raised), ..option.response() };
        assert_eq!(judge(&mut sender, &response), QsVerdict::BadRate);
    }
}

//= 4782-3.3-3
#[test]
fn one_router_that_does_not_know_quick_start_fails_the_request_wherever_it_stands() {
    for place in 0..4 {
        let (mut sender, option) = asked(5, place);
        let mut bytes = packet(false, &option);
        for hop in 0..4 {
            wire::forward(&mut bytes, |source, o| match hop == place {
                true => pass_unaware(o),
                false => drop(router(hop).on_request(Instant::ZERO, source, o, || room(9))),
            })
            .expect("headers");
        }
        let response = answer(&arrived(&bytes)).expect("a response");
        assert_eq!(judge(&mut sender, &response), QsVerdict::BadTtl);
    }
}
