//! A second sender at a receiver that has one.

mod pair;

use fairpace_rtp::challenge::{Echo, LEN, Message};
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{Datagram, Frame, Out, Secret, SenderEvent, SenderSession, StopReason, What};
use fairpace_units::{Dscp, Duration, Ecn, Instant, Rate};
use pair::*;
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
    left: Vec<What>,
    told: Vec<(Instant, SenderEvent)>,
    /// The words of a busy receiver that came.
    busy: Vec<Vec<u8>>,
}

impl Two {
    /// The first has run for 2 s.
    fn begun() -> Two {
        let mut p = Pair::usual("fixed", &[("rate", "100 pkt/s")]);
        p.strangers = Some(Vec::new());
        p.run_until(at(2.0));
        Two { p, second: another(77), left: Vec::new(), told: Vec::new(), busy: Vec::new() }
    }

    fn run_until(&mut self, end: Instant) {
        let from: SocketAddr = ELSEWHERE.parse().unwrap();
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
    two.run_until(at(10.0));
    let news: Vec<_> = two.told.iter().filter(|e| e.1 == SenderEvent::ReceiverBusy).collect();
    assert!(news.len() == 1 && news[0].0 < at(2.05), "{news:?}");
    // Seven seconds after its first challenge, as where nobody answers.
    let stopped = two.stopped();
    assert!(matches!(stopped[..], [(when, StopReason::Busy)] if when >= at(9.0) && when < at(9.05)), "{stopped:?}");
    assert_eq!(two.left, [What::Challenge; 6]);
    assert_eq!((two.p.receiver.peer(), two.p.stopped), (Some(SENDER.parse().unwrap()), None));
    assert!(two.p.received.last().is_some_and(|g| g.arrived > at(9.9)), "the first goes on");
    // To each challenge of the normal class; no longer than that, and nothing of the receiver is in it.
    assert_eq!(two.busy.len(), 3);
    for bytes in &two.busy {
        let Some(Message::Echo(e)) = message(bytes) else { panic!("an echo") };
        assert_eq!((bytes.len(), e.receiver, e.next_report, e.rwnd), (LEN, 0, 0, None));
        assert_eq!((e.taken, e.feedback_interval), (false, Duration::ZERO));
    }
}

/// The last packet of the first comes at 5.05 s, the last challenge of the second at 5 s: it has waited for more than 2 s when the
/// place is free.
#[test]
fn a_second_sender_has_the_place_as_soon_as_the_first_has_gone() {
    let mut two = Two::begun();
    two.run_until(at(5.0));
    two.p.forward.disturb = Box::new(|_, _| vec![]);
    two.run_until(at(7.0));
    assert!(!two.second.is_validated());
    two.run_until(at(7.2));
    assert!(two.second.is_validated());
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(ELSEWHERE.parse().unwrap()), vec![]));
}

/// Out of reach from 3 s to 8 s, the first loses its place. Feedback was heard at 3.1 s last.
#[test]
fn a_sender_that_has_lost_its_place_ends_because_the_receiver_is_busy() {
    let mut two = Two::begun();
    two.run_until(at(3.0));
    two.p.forward.disturb = Box::new(|now, w| if now < at(8.0) { vec![] } else { vec![(Duration::ZERO, w)] });
    two.run_until(at(30.0));
    let Some((when, reason)) = two.p.stopped else { panic!("it goes on") };
    assert_eq!(reason, StopReason::Busy);
    assert!(when > at(17.0) && when < at(20.0), "no sooner than without the word: {when:?}");
    assert_eq!((two.p.receiver.peer(), two.stopped()), (Some(ELSEWHERE.parse().unwrap()), vec![]));
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
