//! The capacity that a terminal gets by each class, the instants at which its packets come out, the decisions of its
//! Quick-Start agent, and the times that follow from a specification: all by hand.

mod common;

use common::*;
use fairpace_path::dama::DamaEventKind;
use fairpace_path::quick_start::{Agent, Estimator, LoadWindow, QsVerdict, Refusal, Statistic};
use fairpace_path::{Dama, DamaSpec, Datagram, Plain, ReleaseOf, SlotLayout};
use fairpace_units::{Bytes, Class, Duration, Ecn, Instant, QsFunction, QsNonce, QsOption, QsRate, Rate};

/// Super-frame k and a part of it.
fn at(spec: &DamaSpec, k: f64) -> Instant {
    Instant::from_secs_f64(spec.super_frame().as_secs_f64() * k)
}

/// When a slot ends: after (slot + 1) * 188/99 ms, rounded up to a nanosecond.
fn slot_end(slot: u64) -> Instant {
    Instant::from_nanos(((slot + 1) * 188_000_000).div_ceil(99))
}

/// One slot of data.
fn burst() -> Plain {
    Plain::new(Bytes::new(1_504))
}

fn units(spec: &DamaSpec, rate: Rate) -> f64 {
    (rate.as_bps() / spec.granularity.as_bps() * 1e6).round() / 1e6
}

/// Grants of a terminal in those super-frames, in units.
fn grants(dama: &mut Dama<Plain>, terminal: u32, super_frames: std::ops::Range<u32>) -> Vec<f64> {
    let spec = dama.spec().clone();
    super_frames
        .map(|k| {
            dama.advance(at(&spec, f64::from(k) + 0.5));
            units(&spec, dama.granted(terminal))
        })
        .collect()
}

#[test]
fn the_times_of_table_i() {
    // [qsd Table I], T_p = 252 ms.
    let (small, large) = (DamaSpec::small(), DamaSpec::large());
    let close = |found: Duration, ms: f64| {
        assert!((found.as_secs_f64() * 1e3 / ms - 1.0).abs() < 0.002, "{found:?} is not {ms} ms");
    };
    for (spec, t_f, t_b, t_a, rtt_m, t_q_max) in
        [(&small, 45.6, 137.0, 820.0, 550.0, 339.0), (&large, 273.0, 820.0, 1_641.0, 777.0, 1_273.0)]
    {
        close(spec.multi_frame(), t_f);
        close(spec.super_frame(), t_b);
        close(spec.allocation_delay(), t_a);
        close(spec.mean_rtt(), rtt_m);
        close(spec.t_q_max(), t_q_max);
    }
    close(small.slot(), 1.899);
    close(small.frame(), 11.394);
    // [qsd eq. (6)]: 520 and 55 ms with T_p = 250 ms.
    let propagation = Duration::from_millis(250);
    let [small, large] = [small, large].map(|spec| DamaSpec { propagation, ..spec });
    assert!((large.t_q_opt().as_secs_f64() - 0.520).abs() < 0.001);
    assert!((small.t_q_opt().as_secs_f64() - 0.055).abs() < 0.001);
    // Nearer to the ground the capacity is the slower one by far; with an answer in no time it never is.
    let near = DamaSpec { propagation: Duration::ZERO, ..large.clone() };
    close(near.t_q_max(), 820.364 / 2.0 + 1_640.727 - 273.455);
    let quick = DamaSpec { allocation_delay: 1, slots_per_super_frame: 144, propagation: Duration::ZERO, ..large };
    assert_eq!((quick.validate(), quick.t_q_opt()), (Ok(()), (quick.multi_frame() * 4 - quick.multi_frame() * 3) / 5));
}

#[test]
fn ten_thousand_terminals_are_on_as_many_carriers_as_their_minimum_needs() {
    for (terminals, carriers, each) in [(5, 1, 5), (144, 1, 144), (145, 2, 73), (10_000, 70, 143)] {
        let spec = DamaSpec { terminals, ..DamaSpec::small() };
        assert_eq!((spec.validate(), spec.carrier_count(), spec.terminals_per_carrier()), (Ok(()), carriers, each));
        let dama = Dama::<Plain>::new(&spec, 1, "dama").unwrap();
        assert_eq!(
            (dama.terminals(), dama.carriers(), dama.carrier_of(terminals - 1)),
            (terminals, carriers, carriers - 1)
        );
        // Every terminal has its slot in one of two super-frames, and no slot is nobody's but on the last.
        if terminals == 144 {
            assert!(dama.plan(0).owners.iter().all(Option::is_some));
        }
    }
    // Constant rate needs carriers too: four times 1.5 Mbit/s fit 6.336 Mbit/s.
    let spec = DamaSpec { terminals: 9, cra: Rate::mbps(1.5), ..DamaSpec::large() };
    assert_eq!((spec.carrier_count(), spec.terminals_per_carrier()), (3, 3));
}

#[test]
fn a_packet_leaves_with_the_slot_of_its_last_byte_and_arrives_t_p_later() {
    // Large frame: terminal 1 has slot 1 of each multi-frame, from 1.899 to 3.798 ms, T_f = 273.4545 ms.
    // 1,316 bytes fit one burst of 1,504 with 188 to spare; the second packet takes those and 1,128 of the
    // next; the third the remaining 376 and 940 of the one after.
    let spec = DamaSpec::large();
    let mut dama = Dama::new(&spec, 1, "dama").unwrap();
    for id in 0..3 {
        dama.push(Instant::ZERO, 1, packet(id, Class::Normal, 1_316));
    }
    // Too late for the slot that begins at 1.898990 ms: only for the next.
    dama.push(Instant::from_nanos(1_898_991), 1, packet(3, Class::Normal, 100));
    assert_eq!((dama.queue_len(1), dama.queue_bytes(1)), (4, Bytes::new(4_048)));
    let mut out = Vec::new();
    while dama.next() != Instant::NEVER {
        let now = dama.next();
        while let Some((from, packet)) = dama.pop(now) {
            out.push((packet.id, from, now));
        }
    }
    let slot = |m: u64| slot_end(1 + 144 * m) + spec.propagation;
    assert_eq!(out, [(0, 1, slot(0)), (1, 1, slot(1)), (2, 1, slot(2)), (3, 1, slot(2))]);
    let counters = dama.counters(1);
    assert_eq!((counters.slots_used, counters.max_queue.get(), dama.inside()), (3, 4, 0));
    // Waits: 3.798, 277.252, 550.707 and 548.808 ms.
    assert_eq!(counters.mean_wait().as_micros(), 345_141);
}

#[test]
fn the_mean_wait_of_a_lone_packet_is_half_a_multi_frame() {
    // The reading behind RTT_m = T_f + 2 T_p. 4,320 phases, 0.19 ms apart, are a large super-frame; the middle
    // of each stands for it.
    for layout in [SlotLayout::Contiguous, SlotLayout::Spread] {
        let spec = DamaSpec { layout, ..DamaSpec::large() };
        let delays = (0..4_320).map(|phase| {
            let mut dama = Dama::new(&spec, 1, "dama").unwrap();
            let start = at(&spec, (f64::from(phase) + 0.5) / 4_320.0);
            dama.push(start, 2, burst());
            let mut exit = dama.next();
            while dama.pop(exit).is_none() {
                exit = dama.next();
            }
            exit.since(start).as_secs_f64()
        });
        let mean = delays.sum::<f64>() / 4_320.0;
        let expected = spec.multi_frame().as_secs_f64() / 2.0 + 0.252 + spec.slot().as_secs_f64();
        assert!((mean - expected).abs() < 1e-6, "{mean} s instead of {expected} s");
    }
}

#[test]
fn constant_rate_is_there_from_the_beginning_and_stays() {
    // A fifth of the carrier is 28.8 units: 29 each would be one too many, so the last goes without.
    let spec = DamaSpec { cra: Rate::kbps(1_267.2), rbdc: false, ..DamaSpec::large() };
    let mut dama = Dama::new(&spec, 1, "dama").unwrap();
    let have: Vec<f64> = (0..5).map(|terminal| units(&spec, dama.granted(terminal))).collect();
    assert_eq!(have, [29.0, 29.0, 29.0, 29.0, 28.0]);
    (0..500).for_each(|_| dama.push(Instant::ZERO, 4, burst()));
    assert_eq!(grants(&mut dama, 4, 0..8), [28.0; 8]);
    assert_eq!(units(&spec, dama.requested(4)), 28.8);
}

#[test]
fn volume_asks_for_the_queue_to_be_empty_in_t_s() {
    // T_s = T_b: a queue of 30 slots is 10 units. 1 unit meanwhile takes 3 slots per super-frame.
    let large = DamaSpec::large();
    let spec = DamaSpec { rbdc: false, vbdc: Some(large.super_frame()), ..large };
    let mut dama = Dama::new(&spec, 1, "dama").unwrap();
    (0..30).for_each(|_| dama.push(at(&spec, 0.5), 0, burst()));
    // At boundary 1, 1 of 3 slots of super-frame 0 was after the push: 29 slots; at 2 26; at 3 23, and then
    // 9.67 units, rounded up to 10, are there: none left at 4. The last request stays in force.
    dama.advance(at(&spec, 1.5));
    assert!((units(&spec, dama.requested(0)) - 29.0 / 3.0).abs() < 1e-5);
    let given = grants(&mut dama, 0, 2..8);
    // 29/3 -> 10, 26/3: less than 9.67, so released towards the traffic, which is none, but not below the
    // request: 9; 23/3 -> 8; then nothing: 7.67/2 -> 4, 2, 1.
    assert_eq!(given, [1.0, 10.0, 9.0, 8.0, 4.0, 2.0]);
}

#[test]
fn who_asks_for_more_than_can_be_counted_gets_what_the_others_leave() {
    // 100 packets of 1,504 bytes to be sent within T_s = 1 ns: 1.2e15 bit/s, 2.7e10 units. 144 less 4 minima.
    let spec = DamaSpec { vbdc: Some(Duration::from_nanos(1)), ..DamaSpec::large() };
    let mut dama = Dama::new(&spec, 1, "dama").unwrap();
    (0..100).for_each(|_| dama.push(at(&spec, 0.5), 0, burst()));
    assert_eq!(grants(&mut dama, 0, 2..4), [1.0, 140.0]);
}

#[test]
fn free_capacity_goes_to_all_in_equal_parts() {
    // 144 units, 5 have 1 each: 139 left, 27 each and 4 in turn. F of eq. (1) asks for it from then on.
    let spec = DamaSpec { fca: true, ..DamaSpec::large() };
    let mut dama = Dama::<Plain>::new(&spec, 1, "dama").unwrap();
    let have: Vec<f64> = (0..5).map(|terminal| units(&spec, dama.granted(terminal))).collect();
    assert_eq!(have, [29.0, 29.0, 29.0, 29.0, 28.0]);
    for k in 0..20 {
        dama.advance(at(&spec, f64::from(k) + 0.5));
        let all: f64 = (0..5).map(|terminal| units(&spec, dama.granted(terminal))).sum();
        assert_eq!(all, 144.0, "nothing is left over in super-frame {k}");
        assert!(dama.plan(0).owners.iter().all(Option::is_some));
    }
}

#[test]
fn the_release_follows_a_and_b() {
    // a = 0.9, b = 0.4 from 10 units: N' = 0.9 N + 0.4 (0 - N) = N/2: the same as with 1 and 0.5. With
    // a = 1, b = 0.25: 10, 7.5, 5.625, 4.21875, 3.16, 2.37, 1.78, 1.33, 1.001, 0.75.
    let released = |a: f64, b: f64| {
        let spec = DamaSpec { release_a: a, release_b: b, ..DamaSpec::large() };
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        (0..30).for_each(|_| dama.push(at(&spec, 0.5), 0, burst()));
        grants(&mut dama, 0, 3..14)
    };
    assert_eq!(released(0.9, 0.4)[..6], [10.0, 5.0, 3.0, 2.0, 1.0, 1.0]);
    assert_eq!(released(1.0, 0.25), [10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    assert_eq!(released(1.0, 0.0), [10.0; 11]);
}

#[test]
fn what_was_asked_for_ahead_stays_in_force_only_if_its_own_traffic_is_looked_at() {
    // 24 slots, 8 units, in super-frame 0, none in 1 and 2, and 24 in each from 3 on, when the 8 units come.
    let given = |release_of| {
        let spec = DamaSpec { release_of, ..DamaSpec::large() };
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        let mut given = Vec::new();
        for k in 0..10_u32 {
            if k == 0 || k >= 3 {
                (0..24).for_each(|i| dama.push(at(&spec, f64::from(k) + (f64::from(i) + 0.5) / 24.0), 0, burst()));
            }
            dama.advance(at(&spec, f64::from(k) + 0.99));
            given.push(units(&spec, dama.granted(0)));
        }
        given
    };
    // The requests of 2 and 3, for nothing, are answered in 4 and 5; that of 4, for 8 units, in 6.
    assert_eq!(given(ReleaseOf::Decided), [1.0, 1.0, 1.0, 8.0, 4.0, 2.0, 8.0, 8.0, 8.0, 8.0]);
    // In 4 and 5 it has 8 and fills them: 8 + (8 - 8)/2.
    assert_eq!(given(ReleaseOf::InForce), [1.0, 1.0, 1.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]);
}

/// A packet with a request.
#[derive(Clone, Copy, Debug)]
struct Asking {
    option: Option<QsOption>,
    source: u64,
}

impl Datagram for Asking {
    fn size(&self) -> Bytes {
        Bytes::new(1_316)
    }
    fn class(&self) -> Class {
        Class::Normal
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn flow(&self) -> u64 {
        self.source
    }
    fn quick_start(&mut self) -> Option<&mut QsOption> {
        self.option.as_mut()
    }
}

fn asking(source: u64, kbps: f64) -> Asking {
    let rate = QsRate::at_least(Rate::kbps(kbps)).unwrap();
    let nonce = QsNonce::new(0x1234_5678);
    Asking { option: Some(QsOption { function: QsFunction::Request, rate, qs_ttl: 91, ip_ttl: 63, nonce }), source }
}

/// Pushes one request at 0.5 T_b and takes it out; with what is asked for and given from then on, in units.
fn one_request(spec: &DamaSpec, request: Asking) -> (Asking, Instant, Vec<f64>, Vec<f64>) {
    let mut dama = Dama::new(spec, 1, "dama").unwrap();
    dama.record_events(true);
    dama.push(at(spec, 0.5), 0, request);
    let (mut out, mut exit) = (None, Instant::NEVER);
    while dama.next() != Instant::NEVER {
        exit = dama.next();
        out = dama.pop(exit).map(|(_, packet)| packet).or(out);
    }
    dama.advance(exit.max(at(spec, 20.5)));
    let (mut asked, mut given) = (Vec::new(), Vec::new());
    while let Some(event) = dama.take_event() {
        match event.what {
            DamaEventKind::Request { rate, .. } if event.terminal == 0 => asked.push(units(spec, rate)),
            DamaEventKind::Grant { rate, .. } if event.terminal == 0 => given.push(units(spec, rate)),
            _ => {}
        }
    }
    (out.unwrap(), exit, asked, given)
}

#[test]
fn qsd_adds_the_approved_rate_to_the_next_request_and_holds_the_packet() {
    // 320 kbit/s is 7.27 units; the packet itself, 1,316 of 4,512 bytes, 0.29. Held for 520 ms from 410 ms,
    // it joins the queue at 930 ms, and terminal 0's next slot is the first of multi-frame 4, at 1,093.82 ms.
    // Asked for at 1, given at 3: 7.56, rounded up; then 3.78, 1.89, 0.95.
    let hold = Duration::from_millis(520);
    let spec = DamaSpec::large().with_agent(Agent::Qsd { hold });
    let (packet, exit, asked, given) = one_request(&spec, asking(1, 320.0));
    let option = packet.option.unwrap();
    assert_eq!((option.rate.rate(), option.qs_ttl, option.ip_ttl), (Rate::kbps(320.0), 90, 62));
    assert_eq!(exit, slot_end(4 * 144) + spec.propagation);
    assert!((asked[0] - (320.0 / 44.0 + 1_316.0 / 4_512.0)).abs() < 1e-5);
    assert_eq!(asked[1], 0.0, "it is asked for once");
    assert_eq!(given[..6], [1.0, 1.0, 8.0, 4.0, 2.0, 1.0]);
}

#[test]
fn qs_answers_and_tells_nobody_and_a_terminal_without_agent_breaks_the_chain() {
    // At 410 ms, T_b/2, a packet that is not held has the first slot of multi-frame 2: 546.909 ms.
    let not_held = slot_end(2 * 144) + Duration::from_millis(252);
    let spec = DamaSpec::large().with_agent(Agent::Qs);
    let (packet, exit, asked, given) = one_request(&spec, asking(1, 320.0));
    assert_eq!(packet.option.unwrap().ttl_diff(), asking(1, 320.0).option.unwrap().ttl_diff());
    assert_eq!(exit, not_held);
    assert!((asked[0] - 1_316.0 / 4_512.0).abs() < 1e-5 && given.iter().all(|&units| units == 1.0));
    let spec = DamaSpec::large();
    let (packet, exit, ..) = one_request(&spec, asking(1, 320.0));
    let option = packet.option.unwrap();
    assert_eq!((option.rate.rate(), option.qs_ttl, option.ip_ttl), (Rate::kbps(320.0), 91, 62));
    assert_eq!(exit, not_held);
}

#[test]
fn asking_the_ncc_costs_a_round_trip() {
    let held = |estimator| {
        let mut spec = DamaSpec::large().with_agent(Agent::Qsd { hold: Duration::ZERO });
        spec.quick_start.estimator = estimator;
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        dama.record_events(true);
        let now = at(&spec, 0.5);
        dama.push(now, 0, asking(1, 320.0));
        match dama.take_event().unwrap().what {
            DamaEventKind::QuickStart(decision) => decision.hold_until.since(now),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(held(Estimator::Broadcast), Duration::ZERO);
    assert_eq!(held(Estimator::TbtpSum), Duration::ZERO);
    assert_eq!(held(Estimator::OnDemand), DamaSpec::large().mean_rtt());
}

#[test]
fn what_is_granted_is_not_free_and_fca_is_for_the_ncc_only() {
    // 5 Mbit/s granted of 6.336: 0.8 * 6.336 = 5.069 leaves 69 kbit/s, less than the lowest rate, 80 kbit/s.
    let verdict = |fca: bool, load: Rate, estimator| {
        let mut spec = DamaSpec { fca, ..DamaSpec::large() }.with_agent(Agent::Qs);
        spec.quick_start.estimator = estimator;
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        dama.record_events(true);
        let packets = (load.as_bps() * spec.super_frame().as_secs_f64() / 8.0 / 1_316.0) as u64;
        for k in 0..8 {
            for i in 0..packets {
                let now = at(&spec, f64::from(k) + (i as f64 + 0.5) / packets as f64);
                dama.push(now, 4, Asking { option: None, source: 9 });
            }
        }
        let now = at(&spec, 8.0);
        dama.push(now, 0, asking(1, 320.0));
        let verdicts = std::iter::from_fn(|| dama.take_event()).filter_map(|event| match event.what {
            DamaEventKind::QuickStart(decision) => decision.verdict,
            _ => None,
        });
        verdicts.last().unwrap()
    };
    let approved = QsVerdict::Approved(QsRate::from_code(3).unwrap());
    let refused = QsVerdict::Refused(Refusal::NothingFree);
    let (light, heavy) = (Rate::mbps(1.0), Rate::mbps(5.0));
    for estimator in [Estimator::Broadcast, Estimator::OnDemand, Estimator::TbtpSum] {
        assert_eq!(verdict(false, light, estimator), approved, "{estimator:?}");
        assert_eq!(verdict(false, heavy, estimator), refused, "{estimator:?}");
    }
    // With FCA every slot is somebody's: summing the TBTP finds nothing free however little is asked for.
    assert_eq!(verdict(true, light, Estimator::TbtpSum), refused);
    // Who listens hears what is sent, whatever is assigned.
    let ear = Estimator::Listening { inaccuracy: 0.0, fade: None, spots: 1 };
    assert_eq!(verdict(true, light, ear), approved);
    assert_eq!(verdict(false, heavy, ear), refused);
}

#[test]
fn free_capacity_that_was_asked_for_counts_as_granted() {
    // Nobody sends. F of eq. (1) asks for what each has by FCA; granted, it is no FCA any more, nothing is asked for,
    // it is released, and FCA is back: 15, 22, 14, 7 units in turn. 5 x 22 x 44 = 4,840 kbit/s leave 228.8 below the
    // threshold, of which a quarter is less than the lowest rate.
    let mut spec = DamaSpec { fca: true, ..DamaSpec::large() }.with_agent(Agent::Qs);
    spec.quick_start.estimator = Estimator::Broadcast;
    let refused = (8..24).filter(|&k| {
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        let now = at(&spec, f64::from(k) + 0.5);
        dama.push(now, 0, asking(1, 320.0));
        dama.agent(0).unwrap().router().counters().approved == 0
    });
    assert_eq!(refused.collect::<Vec<_>>(), [11, 15, 19, 23]);
}

#[test]
fn the_ncc_knows_at_the_boundary_and_the_terminals_t_p_later() {
    // 5 Mbit/s from super-frame 0 on: asked for at boundary 1, and at boundary 2 the NCC decides super-frame 3.
    let approved = |estimator, now: Instant| {
        let mut spec = DamaSpec::large().with_agent(Agent::Qs);
        spec.quick_start.estimator = estimator;
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        dama.record_events(true);
        let end = at(&spec, 3.0).as_nanos();
        for i in 0..1_170 {
            let at = Instant::from_nanos(end * (2 * i + 1) / 2_340);
            if at < now {
                dama.push(at, 4, Asking { option: None, source: 9 });
            }
        }
        dama.push(now, 0, asking(1, 320.0));
        let mut events = std::iter::from_fn(|| dama.take_event());
        let decision = events.find_map(|event| match event.what {
            DamaEventKind::QuickStart(decision) => decision.verdict,
            _ => None,
        });
        decision.unwrap().approved().is_some()
    };
    let boundary = slot_end(2 * 432 - 1);
    let (t_p, nanosecond) = (Duration::from_millis(252), Duration::from_nanos(1));
    for (estimator, known) in
        [(Estimator::OnDemand, boundary), (Estimator::Broadcast, boundary + t_p), (Estimator::TbtpSum, boundary + t_p)]
    {
        assert!(approved(estimator, known - nanosecond), "{estimator:?} knows before {known}");
        assert!(!approved(estimator, known), "{estimator:?} does not know at {known}");
    }
}

#[test]
fn a_peak_is_remembered_for_as_many_tbtps_as_are_looked_at_however_quiet_it_was_since() {
    // 5 Mbit/s in the super-frames 0 and 1: asked for at 1 and 2, given in 3 and 4, decided at 2 and 3; halved
    // at 4, below the threshold less 80 kbit/s. The peak of 20 TBTPs is high until the one of boundary 3 is
    // the 21st last: that of boundary 23 comes 252 ms after it.
    let approved = |k: f64| {
        let mut spec = DamaSpec::large().with_agent(Agent::Qs);
        spec.quick_start.router.load = LoadWindow { statistic: Statistic::Peak, observations: 20 };
        let mut dama = Dama::new(&spec, 1, "dama").unwrap();
        dama.record_events(true);
        for i in 0..780 {
            dama.push(at(&spec, (f64::from(i) + 0.5) / 390.0), 4, Asking { option: None, source: 9 });
        }
        dama.push(at(&spec, k), 0, asking(1, 80.0));
        let mut events = std::iter::from_fn(|| dama.take_event());
        let decision = events.find_map(|event| match event.what {
            DamaEventKind::QuickStart(decision) => decision.verdict,
            _ => None,
        });
        decision.unwrap().approved().is_some()
    };
    for (k, expected) in [(2.2, true), (4.0, false), (12.0, false), (23.2, false), (23.4, true), (1_000.0, true)] {
        assert_eq!(approved(k), expected, "at super-frame {k}");
    }
}

#[test]
fn a_flood_of_requests_costs_a_terminal_one_agent_and_nobody_else_anything() {
    let spec = DamaSpec { terminals: 1_000, ..DamaSpec::large() }.with_agent(Agent::Qsd { hold: Duration::ZERO });
    let mut dama = Dama::new(&spec, 1, "dama").unwrap();
    for i in 0..100_000_u64 {
        dama.push(Instant::from_nanos(i * 10_000), 7, asking(i, 320.0));
        assert!(dama.inside() <= 1_000 + 2_000, "queue and air are bounded");
        while let Some(_out) = dama.pop(Instant::from_nanos(i * 10_000)) {}
    }
    assert!(dama.agent(7).is_some() && dama.agent(8).is_none());
    // Asked for at the last boundary: the traffic, and at most 0.8 of the carrier by approvals.
    let traffic = 1e5 * 1_316.0 / 1_504.0 / 432.0 * 144.0 * spec.super_frame().as_secs_f64();
    let added = units(&spec, dama.requested(7)) - traffic;
    assert!((-1.0..=0.8 * 144.0 + 1.0).contains(&added), "{added} units");
}
