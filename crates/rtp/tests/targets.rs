//! Every parser of the wire's bytes, and both sessions after an honest beginning, under fuzzing.
//!
//! The corpora are in `tests/corpus`, and real datagrams of each form of feedback are made here. With the feature `canary` the
//! library has a bug that `rtcp` must find.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_fuzz::{Script, Target, put_piece};
use fairpace_rtp::challenge::Message;
use fairpace_rtp::feedback::claim::Claims;
use fairpace_rtp::feedback::reports::pairs::PairReport;
use fairpace_rtp::feedback::{ccfb, rtp_tfrc, sack_vector};
use fairpace_rtp::framing::{self, Deframer};
use fairpace_rtp::packet::{self, Packet};
use fairpace_rtp::quick_start::IpOptions;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{
    Frame, Out, ReceiverConfig, ReceiverSession, Secret, SenderConfig, SenderEvent, SenderSession, What, fec, playout,
    quick_start, rtx, sdp, vp8,
};
use fairpace_units::{
    Dscp, Duration, Ecn, Instant, Probability, QsFunction, QsNonce, QsOption, QsRate, RandomStream, Rate,
};
use pair::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Most bytes that a parser may hold for a datagram of at most 64 KiB.
const PARSER: u64 = 1 << 20;

/// A scheme and its settings, and the form of feedback to ask for if not the scheme's own.
type Setup = (&'static str, &'static [(&'static str, &'static str)], Option<Form>);
/// One of each form of feedback: CCFB, sack vectors, the TFRC profile, receiver reports, transport-wide feedback.
const SETUPS: [Setup; 5] = [
    ("rcs", &[], None),
    ("aimd", &[], None),
    ("tfrc", &[("measured_by", "receiver")], None),
    ("lda", &[], None),
    ("tfrc", &[], Some(Form::Twcc)),
];

fn sender(setup: u8) -> (SenderConfig, fairpace_control::Flow) {
    let (scheme, settings, form) = SETUPS[usize::from(setup) % SETUPS.len()];
    let config = SenderConfig { retransmission: true, fec: true, form, ..sender_config() };
    (config, flow(scheme, settings, Rate::mbps(1.0)))
}

fn receiver() -> ReceiverConfig {
    ReceiverConfig { nack: true, fec: true, rwnd: Some(25), ..ReceiverConfig::default() }
}

/// The datagrams that pass between two honest sessions in a second and a half or more, with their times; 5 % of the packets are lost.
fn recorded(setup: u8, forward: bool) -> Vec<(Instant, Wire)> {
    let (config, flow) = sender(setup);
    let mut p = Pair::new(config, receiver(), flow, ms(50));
    let tapped = Rc::new(RefCell::new(VecDeque::new()));
    let (taken, mut lose) = (Rc::clone(&tapped), lossy(1, 0.05));
    p.forward.disturb = Box::new(move |now, w| {
        if forward {
            taken.borrow_mut().push_back((now, w.clone()));
        }
        lose(now, w)
    });
    if !forward {
        p.back.disturb = tap(Rc::clone(&tapped));
    }
    p.receiver.set_playout(p.now, ms(150));
    p.run_until(at(1.2));
    p.receiver.request_key_frame(p.now);
    if setup == 0 {
        p.sender.stop(p.now);
    }
    // Receiver reports come each second.
    p.run_until(at(if setup == 3 { 3.5 } else { 1.5 }));
    p.forward.disturb = undisturbed();
    p.back.disturb = undisturbed();
    drop(p);
    let all = tapped.borrow();
    all.iter().cloned().collect()
}

/// Three datagrams of each kind, of every form of feedback, both ways.
fn datagrams(wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for setup in 0..SETUPS.len() as u8 {
        for forward in [true, false] {
            let all = recorded(setup, forward);
            for what in What::ALL {
                let of_kind = all.iter().filter(|(_, w)| w.what == what && wanted(&w.bytes));
                // The first of a flow, and two later ones.
                found.extend(of_kind.step_by(3).take(3).map(|(_, w)| w.bytes.clone()));
            }
        }
    }
    found
}

/// Reads everything that there is in an RTCP datagram.
fn read_rtcp(bytes: &[u8]) {
    let Ok(compound) = Compound::parse(bytes) else { return };
    let mut packets = 0;
    for packet in compound {
        packets += 1;
        match packet {
            Rtcp::SenderReport(_, _, blocks) | Rtcp::ReceiverReport(_, blocks) => {
                assert!(blocks.count() <= 31);
            }
            Rtcp::Sdes(sdes) => assert!(sdes.count() <= 31),
            Rtcp::Bye(bye) => assert!(bye.ssrcs().count() <= 31),
            Rtcp::App(app) => {
                let _ = Message::parse(&app);
                let _ = PairReport::parse(&app);
                let _ = playout::parse(&app);
                let _ = quick_start::answer::parse(&app);
                if let Ok(Some(ack)) = sack_vector::wire::Ack::parse(&app) {
                    assert!(ack.claimed().count() <= 9);
                }
                if let Ok(Some(claims)) = Claims::parse(&app) {
                    assert!(claims.claims().count() <= bytes.len() / 8);
                }
            }
            Rtcp::Nack(nack) => assert!(nack.lost().count() <= bytes.len() / 4 * 17),
            Rtcp::CongestionFeedback(reporter, body) => {
                if let Ok(report) = ccfb::wire::Report::parse(reporter, body) {
                    let metrics: usize = report.blocks().map(|block| block.metrics().count()).sum();
                    assert!(metrics <= bytes.len() / 2);
                }
            }
            Rtcp::TransportFeedback { sender, media, fci, .. } => {
                if let Ok(report) = rtp_tfrc::wire::Report::parse(sender, media, fci) {
                    let measured = report.measured(Instant::ZERO);
                    assert!((0.0..=1.0).contains(&measured.loss_event_rate));
                }
            }
            Rtcp::PictureLoss(..) | Rtcp::Other(_) => {}
        }
    }
    assert!(packets <= bytes.len() / 4);
}

fn rtcp() -> Target {
    let packets = [packet_of(200), packet_of(201), packet_of(202), packet_of(203), packet_of(206)];
    Target::new("rtcp", HERE).seeds(datagrams(packet::is_rtcp)).words(packets).memory(PARSER).cases(150_000)
}

/// The smallest packet of a type.
fn packet_of(packet_type: u8) -> [u8; 8] {
    [0x81, packet_type, 0, 1, 0, 0, 0, 7]
}

#[test]
#[cfg_attr(feature = "canary", ignore = "the next test is for the canary")]
fn any_rtcp_compound_is_read_or_refused() {
    rtcp().run(read_rtcp);
}

#[test]
#[cfg(feature = "canary")]
fn the_planted_bug_is_found_by_the_cases_of_make_test() {
    let finding = rtcp().search(read_rtcp).expect_err("the canary was not found");
    assert!(finding.fault.to_string().contains("the canary"), "{}", finding.fault);
    assert!(finding.seed.is_some(), "the corpus has the canary's input: nothing was shown");
}

#[test]
#[cfg_attr(feature = "canary", ignore = "the canary is for `rtcp`")]
fn any_rtp_packet_is_read_or_refused_and_written_again_the_same() {
    let target = Target::new("rtp", HERE).seeds(datagrams(|bytes| !packet::is_rtcp(bytes))).memory(PARSER);
    target.cases(100_000).run(|bytes| {
        for stamp in [1, 3, 14] {
            if let Ok(packet) = Packet::parse_with(bytes, stamp) {
                assert!(packet.payload.len() <= bytes.len());
                let _ = (rtx::parse(packet.payload), vp8::parse(packet.payload), vp8::parse_generic(packet.payload));
                let _ = (fec::Header::parse(packet.payload), fec::protected_ssrc(bytes));
            }
        }
        let Ok(packet) = Packet::parse(bytes) else { return };
        let mut again = Vec::new();
        packet.emit(&mut again);
        assert_eq!(Packet::parse(&again), Ok(packet));
    });
}

/// The body of the first congestion control feedback of each recording.
fn bodies() -> Vec<Vec<u8>> {
    let of = |bytes: Vec<u8>| {
        Compound::parse(&bytes).ok()?.find_map(|packet| match packet {
            Rtcp::CongestionFeedback(_, body) => Some(body.to_vec()),
            _ => None,
        })
    };
    datagrams(packet::is_rtcp).into_iter().filter_map(of).collect()
}

#[test]
fn any_ccfb_block_costs_no_more_than_its_bytes() {
    // A datagram of 64 KiB, too: 16,384 metrics take 32 KiB.
    let mut large = vec![0, 0, 0, 1, 0, 0, 0x40, 0];
    large.resize(8 + 2 * 16_384, 0x80);
    large.extend([0; 4]);
    Target::new("ccfb", HERE).seeds(bodies()).seeds([large]).memory(4 << 10).cases(100_000).run(|body| {
        let Ok(report) = ccfb::wire::Report::parse(1, body) else { return };
        let mut seen = 0;
        for block in report.blocks() {
            assert!(block.len() <= 16_384);
            seen += block.metrics().count();
        }
        assert!(2 * seen <= body.len());
    });
}

#[test]
fn any_bytes_of_a_connection_are_cut_into_packets_or_refused() {
    let mut stream = Vec::new();
    for (_, wire) in recorded(3, true).into_iter().take(6) {
        framing::emit(&wire.bytes, &mut stream).unwrap();
        framing::emit_null(&mut stream);
    }
    // The first byte says into how many pieces the connection cuts what follows.
    let seeds = [0, 1, 7].map(|size| [&[size][..], &stream].concat());
    Target::new("framing", HERE).seeds(seeds).memory(64 << 10).cases(40_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let size = match script.byte() {
            0 => bytes.len().max(1),
            size => usize::from(size),
        };
        let (mut deframer, mut content) = (Deframer::new(1_500), 0);
        for mut piece in script.rest().chunks(size) {
            while !piece.is_empty() {
                let space = deframer.space();
                let n = space.len().min(piece.len());
                assert!(n > 0, "no space although every packet was taken");
                space[..n].copy_from_slice(&piece[..n]);
                deframer.filled(n);
                piece = &piece[n..];
                loop {
                    match deframer.next_packet() {
                        Ok(Some(packet)) => content += packet.len() + framing::LENGTH_LEN,
                        Ok(None) => break,
                        Err(_) => return assert!(deframer.next_packet().is_err()),
                    }
                }
            }
        }
        assert!(content + deframer.held() <= bytes.len());
    });
}

/// Media packets and repair packets, each behind a byte (0: media, else repair) and a length; some media are missing.
fn repaired(seed: u64) -> Vec<u8> {
    let mut encoder = fec::Encoder::new(fec::Plan { window: 20, overhead: Probability::ONE });
    let (mut random, mut out) = (RandomStream::named(seed, "masks"), Vec::new());
    for n in 0..24_u16 {
        let of = |payload_type, ssrc| Packet {
            marker: n % 3 == 0,
            payload_type,
            sequence: n.wrapping_add(65_530),
            timestamp: 9,
            ssrc,
            extensions: Default::default(),
            payload: &[5; 30][usize::from(n)..],
        };
        let mut media = Vec::new();
        of(96, 7).emit(&mut media);
        encoder.on_sent(&media).unwrap();
        if random.below(4) > 0 {
            out.push(0);
            put_piece(&media, &mut out);
        }
        let (mut payload, mut repair) = (Vec::new(), Vec::new());
        if encoder.poll(&mut random, &mut payload) {
            fec::emit_packet_header(&of(fec::PAYLOAD_TYPE, 8), 7, &mut repair);
            repair.extend_from_slice(&payload);
            out.push(1);
            put_piece(&repair, &mut out);
        }
    }
    out
}

#[test]
#[cfg_attr(feature = "canary", ignore = "the canary is for `rtcp`")]
fn any_media_and_repair_packets_cost_bounded_memory_and_give_packets() {
    let target = Target::new("fec", HERE).seeds((1..4).map(repaired)).memory(256 << 10).cases(10_000);
    target.run(|bytes| {
        let (mut script, mut decoder, mut datagrams) = (Script::new(bytes), fec::Decoder::new(7), 0);
        while !script.is_over() {
            let is_media = script.byte() == 0;
            let piece = script.piece();
            let _ = if is_media { decoder.on_media(piece) } else { decoder.on_repair(piece) };
            while let Some(packet) = decoder.poll() {
                assert!(Packet::parse(&packet).is_ok_and(|p| p.ssrc == 7));
            }
            datagrams += 1;
        }
        assert!(decoder.stats().recovered <= 64 * datagrams);
    });
}

/// Packets of both families with the option, and with others around it.
fn requests() -> Vec<Vec<u8>> {
    let option = QsOption {
        function: QsFunction::Request,
        rate: QsRate::from_code(5).unwrap(),
        qs_ttl: 90,
        ip_ttl: 64,
        nonce: QsNonce::new(0x1234_5678),
    };
    let v4 = |options: &[u8]| {
        let mut packet = vec![0x40 | (5 + options.len() / 4) as u8, 0, 0, 60, 0, 7, 0x40, 0, 64, 17, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(options);
        packet.extend([9; 12]);
        packet
    };
    let of_router = quick_start::ipv4_option(&option);
    let v6 = |first: u8, header: &[u8]| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 32, first, 64];
        packet.extend([0x20; 16].iter().chain(&[0x30; 16]));
        packet.extend(header);
        packet.extend([9; 12]);
        packet
    };
    vec![
        v4(&of_router),
        v4(&[&[7, 7, 4, 0, 0, 0, 0, 1], &of_router[..], &[1, 1, 0, 0]].concat()),
        v4(&[]),
        v6(0, &quick_start::ipv6_hop_by_hop(17, &option)),
        v6(0, &[17, 0, 5, 2, 0, 0, 1, 0]),
        v6(17, &[]),
    ]
}

#[test]
fn any_ip_packet_passes_a_router_with_nothing_changed_but_the_option_and_the_ttl() {
    Target::new("quick_start", HERE).seeds(requests()).memory(PARSER).cases(200_000).run(|bytes| {
        let mut packet = bytes.to_vec();
        let held = quick_start::ipv4_checksum_holds(bytes);
        let before = quick_start::parse(bytes);
        let forwarded = quick_start::forward(&mut packet, |_, option| {
            option.ip_ttl = option.ip_ttl.wrapping_sub(1);
            option.qs_ttl = option.qs_ttl.wrapping_sub(1);
            option.rate = QsRate::ZERO;
            *option
        });
        match (before, forwarded) {
            (Ok(Some(_)), Ok(Some(made))) => {
                assert_eq!(quick_start::parse(&packet), Ok(Some(made)));
                let differ = bytes.iter().zip(&packet).filter(|(a, b)| a != b).count();
                // TTL, rate, QS TTL, checksum.
                assert!(differ <= 5 && packet.len() == bytes.len());
                assert!(!held || quick_start::ipv4_checksum_holds(&packet));
            }
            (before, after) => {
                assert_eq!(before.map(|_| ()), after.map(|_| ()));
                assert_eq!(packet, bytes);
            }
        }
    });
}

/// As a socket hands them out: the options of IPv4 and the header of IPv6, each behind a byte that tells which, and the TTL.
#[test]
fn any_options_of_a_socket_are_read_or_refused_as_those_of_a_whole_packet() {
    let option = quick_start::parse(&requests()[0]).unwrap().unwrap();
    let v4 = quick_start::ipv4_option(&option);
    let v6 = quick_start::ipv6_hop_by_hop(17, &option);
    let seeds = vec![
        [&[4, 64], &v4[..]].concat(),
        [&[4, 1, 7, 7, 4, 0, 0, 0, 0, 1], &v4[..]].concat(),
        [&[6, 64], &v6[..]].concat(),
        vec![6, 64, 17, 0, 5, 2, 0, 0, 1, 0],
    ];
    Target::new("quick_start_options", HERE).seeds(seeds).memory(PARSER).cases(200_000).run(|bytes| {
        let [version, ttl, options @ ..] = bytes else { return };
        if *version == 4 {
            let read = quick_start::parse_options(IpOptions::V4(options), *ttl);
            // A whole packet says the same, where there can be one.
            if options.len() <= 40 && options.len().is_multiple_of(4) {
                let mut packet = vec![0x45 + (options.len() / 4) as u8, 0, 0, 0, 0, 0, 0, 0, *ttl, 17];
                packet.extend([0; 10].iter().chain(options));
                assert_eq!(read, quick_start::parse(&packet));
            }
        } else {
            let read = quick_start::parse_options(IpOptions::V6(options), *ttl);
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, 0, *ttl];
            packet.extend([0; 32].iter().chain(options));
            assert_eq!(read.ok(), quick_start::parse(&packet).ok());
        }
    });
}

#[test]
fn any_session_description_is_read_or_refused() {
    let to = "127.0.0.1:5004".parse().unwrap();
    let seeds = [
        sdp::describe(to, 96, fairpace_rtp::Codec::Vp8),
        sdp::describe_measuring(to, 96, fairpace_rtp::Codec::Generic, Default::default()),
    ];
    let target = Target::new("sdp", HERE).seeds(seeds.map(String::into_bytes)).text().memory(PARSER).cases(40_000);
    target.words(["a=rtcp-fb:", "a=extmap:", "tfrc", "*", "\r\n", "urn:ietf:params:rtp-hdrext:rtt-sendts"]).run(
        |bytes| {
            let _ = sdp::profile(&String::from_utf8_lossy(bytes));
        },
    );
}

/// Datagrams with the time that passes before each, in microseconds: what a session hears.
fn script(setup: u8, forward: bool) -> Vec<u8> {
    let (mut out, mut last) = (vec![setup], 0);
    for (sent, wire) in recorded(setup, forward) {
        let micros = (sent + ms(50)).as_nanos() / 1_000;
        out.push(0);
        out.extend(&(micros.saturating_sub(last) as u32).to_be_bytes()[1..]);
        put_piece(&wire.bytes, &mut out);
        last = micros;
    }
    out
}

/// Virtual time of a script.
const RUN: Duration = Duration::from_secs(5);

/// Runs a sender that hears what the script says; how much feedback it believed.
fn hear_as_sender(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let (config, flow) = sender(script.byte());
    let mut sender = SenderSession::new(config, flow, Secret::from_seed(1));
    let (mut now, mut frame_at, mut frames, mut sent) = (Instant::ZERO, Instant::ZERO, 0_u32, 0_u64);
    let mut wants_key = true;
    while !script.is_over() && now <= Instant::ZERO + RUN {
        let op = script.byte();
        let arrival = now + Duration::from_micros(script.number(3));
        loop {
            if now >= frame_at && sender.is_validated() {
                // As large as in the recording, so that what the script acknowledges was sent.
                let len = (sender.media_rate() * ms(40)).get().max(1) as usize;
                let mut data = vec![0xaa; len];
                data[0] = u8::from(!wants_key);
                let frame = Frame { data, timestamp_90k: frames * 3_600, key: wants_key };
                wants_key = false;
                sender.push_frame(now, frame);
                (frames, frame_at) = (frames + 1, now + ms(40));
            }
            let until = loop {
                match sender.poll(now) {
                    Out::Datagram(d) => {
                        assert!(d.bytes.len() <= 1_300);
                        sent += d.bytes.len() as u64 + 28;
                    }
                    Out::Wait(until) => break until,
                    Out::Stopped(_) => return sender.stats().feedback.packets,
                }
            };
            assert!(until > now);
            while let Some(event) = sender.next_event() {
                wants_key |= event == SenderEvent::KeyFrameRequest;
            }
            let next = until.min(if sender.is_validated() { frame_at.max(now) } else { Instant::NEVER });
            if next >= arrival {
                break;
            }
            now = next;
        }
        now = arrival;
        let piece = script.piece();
        match op % 8 {
            5 => sender.handle_tcp_packet(now, piece),
            6 => sender.hint_path_mtu(now, fairpace_units::Bytes::new(piece.len() as u64)),
            7 => sender.on_too_large(now, piece.len(), None),
            _ => sender.handle_datagram(now, piece, Dscp::DEFAULT, Ecn::NotEct),
        }
        let (queued, _) = sender.queue_len();
        assert!(queued < 4_096);
    }
    // The cap, an eighth more for reports and repair, and what may leave at once.
    let most = (Rate::mbps(1.0) * now.since(Instant::ZERO)).get() * 9 / 8 + 20_000;
    assert!(sent <= most, "{sent} B in {now}, at most {most}");
    sender.stats().feedback.packets
}

#[test]
#[cfg_attr(feature = "canary", ignore = "the canary is for `rtcp`")]
fn whatever_a_sender_hears_after_an_honest_beginning_does_no_harm() {
    let seeds: Vec<_> = (0..SETUPS.len() as u8).map(|setup| script(setup, false)).collect();
    for (setup, seed) in SETUPS.iter().zip(&seeds) {
        let believed = hear_as_sender(seed);
        assert!(believed > 0, "{setup:?}: the beginning is not honest");
    }
    Target::new("sender", HERE).seeds(seeds).memory(4 << 20).cases(40_000).run(|bytes| {
        let _ = hear_as_sender(bytes);
    });
}

/// As [`script`] of a receiver, media cut short, or a script would be as long as its media.
fn short_script(setup: u8) -> Vec<u8> {
    let (mut out, mut last) = (vec![setup], 0);
    for (sent, wire) in recorded(setup, true).into_iter().take(60) {
        let micros = (sent + ms(50)).as_nanos() / 1_000;
        out.push(0);
        out.extend(&(micros.saturating_sub(last) as u32).to_be_bytes()[1..]);
        let len = if packet::is_rtcp(&wire.bytes) { wire.bytes.len() } else { wire.bytes.len().min(60) };
        put_piece(&wire.bytes[..len], &mut out);
        last = micros;
    }
    out
}

/// In a script's first byte: sessions are closed one by one.
const APART: u8 = 0x80;

/// Runs a receiver that hears what the script says; how many media packets it took.
fn hear_as_receiver(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let one_by_one = script.byte() & APART != 0;
    let mut receiver = ReceiverSession::new(ReceiverConfig { one_by_one, ..receiver() }, Secret::from_seed(2));
    let [usual, other] = [SENDER, "192.0.2.7:5000"].map(|address| address.parse().unwrap());
    let (mut now, mut heard, mut said, mut buffer) = (Instant::ZERO, 0, 0, Vec::new());
    while !script.is_over() && now <= Instant::ZERO + RUN {
        let op = script.byte();
        now += Duration::from_micros(script.number(3));
        let piece = script.piece();
        match op {
            0..200 => {
                heard += piece.len();
                let from = if op & 1 == 0 { usual } else { other };
                receiver.handle_datagram(now, piece, Dscp::LE, Ecn::Ce, from);
            }
            200..210 => receiver.request_key_frame(now),
            210..220 => receiver.set_playout(now, ms(piece.len() as u64)),
            220..230 => receiver.forget_before(piece.len() as u64),
            230..240 => drop(receiver.accept_tcp(now, piece, usual.ip())),
            240..250 => drop(receiver.handle_tcp_packet(now, piece)),
            250..252 => receiver.dismiss(now),
            252..254 => receiver.next_session(),
            254 => receiver.same_session(),
            255 => receiver.stop(now),
        }
        while receiver.next_recovered(&mut buffer).is_some() {}
        let mut datagrams = 0;
        loop {
            match receiver.poll(now) {
                Out::Datagram(d) => {
                    assert!(d.bytes.len() <= 1_300);
                    (said, datagrams) = (said + d.bytes.len(), datagrams + 1);
                }
                Out::Wait(until) => break assert!(until > now),
                Out::Stopped(_) => return receiver.stats().media.received,
            }
        }
        assert!(datagrams < 100, "{datagrams} datagrams at once");
        while receiver.next_event().is_some() {}
        assert!(receiver.sources() <= 1_024);
    }
    // Feedback to a proven sender, beside the three times what came from others.
    assert!(said <= 3 * heard + 40_000, "{said} B for {heard} B");
    receiver.stats().media.received
}

#[test]
#[cfg_attr(feature = "canary", ignore = "the canary is for `rtcp`")]
fn whatever_a_receiver_hears_after_an_honest_beginning_does_no_harm() {
    let mut seeds: Vec<_> = (0..SETUPS.len() as u8).map(short_script).collect();
    // The sender is dismissed behind its last datagram, and the next session begins.
    let apart = |seed: &Vec<u8>| {
        let first = seed.first().map(|setup| setup | APART);
        let [dismiss, next] = [250, 252].map(|op| [&[op, 0, 0, 0][..], &[0, 0]].concat());
        [first.as_slice(), &seed[1..], &dismiss, &next].concat()
    };
    seeds.extend(seeds.iter().map(apart).collect::<Vec<_>>());
    for (setup, seed) in SETUPS.iter().zip(&seeds) {
        let taken = hear_as_receiver(seed);
        assert!(taken > 5, "{setup:?}: {taken} media packets");
    }
    Target::new("receiver", HERE).seeds(seeds).memory(4 << 20).cases(30_000).run(|bytes| {
        let _ = hear_as_receiver(bytes);
    });
}
