//! In front of a receiver with several places: whoever comes new shows that it sees what goes to its address before it gets one.
//!
//! The first challenge from an address is answered with an echo that says TAKEN and a number that follows from a secret, the address, the stream
//! and the time; the next challenge, with that number as its proof, is let in [RFC 9000 §8.1.2]. So who forges addresses takes no place, and
//! nothing is kept of anybody before: the door is as large after a million challenges as before. An echo is no longer than the challenge,
//! and to one network, whoever names it, go [`Answers`] in a bounded number.

use super::{AllowedSender, TOLD_APART};
use crate::challenge::{CONSENT, Challenge, Echo, Message};
use crate::rtcp::{Compound, Rtcp};
use crate::secret::Purpose;
use crate::source::silent;
use crate::{Datagram, Secret, What, packet};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use fairpace_units::{Class, Dscp, Duration, Ecn, Instant, Via};
use std::collections::VecDeque;

/// A number is good for this long at least, and for twice that at most.
const GOOD_FOR: Duration = Duration::from_secs(30);
/// Streams that are known to have ended.
const MOST_ENDED: usize = 1_024;

/// Answers to one network leave so far apart in the long run: 100 a second, of 64 B with all headers.
const ANSWERS_APART: Duration = Duration::from_millis(10);
/// So many answers at once at least.
const LEAST_BURST: u32 = 10;
/// A sender begins with a question in each of two classes.
const FIRST_QUESTIONS: u32 = 2;
/// Rows of the sketch that bounds the answers, and counters of a row: 32 KiB.
const ROWS: usize = 2;
const COUNTERS: usize = 2_048;

/// The part of an address that its owner cannot choose: all of IPv4, the first 64 bits of IPv6 [RFC 6177].
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// How many answers have left to each network of late: a count-min sketch (Cormode and Muthukrishnan, 2005) of virtual schedules [ITU-T I.371].
///
/// Its size is fixed, and nobody chooses who shares a counter with whom: the hash is keyed. A network that shares one counter with a crowd has
/// another in the second row.
#[derive(Debug)]
struct Answers {
    /// When the next answer would leave if they were evenly spread.
    next: [Vec<Instant>; ROWS],
    /// So much earlier it may leave.
    tolerance: Duration,
}

impl Answers {
    /// So many may leave to a network at once.
    fn new(burst: u32) -> Answers {
        Answers {
            next: core::array::from_fn(|_| vec![Instant::ZERO; COUNTERS]),
            tolerance: ANSWERS_APART * burst.saturating_sub(1),
        }
    }

    /// Whether one more answer may leave there; it is counted if so.
    fn afford(&mut self, now: Instant, secret: &Secret, to: IpAddr) -> bool {
        let network = match network(to) {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
        };
        let hash = secret.value(Purpose::Answers, u32::from(to.to_canonical().is_ipv6()), network);
        let halves = [hash as u32, (hash >> 32) as u32];
        let counters = self.next.iter_mut().zip(halves).filter_map(|(row, half)| row.get_mut(half as usize % COUNTERS));
        let mut counters: Vec<&mut Instant> = counters.collect();
        let Some(least) = counters.iter().map(|next| **next).min() else { return false };
        if least > now + self.tolerance {
            return false;
        }
        let next = least.max(now) + ANSWERS_APART;
        for counter in &mut counters {
            **counter = next.max(**counter);
        }
        true
    }
}

/// Whether there is room behind a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A place is free.
    Free,
    /// All places are taken; one may become free.
    Full,
    /// The receiver ends, and lets nobody in any more.
    Closed,
}

/// The verdict on a challenge at the door.
#[derive(Debug)]
pub enum AtDoor<'a> {
    /// Nothing: its address is not one of those that are allowed, its stream has ended, others were told just now that all places are taken, or
    /// as many answers have left to its network as may.
    Ignored,
    /// This answer is to leave.
    Answer(Datagram<'a>),
    /// The challenge's sender has shown that it sees what goes to its address, and may have a place.
    Shown,
}

/// Counts of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DoorStats {
    /// Challenges that were asked for the proof.
    pub asked: u64,
    /// Challenges with the proof for which there was no place, and those without it that came then.
    pub full: u64,
    /// Challenges from an address that is not allowed.
    pub not_allowed: u64,
    /// Challenges to which no answer left because too many had left to their network just now.
    pub held_back: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Door {
    secret: Secret,
    from: Vec<AllowedSender>,
    dscp: Dscp,
    /// When somebody was told last that all places are taken.
    told: Option<Instant>,
    /// The streams that ended of late, and when; the newest last.
    ended: VecDeque<(u32, Instant)>,
    answers: Answers,
    stats: DoorStats,
    buf: Vec<u8>,
}

impl Door {
    /// A door for senders from these addresses (empty: from any) to so many places, which may all be asked for by one host at once; `dscp` is that
    /// of answers in the normal class.
    pub fn new(secret: Secret, from: Vec<AllowedSender>, dscp: Dscp, places: usize) -> Door {
        let (ended, buf) = (VecDeque::new(), Vec::new());
        let asked_at_once = FIRST_QUESTIONS.saturating_mul(u32::try_from(places).unwrap_or(u32::MAX));
        let answers = Answers::new(LEAST_BURST.max(asked_at_once));
        Door { secret, from, dscp, told: None, ended, answers, stats: DoorStats::default(), buf }
    }

    /// The challenge that a datagram begins with, if it does. Also of one with more behind it, such as a seal.
    pub fn challenge(datagram: &[u8]) -> Option<Challenge> {
        if !packet::is_rtcp(datagram) {
            return None;
        }
        let Rtcp::App(app) = Compound::parse(datagram).ok()?.next()? else { return None };
        match Message::parse(&app) {
            Ok(Some(Message::Challenge(challenge))) => Some(challenge),
            _ => None,
        }
    }

    /// A challenge has come, with these marks, from an address that has no place.
    pub fn judge(
        &mut self,
        now: Instant,
        challenge: &Challenge,
        (dscp, ecn): (Dscp, Ecn),
        from: SocketAddr,
        room: Room,
    ) -> AtDoor<'_> {
        if !self.from.is_empty() && !self.from.iter().any(|allowed| allowed.allows(from)) {
            self.stats.not_allowed += 1;
            return AtDoor::Ignored;
        }
        let media = challenge.media.1;
        if self.ended.iter().any(|(ended, at)| *ended == media && !silent(now, *at, CONSENT)) {
            return AtDoor::Ignored;
        }
        if room != Room::Free {
            self.stats.full += 1;
            let just_told = self.told.is_some_and(|told| now.since(told) < TOLD_APART);
            if just_told || challenge.class != Class::Normal {
                return AtDoor::Ignored;
            }
            self.told = Some(now);
            let busy = Echo { busy: true, ends: room == Room::Closed, ..Self::echo(challenge, dscp, ecn) };
            return AtDoor::Answer(self.answer(&busy, challenge.class, from));
        }
        let epoch = now.since(Instant::ZERO).as_nanos() / GOOD_FOR.as_nanos();
        let [new, old] = [epoch + 1, epoch].map(|epoch| self.secret.proof(media, from, epoch as u64));
        if challenge.proof.is_some_and(|proof| [new, old].contains(&proof)) {
            return AtDoor::Shown;
        }
        if !self.answers.afford(now, &self.secret, from.ip()) {
            self.stats.held_back += 1;
            return AtDoor::Ignored;
        }
        self.stats.asked += 1;
        let taken = Echo { taken: true, next_report: new, ..Self::echo(challenge, dscp, ecn) };
        AtDoor::Answer(self.answer(&taken, challenge.class, from))
    }

    /// The stream is over: challenges of it that come late ask for no place.
    pub fn on_ended(&mut self, now: Instant, media: u32) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((media, now));
    }

    /// The counts so far.
    pub fn stats(&self) -> DoorStats {
        self.stats
    }

    /// Tells nothing of a receiver: there is none yet.
    const fn echo(challenge: &Challenge, dscp: Dscp, ecn: Ecn) -> Echo {
        Echo {
            receiver: 0,
            token: challenge.token,
            dscp,
            ecn,
            delay: Duration::ZERO,
            rwnd: None,
            feedback_interval: Duration::ZERO,
            next_report: 0,
            taken: false,
            fec: false,
            busy: false,
            ends: false,
            show: false,
        }
    }

    fn answer(&mut self, echo: &Echo, class: Class, to: SocketAddr) -> Datagram<'_> {
        self.buf.clear();
        echo.emit(&mut self.buf);
        Datagram {
            bytes: &self.buf,
            dscp: if class == Class::Low { Dscp::LE } else { self.dscp },
            ecn: Ecn::NotEct,
            what: What::Echo,
            to: Some(to),
            via: Via::Udp,
            fragments: false,
            quick_start: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::feedback::Request;

    const MARKS: (Dscp, Ecn) = (Dscp::DEFAULT, Ecn::NotEct);

    fn door() -> Door {
        Door::new(Secret::from_seed(1), Vec::new(), Dscp::DEFAULT, 4)
    }

    fn at(n: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, (n >> 8) as u8], n))
    }

    fn challenge(token: u64, proof: Option<u32>) -> Challenge {
        Challenge {
            token,
            class: Class::Normal,
            codec: Codec::Generic,
            media: (96, 7),
            dummy: (97, 8),
            retransmission: None,
            fec: None,
            form: Request::Ccfb,
            proof,
        }
    }

    fn told(at_door: &AtDoor<'_>) -> Echo {
        let AtDoor::Answer(datagram) = at_door else { panic!("{at_door:?}") };
        let Some(Rtcp::App(app)) = Compound::parse(datagram.bytes).unwrap().next() else { panic!("no APP packet") };
        let Ok(Some(Message::Echo(echo))) = Message::parse(&app) else { panic!("no echo") };
        echo
    }

    #[test]
    fn only_the_number_that_went_to_an_address_lets_its_stream_in_and_for_a_minute_at_most() {
        let (mut door, now) = (door(), Instant::from_secs_f64(100.0));
        let first = told(&door.judge(now, &challenge(1, None), MARKS, at(1), Room::Free));
        assert!(first.taken && first.token == 1 && !first.busy);
        let proof = Some(first.next_report);
        let shown = |door: &mut Door, later: f64, c: &Challenge, from| {
            matches!(door.judge(Instant::from_secs_f64(100.0 + later), c, MARKS, from, Room::Free), AtDoor::Shown)
        };
        assert!(shown(&mut door, 0.1, &challenge(2, proof), at(1)));
        assert!(shown(&mut door, 19.9, &challenge(2, proof), at(1)), "a slow path");
        assert!(!shown(&mut door, 60.0, &challenge(2, proof), at(1)), "a recorded one");
        assert!(!shown(&mut door, 0.1, &challenge(2, proof), at(2)), "of another address");
        let other = Challenge { media: (96, 9), ..challenge(2, proof) };
        assert!(!shown(&mut door, 0.1, &other, at(1)), "of another stream");
        assert!(!shown(&mut door, 0.1, &challenge(2, proof.map(|p| p ^ 1)), at(1)), "a guess");
        assert!(
            !Door::new(Secret::from_seed(2), Vec::new(), Dscp::DEFAULT, 4)
                .judge(now, &challenge(2, proof), MARKS, at(1), Room::Free)
                .is_shown(),
            "of another receiver"
        );
    }

    impl AtDoor<'_> {
        fn is_shown(&self) -> bool {
            matches!(self, AtDoor::Shown)
        }
    }

    #[test]
    fn a_full_room_is_told_of_ten_times_a_second_whoever_asks_and_nothing_is_kept() {
        let mut door = door();
        let mut answers = 0;
        for n in 0..20_000_u64 {
            let now = Instant::from_nanos(n * 50_000); // 20,000 a second
            match door.judge(now, &challenge(n, None), MARKS, at(n as u16), Room::Full) {
                AtDoor::Ignored => {}
                answer => {
                    let echo = told(&answer);
                    assert!(echo.busy && !echo.ends && !echo.taken && echo.next_report == 0);
                    answers += 1;
                }
            }
        }
        assert_eq!(answers, 10);
        assert!(door.ended.is_empty() && door.stats().full == 20_000);
        let closed = door.judge(Instant::from_secs_f64(9.0), &challenge(1, None), MARKS, at(1), Room::Closed);
        assert!(told(&closed).ends);
    }

    #[test]
    fn to_one_network_go_a_hundred_answers_a_second_whoever_asks_in_its_name_and_others_are_answered() {
        let mut door = door();
        let size = door.answers.next.iter().map(Vec::len).sum::<usize>();
        let victim = |n: u64| SocketAddr::from(([0x2001, 0xdb8, 0, 7, n as u16, 0, 0, 1], n as u16));
        let (mut answers, mut in_a_slot) = (0, [0; 20]);
        for n in 0..40_000_u64 {
            let now = Instant::from_nanos(n * 50_000); // 20,000 a second
            for from in [SocketAddr::from(([192, 0, 2, 7], n as u16)), victim(n)] {
                if !matches!(door.judge(now, &challenge(n, None), MARKS, from, Room::Free), AtDoor::Ignored) {
                    answers += u64::from(from.is_ipv4());
                    in_a_slot[(n / 2_000) as usize] += 1;
                }
            }
            if n.is_multiple_of(4_000) {
                let other = SocketAddr::from(([198, 51, 100, (n / 4_000) as u8], 5_004));
                assert!(told(&door.judge(now, &challenge(n, None), MARKS, other, Room::Free)).taken, "{n}");
            }
        }
        assert!((200..=210).contains(&answers), "{answers} in two seconds");
        assert!(in_a_slot[0] <= 2 * 20 && in_a_slot[1..].iter().all(|n| *n <= 2 * 10 + 2), "{in_a_slot:?}");
        assert_eq!(door.answers.next.iter().map(Vec::len).sum::<usize>(), size);
        assert!(door.stats().held_back > 79_000);
        // Who shows the number is let in, whoever else asks in its name.
        let now = Instant::from_secs_f64(2.0);
        let proof = door.secret.proof(7, victim(1), u64::from(1_u8));
        assert!(door.judge(now, &challenge(1, Some(proof)), MARKS, victim(1), Room::Free).is_shown());
    }

    #[test]
    fn a_stream_that_has_ended_and_an_address_that_is_not_named_get_no_answer() {
        let from = vec!["192.0.2.0".parse().unwrap()];
        let mut door = Door::new(Secret::from_seed(1), from, Dscp::DEFAULT, 4);
        let now = Instant::from_secs_f64(1.0);
        let other = SocketAddr::from(([192, 0, 2, 9], 1));
        assert!(matches!(door.judge(now, &challenge(1, None), MARKS, other, Room::Free), AtDoor::Ignored));
        assert!(told(&door.judge(now, &challenge(1, None), MARKS, at(1), Room::Free)).taken);
        door.on_ended(now, 7);
        for (later, answered) in [(1, false), (29, false), (31, true)] {
            let now = now + Duration::from_secs(later);
            let judged = door.judge(now, &challenge(1, None), MARKS, at(1), Room::Free);
            assert_eq!(!matches!(judged, AtDoor::Ignored), answered, "{later} s");
        }
        assert_eq!(door.stats().not_allowed, 1);
    }
}
