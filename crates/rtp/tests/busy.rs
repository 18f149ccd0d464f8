//! A second sender at a receiver that has one.

mod pair;

use fairpace_rtp::challenge::{Echo, LEN, Message};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{
    Datagram, Frame, Out, ReceiverConfig, ReceiverEvent, ReceiverSession, Secret, SenderEvent, SenderSession,
    StopReason, What,
};
use fairpace_units::{Class, Dscp, Duration, Ecn, Instant, Rate};
use pair::*;
use std::collections::VecDeque;
use std::net::SocketAddr;

const ELSEWHERE: &str = "198.51.100.9:1";

fn another(seed: u64) -> SenderSession {
    SenderSession::new(sender_config(), flow("rcs", &[], Rate::mbps(1.0)), Secret::from_seed(seed))
}

/// The datagrams that leave now.
fn leaving(s: &mut SenderSession, now: Instant) -> Vec<(What, Vec<u8>, Dscp)> {
    let mut out = Vec::new();
    while let Out::Datagram(Datagram { what, bytes, dscp, .. }) = s.poll(now) {
        out.push((what, bytes.to_vec(), dscp));
    }
    out
}

fn message(bytes: &[u8]) -> Option<Message> {
    match Compound::parse(bytes).ok()?.next() {
        Some(Rtcp::App(app)) => Message::parse(&app).ok()?,
        _ => None,
    }
}

fn is_busy(bytes: &[u8]) -> bool {
    matches!(message(bytes), Some(Message::Echo(Echo { busy: true, .. })))
}

/// A receiver with its sender, and another sender elsewhere, without a delay on its way.
struct Two {
    p: Pair,
    second: SenderSession,
    /// The address of the second.
    from: SocketAddr,
    left: Vec<What>,
    told: Vec<(Instant, SenderEvent)>,
    /// The words of a busy receiver that came.
    busy: Vec<Vec<u8>>,
}

impl Two {
    /// The first has run for 2 s.
    fn begun() -> Two {
        Two::begun_at(ReceiverConfig::default())
    }

    fn begun_at(receiver: ReceiverConfig) -> Two {
        let flow = flow("fixed", &[("rate", "100 pkt/s")], Rate::mbps(10.0));
        let mut p = Pair::new(sender_config(), receiver, flow, ms(50));
        p.strangers = Some(Vec::new());
        p.run_until(at(2.0));
        Two::beside(p)
    }

    fn beside(p: Pair) -> Two {
        let from = ELSEWHERE.parse().unwrap();
        Two { p, second: another(77), from, left: Vec::new(), told: Vec::new(), busy: Vec::new() }
    }

    fn run_until(&mut self, end: Instant) {
        let from = self.from;
        while self.p.now < end {
            let now = self.p.now;
            if self.second.is_validated() {
                let timestamp_90k = (now.since(Instant::ZERO).as_millis() * 90) as u32;
                self.second.push_frame(now, Frame { data: vec![0; 50], timestamp_90k, key: true });
            }
            for (what, bytes, dscp) in leaving(&mut self.second, now) {
                self.left.push(what);
                self.p.receiver.handle_datagram(now, &bytes, dscp, Ecn::NotEct, from);
            }
            self.p.run_until(now + ms(10));
            for (to, bytes) in self.p.strangers.replace(Vec::new()).unwrap() {
                assert_eq!(to, from);
                if is_busy(&bytes) {
                    self.busy.push(bytes.clone());
                }
                self.second.handle_datagram(self.p.now, &bytes, Dscp::DEFAULT, Ecn::NotEct);
            }
            while let Some(e) = self.second.next_event() {
                self.told.push((self.p.now, e));
            }
        }
    }

    fn stopped(&self) -> Vec<(Instant, StopReason)> {
        let stopped = |e: &(Instant, SenderEvent)| match e.1 {
            SenderEvent::Stopped(reason) => Some((e.0, reason)),
            _ => None,
        };
        self.told.iter().filter_map(stopped).collect()
    }
}

#[test]
fn a_second_sender_is_told_that_the_receiver_serves_another_one() {
    let mut two = Two::begun();
    two.run_until(at(18.0));
    let news: Vec<_> = two.told.iter().filter(|e| e.1 == SenderEvent::ReceiverBusy).collect();
    assert!(news.len() == 1 && news[0].0 < at(2.05), "{news:?}");
    // Fifteen seconds after its first challenge, where nobody answers seven.
    let stopped = two.stopped();
    assert!(matches!(stopped[..], [(when, StopReason::Busy)] if when >= at(17.0) && when < at(17.05)), "{stopped:?}");
    assert_eq!(two.left, [What::Challenge; 10]);
    assert_eq!((two.p.receiver.peer(), two.p.stopped), (Some(SENDER.parse().unwrap()), None));
    assert!(two.p.received.last().is_some_and(|g| g.arrived > at(17.9)), "the first goes on");
    // To each challenge of the normal class; no longer than that, and nothing of the receiver is in it.
    assert_eq!(two.busy.len(), 5);
    for bytes in &two.busy {
        let Some(Message::Echo(e)) = message(bytes) else { panic!("an echo") };
        assert_eq!((bytes.len(), e.receiver, e.next_report, e.rwnd), (LEN, 0, 0, None));
        assert_eq!((e.taken, e.feedback_interval), (false, Duration::ZERO));
    }
}

/// The second's machine is the first's: with a key it can be the first only, started again, on another port. The last packet of the first
/// comes at 5.05 s, the last challenge of the second at 5 s: it has waited for more than 2 s when the place is free.
#[test]
fn with_a_key_a_sender_of_the_same_machine_has_the_place_as_soon_as_the_first_has_gone() {
    let mut two = Two::begun_at(ReceiverConfig { keyed: true, ..ReceiverConfig::default() });
    two.from = "192.0.2.1:6000".parse().unwrap();
    two.run_until(at(5.0));
    two.p.forward.disturb = Box::new(|_, _| vec![]);
    two.run_until(at(7.0));
    assert!(!two.second.is_validated());
    two.run_until(at(7.2));
    assert!(two.second.is_validated());
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(two.from), vec![]));
}

/// A neighbour behind the same router asks again and again, hears what it is told, and shows it, while the first has nothing to send but
/// its reports, or is not heard for 12 s.
#[test]
fn a_neighbour_of_the_same_address_takes_no_place_in_a_pause() {
    for pauses in [true, false] {
        let mut two = Two::begun();
        two.from = "192.0.2.1:6000".parse().unwrap();
        let fps = two.p.fps;
        if pauses {
            two.p.fps = 0;
        } else {
            two.p.forward.disturb = Box::new(|_, _| vec![]);
        }
        for n in 0..12_u64 {
            two.second = another(100 + n);
            two.run_until(at(3.0 + n as f64));
            assert_eq!(two.p.receiver.peer(), Some(SENDER.parse().unwrap()), "{pauses}: {n} s");
        }
        (two.p.fps, two.p.forward.disturb) = (fps, Box::new(|_, w| vec![(ms(0), w)]));
        two.p.run_until(at(20.0));
        assert!(two.p.received.last().is_some_and(|got| got.arrived > at(19.5)), "{pauses}: {:?}", two.p.stopped);
    }
}

/// The first is killed, and another one begins at once on another port, without a key: it asks for as long as that takes. The last packet of the
/// first comes at 2.05 s.
#[test]
fn without_a_key_a_sender_of_the_same_machine_has_the_place_after_thirteen_seconds() {
    let mut two = Two::begun();
    two.from = "192.0.2.1:6000".parse().unwrap();
    two.p.forward.disturb = Box::new(|_, _| vec![]);
    two.second = another(100);
    two.run_until(at(14.9));
    assert!(!two.second.is_validated() && two.stopped().is_empty());
    two.run_until(at(15.4));
    assert_eq!((two.second.is_validated(), two.p.receiver.peer()), (true, Some(two.from)));
}

/// Challenges from that machine whose answers nobody there sees.
#[test]
fn nobody_takes_a_silent_senders_place_in_its_name() {
    let mut two = Two::begun();
    two.p.forward.disturb = Box::new(|_, _| vec![]);
    for n in 0..27_u16 {
        let from = SocketAddr::from(([192, 0, 2, 1], 6_000 + n));
        for (_, bytes, dscp) in leaving(&mut another(100 + u64::from(n)), two.p.now) {
            two.p.receiver.handle_datagram(two.p.now, &bytes, dscp, Ecn::NotEct, from);
        }
        two.p.run_until(at(3.0 + f64::from(n)));
        assert_eq!(two.p.receiver.peer(), Some(SENDER.parse().unwrap()));
    }
}

/// A minute without a frame, on a path that loses every fifth datagram, while somebody else asks again and again.
#[test]
fn a_sender_that_pauses_keeps_its_place() {
    let mut two = Two::begun();
    (two.p.forward.disturb, two.p.back.disturb) = (lossy(1, 0.2), lossy(2, 0.2));
    let fps = std::mem::take(&mut two.p.fps);
    for n in 0..8_u64 {
        two.second = another(100 + n);
        two.run_until(at(2.0 + 8.0 * (n + 1) as f64));
        assert_eq!((two.p.receiver.peer(), two.p.stopped), (Some(SENDER.parse().unwrap()), None));
    }
    two.p.fps = fps;
    two.p.run_until(at(70.0));
    assert!(two.p.received.last().is_some_and(|got| got.arrived > at(69.5)), "{:?}", two.p.stopped);
    let new = |e: &&(Instant, ReceiverEvent)| matches!(e.1, ReceiverEvent::NewSource { .. });
    assert_eq!(two.p.receiver_events.iter().filter(new).count(), 1, "the stream goes on");
}

/// For 30 s as RFC 7675 has it, and no longer. The last packet comes at 2.05 s.
#[test]
fn a_sender_that_is_silent_keeps_its_place_until_its_consent_ends() {
    let mut two = Two::begun();
    two.p.forward.disturb = Box::new(|_, _| vec![]);
    let ask = |two: &mut Two, n: u16| {
        for (_, bytes, dscp) in leaving(&mut another(100 + u64::from(n)), two.p.now) {
            two.p.receiver.handle_datagram(two.p.now, &bytes, dscp, Ecn::NotEct, two.from);
        }
        two.p.run_until(two.p.now + ms(1_000));
        two.p.receiver.peer()
    };
    for n in 0..29 {
        assert_eq!(ask(&mut two, n), Some(SENDER.parse().unwrap()));
    }
    for n in 29..31 {
        ask(&mut two, n);
    }
    assert_eq!(ask(&mut two, 31), Some(two.from));
}

/// Somebody without media has the place, and asks once a second. The first answer asks for a proof.
#[test]
fn challenges_alone_keep_nobody_out() {
    let mut p = Pair::usual("rcs", &[]);
    (p.fps, p.strangers) = (0, Some(Vec::new()));
    p.run_until(at(5.0));
    let mut two = Two::beside(p);
    two.run_until(at(9.9));
    assert!(!two.second.is_validated());
    two.run_until(at(10.3));
    assert!(two.second.is_validated());
    assert_eq!(two.p.receiver.peer(), Some(two.from));
    two.run_until(at(60.0));
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(two.from), vec![]), "it has media, and keeps the place");
}

/// The receiver is started again at 3 s, while the first cannot be heard: the second is there sooner.
#[test]
fn a_sender_that_has_lost_its_place_ends_because_the_receiver_is_busy() {
    let mut two = Two::begun();
    two.p.run_until(at(3.0));
    two.p.receiver = ReceiverSession::new(ReceiverConfig::default(), Secret::from_seed(3));
    two.p.forward.disturb = Box::new(|now, w| if now < at(8.0) { vec![] } else { vec![(Duration::ZERO, w)] });
    two.run_until(at(30.0));
    let Some((when, reason)) = two.p.stopped else { panic!("it goes on") };
    assert_eq!(reason, StopReason::Busy);
    assert!(when > at(17.0) && when < at(20.0), "no sooner than without the word: {when:?}");
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(two.from), vec![]));
}

/// A thousand addresses ask in a second, each in both classes.
#[test]
fn the_place_is_told_to_be_held_ten_times_a_second_and_no_longer_than_was_asked() {
    let mut two = Two::begun();
    for n in 0..1_000_u16 {
        let from = SocketAddr::from(([198, 51, 100, 1], 1_000 + n));
        for (_, bytes, dscp) in leaving(&mut another(100 + u64::from(n)), two.p.now) {
            two.p.receiver.handle_datagram(two.p.now, &bytes, dscp, Ecn::NotEct, from);
        }
        two.p.run_until(at(2.0 + 0.001 * f64::from(n + 1)));
    }
    let told = two.p.strangers.take().unwrap();
    assert_eq!(told.len(), 10);
    assert!(told.iter().all(|(_, bytes)| bytes.len() == LEN && is_busy(bytes)));
    assert_eq!((two.p.receiver.peer(), two.p.stopped), (Some(SENDER.parse().unwrap()), None));
}

#[test]
fn a_forged_word_of_a_busy_receiver_stops_nobody() {
    let word = |token: u64, receiver: u32, busy: bool| {
        let (dscp, ecn, delay) = (Dscp::DEFAULT, Ecn::NotEct, Duration::ZERO);
        let interval = ms(20);
        let (rwnd, taken, next_report) = (None, false, 7);
        let mut bytes = Vec::new();
        Echo {
            receiver,
            token,
            dscp,
            ecn,
            delay,
            rwnd,
            feedback_interval: interval,
            next_report,
            taken,
            fec: false,
            busy,
            ends: false,
            show: false,
        }
        .emit(&mut bytes);
        bytes
    };
    let mut s = another(1);
    let asked = leaving(&mut s, at(0.0));
    for n in 0..1_000_u64 {
        let forged = word(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0, true);
        s.handle_datagram(at(0.1), &forged, Dscp::DEFAULT, Ecn::NotEct);
    }
    assert_eq!((s.stats().rejected.token, s.next_event()), (1_000, None));
    // With the token, which a challenge shows to its path only: told, but the answer of the receiver itself counts.
    let Some(Message::Challenge(c)) = message(&asked[0].1) else { panic!("a challenge") };
    for _ in 0..3 {
        s.handle_datagram(at(0.2), &word(c.token, 0, true), Dscp::DEFAULT, Ecn::NotEct);
    }
    assert_eq!((s.next_event(), s.next_event()), (Some(SenderEvent::ReceiverBusy), None));
    s.handle_datagram(at(0.3), &word(c.token, 5, false), Dscp::DEFAULT, Ecn::NotEct);
    assert!(s.is_validated());
    // Nobody else answers: the words that were forged change nothing of the reason.
    let mut alone = another(2);
    for t in [0.0, 1.0, 3.0, 7.0] {
        leaving(&mut alone, at(t));
        alone.handle_datagram(at(t), &word(12_345, 0, true), Dscp::DEFAULT, Ecn::NotEct);
    }
    assert_eq!(alone.poll(at(7.1)), Out::Stopped(StopReason::Unreachable));
}

/// A receiver that closes each session before the next, which the first sender uses since 2 s ago, and another sender that asks.
fn one_by_one() -> Two {
    one_by_one_with(undisturbed())
}

fn one_by_one_with(forward: Disturb) -> Two {
    let config = ReceiverConfig { one_by_one: true, keyed: true, ..ReceiverConfig::default() };
    let flow = flow("fixed", &[("rate", "100 pkt/s")], Rate::mbps(10.0));
    let mut p = Pair::new(sender_config(), config, flow, ms(50));
    p.strangers = Some(Vec::new());
    p.forward.disturb = forward;
    p.run_until(at(2.0));
    Two::beside(p)
}

fn ends(events: &[(Instant, ReceiverEvent)]) -> Vec<&ReceiverEvent> {
    events.iter().map(|(_, e)| e).filter(|e| !matches!(e, ReceiverEvent::NewSource { .. })).collect()
}

#[test]
fn the_next_sender_is_let_in_when_the_session_before_is_closed_and_no_sooner() {
    let mut two = one_by_one();
    two.run_until(at(3.5));
    two.p.sender.stop(at(3.5));
    two.run_until(at(4.5));
    assert!(matches!(ends(&two.p.receiver_events)[..], [ReceiverEvent::Bye { .. }]), "{:?}", two.p.receiver_events);
    assert_eq!((two.p.receiver.peer(), two.second.is_validated()), (None, false), "it has waited since 3 s");
    let first = two.p.receiver.stats().media;
    assert!(first.received > 300, "{first:?}");
    two.p.receiver.next_session();
    two.run_until(at(5.5));
    let second = two.p.receiver.stats().media;
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(two.from), vec![]));
    assert!(second.received > 10 && second.received < first.received && second.ssrc != first.ssrc, "{second:?}");
}

#[test]
fn who_waits_for_a_receiver_that_ends_is_told_so() {
    let mut two = one_by_one();
    two.run_until(at(3.5));
    two.p.sender.stop(at(3.5));
    two.run_until(at(4.5));
    two.p.receiver.stop(at(4.5));
    two.run_until(at(4.6));
    let stopped = two.stopped();
    assert!(matches!(stopped[..], [(_, StopReason::PeerEnded)]), "{stopped:?}");
    // While the first is still there, too.
    let mut two = one_by_one();
    two.run_until(at(3.5));
    two.p.receiver.stop(at(3.5));
    two.run_until(at(4.6));
    assert!(matches!(two.stopped()[..], [(_, StopReason::PeerEnded)]), "{:?}", two.told);
    assert_eq!(two.p.stopped.map(|(_, reason)| reason), Some(StopReason::PeerBye));
}

/// Without a token of one of its challenges nobody tells a sender that the receiver ends, and a session that runs ends by its receiver's
/// goodbye.
#[test]
fn a_forged_word_of_a_receiver_that_ends_stops_no_session() {
    let word = |token: u64| {
        let mut bytes = Vec::new();
        Echo {
            receiver: 0,
            token,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            delay: Duration::ZERO,
            rwnd: None,
            feedback_interval: Duration::ZERO,
            next_report: 0,
            taken: false,
            fec: false,
            busy: true,
            ends: true,
            show: false,
        }
        .emit(&mut bytes);
        bytes
    };
    let mut asking = another(1);
    let asked = leaving(&mut asking, at(0.0));
    let Some(Message::Challenge(c)) = message(&asked[0].1) else { panic!("a challenge") };
    asking.handle_datagram(at(0.1), &word(c.token ^ 1), Dscp::DEFAULT, Ecn::NotEct);
    assert_eq!((asking.stats().rejected.token, asking.next_event()), (1, None));
    asking.handle_datagram(at(0.1), &word(c.token), Dscp::DEFAULT, Ecn::NotEct);
    assert_eq!(asking.next_event(), Some(SenderEvent::Stopped(StopReason::PeerEnded)));

    let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
    // The question in the low class is lost, and its token stays good.
    let lost = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let tap = lost.clone();
    p.forward.disturb = Box::new(move |_, w| match message(&w.bytes) {
        Some(Message::Challenge(c)) if c.class == Class::Low => {
            tap.borrow_mut().push(c.token);
            vec![]
        }
        _ => vec![(Duration::ZERO, w)],
    });
    p.run_until(at(5.0));
    let tokens = lost.take();
    assert!(!tokens.is_empty() && p.sender.is_validated());
    for token in tokens {
        p.sender.handle_datagram(at(5.0), &word(token), Dscp::DEFAULT, Ecn::NotEct);
    }
    p.run_until(at(8.0));
    assert_eq!((p.stopped, p.sender.stats().rejected.token), (None, 0));
}

/// Packets and challenges of a session that is over come late: they begin no session.
#[test]
fn what_comes_late_of_a_session_that_is_over_begins_none() {
    let late = std::rc::Rc::new(std::cell::RefCell::new(VecDeque::new()));
    let mut two = one_by_one_with(tap(late.clone()));
    two.p.run_until(at(3.0));
    // Dismissed: the sender goes on until it hears that.
    two.p.receiver.dismiss(at(3.0));
    two.p.run_until(at(4.0));
    assert_eq!((two.p.receiver.peer(), two.p.stopped.unwrap().1), (None, StopReason::PeerBye));
    two.p.receiver.next_session();
    let from = SENDER.parse().unwrap();
    let again = |r: &mut ReceiverSession, now: Instant| {
        for (_, w) in late.borrow().iter() {
            r.handle_datagram(now, &w.bytes, w.dscp, w.ecn, from);
        }
        while !matches!(r.poll(now), Out::Wait(_)) {}
        r.peer()
    };
    assert!(late.borrow().len() > 100 && late.borrow().iter().any(|(_, w)| w.what == What::Challenge));
    assert_eq!(again(&mut two.p.receiver, at(4.0)), None);
    assert_eq!(two.p.receiver.stats().media.received, 0);
}

/// Anybody can ask, with an address that is not his: an idle receiver goes on waiting for its session.
#[test]
fn challenges_alone_end_no_receiver() {
    let config = ReceiverConfig { one_by_one: true, ..ReceiverConfig::default() };
    let mut r = ReceiverSession::new(config, Secret::from_seed(3));
    let from = ELSEWHERE.parse().unwrap();
    for (_, bytes, dscp) in leaving(&mut another(5), at(0.0)) {
        r.handle_datagram(at(0.0), &bytes, dscp, Ecn::NotEct, from);
    }
    let run = |r: &mut ReceiverSession, now: Instant| while !matches!(r.poll(now), Out::Wait(_)) {};
    run(&mut r, at(0.0));
    assert_eq!(r.peer(), Some(from));
    for second in 1..40 {
        run(&mut r, at(f64::from(second)));
    }
    assert_eq!((r.peer(), r.next_event()), (None, None));
    let mut honest = another(6);
    for (_, bytes, dscp) in leaving(&mut honest, at(40.0)) {
        r.handle_datagram(at(40.0), &bytes, dscp, Ecn::NotEct, from);
    }
    assert_eq!(r.peer(), Some(from), "and the place is free");
}

/// The first is killed and started again, on another port: a session of its own, or more of the same one, as the driver says.
#[test]
fn a_sender_that_takes_a_silent_ones_place_begins_another_session_or_goes_on_with_the_same() {
    for apart in [true, false] {
        let mut two = one_by_one();
        two.from = "192.0.2.1:6000".parse().unwrap();
        two.run_until(at(5.0));
        two.p.forward.disturb = Box::new(|_, _| vec![]);
        two.run_until(at(7.5));
        assert_eq!(ends(&two.p.receiver_events), [&ReceiverEvent::Replaced]);
        assert_eq!((two.p.receiver.peer(), two.second.is_validated()), (None, false));
        let first = two.p.receiver.stats().media.received;
        if apart {
            two.p.receiver.next_session();
        } else {
            two.p.receiver.same_session();
        }
        two.run_until(at(8.5));
        let (all, before) = (two.p.receiver.stats().media.received, if apart { 0 } else { first });
        assert_eq!(two.p.receiver.peer(), Some(two.from));
        assert!(first > 400 && all > before + 10 && all < before + 400, "{apart}: {first}, then {all}");
    }
}

fn asking() -> ReceiverConfig {
    ReceiverConfig { one_by_one: true, ask_proof: true, ..ReceiverConfig::default() }
}

/// One challenge more, and nothing later: a proof that is lost is shown again.
#[test]
fn a_sender_shows_at_once_that_it_hears_and_loses_no_time_by_it() {
    let run = |config: ReceiverConfig, lose: usize| {
        let mut p =
            Pair::new(sender_config(), config, flow("fixed", &[("rate", "100 pkt/s")], Rate::mbps(10.0)), ms(50));
        let mut shown = 0;
        p.forward.disturb = Box::new(move |_, w| {
            let shows = matches!(message(&w.bytes), Some(Message::Challenge(c)) if c.proof.is_some());
            shown += usize::from(shows);
            if shows && shown <= lose { vec![] } else { vec![(Duration::ZERO, w)] }
        });
        p.run_until(at(4.0));
        let first = p.received.first().map(|g| g.arrived);
        let challenges = p.count(What::Challenge);
        p.sender.stop(p.now);
        p.run_until(at(4.2));
        (p.receiver.stats().proven, challenges, first)
    };
    let (proven, unasked, first) = run(ReceiverConfig::default(), 0);
    assert!(!proven);
    assert_eq!(run(asking(), 0), (true, unasked + 1, first));
    assert_eq!(run(asking(), 2), (true, unasked + 3, first));
    let (proven, challenges, _) = run(asking(), usize::MAX);
    assert!(proven && challenges <= unasked + 10, "by the goodbye, at the last; {challenges}");
}

/// Who forges an address may send media from there, and shows nothing: not by guessing, nor by what went to an address of its own.
#[test]
fn who_does_not_hear_what_goes_to_its_address_shows_no_proof() {
    let mut r = ReceiverSession::new(asking(), Secret::from_seed(3));
    let told = |r: &mut ReceiverSession, now: Instant| {
        let mut numbers = Vec::new();
        while let Out::Datagram(d) = r.poll(now) {
            if let Some(Message::Echo(e)) = message(d.bytes) {
                numbers.extend(e.show.then_some(e.next_report));
            }
        }
        numbers
    };
    let challenge = |s: &mut SenderSession, now: Instant| {
        let asked = leaving(s, now);
        let Some(Message::Challenge(c)) = message(&asked[0].1) else { panic!("a challenge") };
        c
    };
    let hand_in = |r: &mut ReceiverSession, now: Instant, c: fairpace_rtp::challenge::Challenge, from: SocketAddr| {
        let mut bytes = Vec::new();
        c.emit(&mut bytes);
        r.handle_datagram(now, &bytes, Dscp::DEFAULT, Ecn::NotEct, from);
    };
    let media = |r: &mut ReceiverSession, now: Instant, ssrc: u32, from: SocketAddr| {
        let mut came = 0;
        for sequence in 0..3 {
            let mut bytes = Vec::new();
            fairpace_rtp::packet::Packet {
                marker: true,
                payload_type: 96,
                sequence,
                timestamp: 0,
                ssrc,
                extensions: Default::default(),
                payload: &[0x10, 0, 0],
            }
            .emit(&mut bytes);
            came += u32::from(r.handle_datagram(now, &bytes, Dscp::DEFAULT, Ecn::NotEct, from).is_some());
        }
        came
    };
    // At its own address it is told a number.
    let own: SocketAddr = ELSEWHERE.parse().unwrap();
    let mut c = challenge(&mut another(5), at(0.0));
    hand_in(&mut r, at(0.0), c, own);
    let number = told(&mut r, at(0.0))[0];
    for second in 1..=40 {
        told(&mut r, at(f64::from(second)));
    }
    assert_eq!(r.peer(), None, "it has gone");
    let forged: SocketAddr = "192.0.2.77:9".parse().unwrap();
    hand_in(&mut r, at(41.0), c, forged);
    assert_eq!(told(&mut r, at(41.0)).len(), 1, "somebody else is told");
    for guess in (number.wrapping_sub(500)..=number.wrapping_add(500)).chain(0..1_000) {
        (c.token, c.proof) = (u64::from(guess), Some(guess));
        hand_in(&mut r, at(41.1), c, forged);
    }
    assert_eq!((r.peer(), media(&mut r, at(41.2), c.media.1, forged)), (Some(forged), 3));
    assert!(!r.stats().proven);
    // And a tool without challenges is taken in, and shows nothing either.
    let mut plain = ReceiverSession::new(asking(), Secret::from_seed(4));
    assert_eq!((media(&mut plain, at(0.0), 7, forged), plain.stats().proven), (2, false));
    // The number itself, which went there, does.
    let mut heard = ReceiverSession::new(asking(), Secret::from_seed(5));
    let mut c = challenge(&mut another(6), at(0.0));
    hand_in(&mut heard, at(0.0), c, own);
    (c.token, c.proof) = (1, told(&mut heard, at(0.0)).pop());
    hand_in(&mut heard, at(0.1), c, own);
    assert_eq!((heard.stats().proven, told(&mut heard, at(0.1))), (true, vec![]), "and it is not asked again");
}

#[test]
fn who_was_told_to_wait_and_gets_the_place_was_sent_three_times_as_much_at_most() {
    let elsewhere: SocketAddr = ELSEWHERE.parse().unwrap();
    let Two { mut p, mut second, .. } = Two::begun();
    let (what, bytes, dscp) = leaving(&mut second, p.now).remove(0);
    assert_eq!(what, What::Challenge);
    // In the name of an address that hears the answers and says nothing. The first ends, and so it gets the place.
    p.receiver.handle_datagram(p.now, &bytes, dscp, Ecn::NotEct, elsewhere);
    p.sender.stop(p.now);
    p.run_until(at(60.0));
    let sent: Vec<usize> = p
        .strangers
        .unwrap()
        .iter()
        .map(|(to, bytes)| (*to, bytes.len()))
        .filter(|(to, _)| *to == elsewhere)
        .map(|(_, len)| len)
        .collect();
    assert!(sent.len() > 2, "told to wait, let in, and reports: {sent:?}");
    assert!(sent.iter().sum::<usize>() <= 3 * bytes.len(), "{sent:?} B for {}", bytes.len());
}
