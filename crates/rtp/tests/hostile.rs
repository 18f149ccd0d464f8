//! A sender and a receiver over a path that does with each datagram what a tape of bytes says: lose, double, hold back,
//! change, cut, or send something else in its place. Every scheme, in virtual time, so that a tape always gives the same run.
//!
//! Tapes come from `proptest` (`PROPTEST_CASES` says how many), and from `tests/corpus/pair`, which are tried first. With the
//! feature `canary` the library has a bug that these tests must find, or they find nothing.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_control::schemes;
use fairpace_rtp::{ReceiverConfig, ReceiverEvent, SenderConfig, What};
use fairpace_units::{Duration, Instant, Rate};
use pair::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// The most that the flow may send, headers included.
const CAP: Rate = Rate::kbps(800.0);
/// Virtual time of a run: past the challenges, past the slow start.
const RUN: Duration = Duration::from_secs(4);

/// A scheme, its settings, and a form of feedback that is not the scheme's own.
type Variant = (&'static str, &'static [(&'static str, &'static str)], Option<Form>);

/// Settings beside the usual ones: the forms of feedback that no scheme asks for of itself.
const VARIANTS: [Variant; 4] = [
    ("tfrc", &[("measured_by", "receiver")], None),
    ("tfrc-sp", &[("measured_by", "receiver")], None),
    ("fixed", &[("rate", "800 kbit/s")], None),
    ("rcs", &[], Some(Form::Twcc)),
];

/// Scheme, settings and form by a number: 17 of them.
fn scheme(n: u8) -> Variant {
    let n = usize::from(n) % (schemes().len() + VARIANTS.len());
    schemes().get(n).map_or_else(|| VARIANTS[n - schemes().len()], |info| (info.name, &[], None))
}

/// The bytes that decide, again from the beginning when they are over.
#[derive(Debug)]
struct Tape {
    bytes: Vec<u8>,
    at: usize,
}

impl Tape {
    fn next(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(u8::MAX);
        self.at = (self.at + 1) % self.bytes.len().max(1);
        byte
    }

    fn place(&mut self, len: usize) -> usize {
        // Headers are where it hurts, fixed ones most.
        let byte = self.next();
        usize::from(byte) % len.clamp(1, if byte < 128 { 16 } else { 80 })
    }
}

/// The datagrams that the path has seen and passed on.
#[derive(Debug, Default)]
struct Path {
    seen: Vec<Vec<u8>>,
    /// UDP payload that reached the receiver, and that came from it.
    to_receiver: usize,
    from_receiver: usize,
    /// When the first echo arrived, changed or not.
    echo: Option<Instant>,
}

/// Datagrams that the path keeps to play them again.
const MOST_SEEN: usize = 256;

fn hostile(tape: Rc<RefCell<Tape>>, path: Rc<RefCell<Path>>, forward: bool) -> Disturb {
    Box::new(move |now, wire| {
        let (mut tape, mut path) = (tape.borrow_mut(), path.borrow_mut());
        if path.seen.len() < MOST_SEEN {
            path.seen.push(wire.bytes.clone());
        }
        if !forward {
            path.from_receiver += wire.bytes.len();
        }
        let later = |n: u8| Duration::from_millis(u64::from(n));
        let mut other = wire.clone();
        let out = match tape.next() % 16 {
            0 => vec![],
            1 => vec![(Duration::ZERO, wire.clone()), (later(tape.next()), wire)],
            2 => vec![(later(tape.next()), wire)],
            3 => {
                let i = tape.place(other.bytes.len());
                other.bytes[i] ^= tape.next();
                vec![(Duration::ZERO, other)]
            }
            4 => {
                let i = tape.place(other.bytes.len());
                other.bytes[i] = tape.next();
                vec![(Duration::ZERO, wire), (later(tape.next()), other)]
            }
            5 => {
                other.bytes.truncate(tape.place(wire.bytes.len()));
                vec![(Duration::ZERO, other), (Duration::ZERO, wire)]
            }
            // Something of before, of either direction, as it was or changed.
            6 => {
                let n = usize::from(tape.next()) % path.seen.len();
                other.bytes = path.seen[n].clone();
                let i = tape.place(other.bytes.len());
                other.bytes[i] ^= tape.next();
                vec![(Duration::ZERO, wire), (later(tape.next()), other)]
            }
            7 => {
                other.bytes = (0..tape.next() % 64).map(|_| tape.next()).collect();
                if let [first, second, ..] = other.bytes.as_mut_slice() {
                    (*first, *second) = (0x80 | *first & 0x3f, 192 | *second & 0x1f);
                }
                vec![(Duration::ZERO, wire), (Duration::ZERO, other)]
            }
            _ => vec![(Duration::ZERO, wire)],
        };
        if forward {
            path.to_receiver += out.iter().map(|(_, w)| w.bytes.len()).sum::<usize>();
        } else if let Some(soonest) = out.iter().filter(|(_, w)| w.what == What::Echo).map(|(wait, _)| *wait).min() {
            let arrival = now + ms(50) + soonest;
            path.echo = Some(path.echo.map_or(arrival, |echo| echo.min(arrival)));
        }
        out
    })
}

/// A run by the tape, whose first two bytes choose the scheme and what repairs there are.
fn run(bytes: &[u8]) {
    let [chosen, options, rest @ ..] = bytes else { return };
    let (name, settings, form) = scheme(*chosen);
    let repair = options & 1 == 1;
    let config = SenderConfig { retransmission: repair, fec: repair, form, ..sender_config() };
    let receiver = ReceiverConfig { nack: repair, fec: repair, ..ReceiverConfig::default() };
    let mut p = Pair::new(config, receiver, flow(name, settings, CAP), ms(50));
    let (tape, path) = (Rc::new(RefCell::new(Tape { bytes: rest.to_vec(), at: 0 })), Rc::default());
    p.forward.disturb = hostile(Rc::clone(&tape), Rc::clone(&path), true);
    p.back.disturb = hostile(tape, Rc::clone(&path), false);
    p.strangers = Some(Vec::new());
    p.run_until(Instant::ZERO + RUN);

    let path = path.borrow();
    // A receiver that measures may show itself by its first report instead of an echo.
    let measured = settings.iter().any(|(key, _)| *key == "measured_by");
    let before_echo = p.sent.iter().filter(|left| path.echo.is_none_or(|echo| left.at < echo));
    let early: Vec<_> = before_echo.filter(|left| left.what != What::Challenge).collect();
    assert!(measured || early.is_empty(), "{name}: sent before an echo: {early:?}");

    // RTCP has its own share beside the flow's packets; a quantum of packets may leave at once.
    let sent: u64 = p.sent.iter().map(|left| left.len as u64 + 28).sum();
    let most = (CAP * RUN).get() * 21 / 20 + 12 * PACKET;
    assert!(sent <= most, "{name}: {sent} B in {RUN:?}, at most {most}");

    assert!(path.from_receiver <= 3 * path.to_receiver, "{name}: {} for {}", path.from_receiver, path.to_receiver);
    // Whoever is taken for a new source begins anew with its numbers.
    let is_new = |event: &ReceiverEvent| matches!(event, ReceiverEvent::NewSource { .. });
    let new: Vec<_> = p.receiver_events.iter().filter(|(_, e)| is_new(e)).map(|(at, _)| *at).collect();
    let source = |got: &Got| new.iter().filter(|at| **at <= got.arrived).count();
    let mut numbers: Vec<_> = p.received.iter().map(|got| (source(got), got.sequence)).collect();
    numbers.sort_unstable();
    let twice: Vec<_> = numbers.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{name}: handed out twice (source, number): {twice:?}");
}

#[test]
#[cfg_attr(feature = "canary", should_panic(expected = "the canary"))]
fn every_scheme_bears_the_tapes_that_are_kept() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/pair");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{folder} has lost its tapes");
    for file in files {
        let tape = std::fs::read(&file).unwrap();
        for chosen in 0..(schemes().len() + VARIANTS.len()) as u8 {
            run(&[&[chosen, chosen], tape.as_slice()].concat());
        }
    }
}

#[test]
#[cfg(not(feature = "canary"))]
fn an_undisturbed_tape_is_a_flow_that_delivers() {
    let mut p = Pair::new(sender_config(), ReceiverConfig::default(), flow("rcs", &[], CAP), ms(50));
    let tape = Rc::new(RefCell::new(Tape { bytes: Vec::new(), at: 0 }));
    p.forward.disturb = hostile(tape, Rc::default(), true);
    p.run_until(Instant::ZERO + RUN);
    assert!(p.received.len() > 100, "{}", p.received.len());
}

/// As many as `PROPTEST_CASES` says, and not fewer than 10,000: some seconds.
fn tapes() -> ProptestConfig {
    let config = ProptestConfig::default();
    // The planted bug is nothing to be remembered.
    let failure_persistence = if cfg!(feature = "canary") { None } else { config.failure_persistence.clone() };
    ProptestConfig { cases: config.cases.max(10_000), failure_persistence, ..config }
}

proptest! {
    #![proptest_config(tapes())]

    #[test]
    #[cfg_attr(feature = "canary", should_panic(expected = "the canary"))]
    fn any_tape_does_no_harm(tape in prop::collection::vec(any::<u8>(), 2..400)) {
        run(&tape);
    }
}
