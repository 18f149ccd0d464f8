//! How large packets may be: the path's MTU, found by asking [RFC 8899].
//!
//! ```text
//!             a reason to doubt the size             three small challenges are answered, the large ones
//!  Confirmed ---------------------------> Asking ---------------------------------------------------------> too large:
//!      ^                                  |    ^      before them are not                                    a smaller
//!      | the large one is answered        |    | nothing is answered: no verdict, again 5 s later            size
//!      +----------------------------------+----+
//! ```
//!
//! The question is a challenge that is padded to the size, with a small one right behind it; the peer echoes both. So all forms
//! of feedback are served alike, no media is risked, and loss without regard to size is no evidence: only a small one that
//! is answered counts against the large one before it.
//!
//! Reasons to doubt are: packets that nobody tells of while the peer answers challenges; a loss, at growing distances, or half of
//! all packets lost; an ICMP message. Such a message can be forged, and alone changes nothing [RFC 8899 §4.6.1]: if the size turns out too large, the
//! message's MTU is the next size. Without one it is the least; if that passes, search goes upwards, by halves of what remains.
//!
//! | RFC 8899 | here |
//! | --- | --- |
//! | BASE_PLPMTU | 1,200 B, or the size asked for if that is less: media begins there, unconfirmed |
//! | MIN_PLPMTU | 576 B (IPv4), 1,280 B (IPv6) |
//! | MAX_PLPMTU | the size asked for |
//! | MAX_PROBES | 3, each with a small one that is answered |
//! | PROBE_TIMER | one and a half round trips, 250 ms at least: a deviation, §5.1.1 has 15 s and 1 s at least |
//! | PMTU_RAISE_TIMER | 30 s, then twice that each time, up to 600 s |
//!
//! A path that does not even carry the least is used without DF: its routers cut the packets [RFC 791 §3.2].

use fairpace_units::{Bytes, Duration, Instant};

/// Media begins with packets of this size at most [RFC 8899 §5.1.2].
const BASE: Bytes = Bytes::new(1_200);
/// MAX_PROBES.
const MOST_FAILURES: u32 = 3;
/// Questions after which no verdict is expected any more: the path is down, or loses too much.
const MOST_PAIRS: usize = 8;
const LEAST_SPACING: Duration = Duration::from_millis(250);
/// After a verdict, and after none, doubts are not heard for so long: each costs a full packet.
const REST: Duration = Duration::from_secs(5);
/// Few paths that lose packets lose them for their size: the second loss is asked about so much later than the first, and each time
/// twice as late, up to this.
const LONGEST_LOSS_REST: Duration = Duration::from_secs(60);
const FIRST_RAISE: Duration = Duration::from_secs(30);
const LONGEST_RAISE: Duration = Duration::from_secs(600);
/// A search ends when it is known so well.
const RESOLUTION: u64 = 32;
/// A share of lost packets is taken over so many.
const WINDOW: u64 = 32;

/// A challenge that is to leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Padded to an IP packet of this size.
    Large(Bytes),
    /// As it is.
    Small,
}

/// The questions about one size.
#[derive(Clone, Debug)]
struct Asking {
    size: Bytes,
    /// Tokens of the large challenges.
    large: Vec<u64>,
    /// The token of the small challenge behind the last large one, and whether it is answered.
    small: Option<(u64, bool)>,
    /// The small one is still to leave.
    wants_small: bool,
    failures: u32,
    due: Instant,
}

/// Packets told of as received or lost when a window began.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    received: u64,
    lost: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PathMtu {
    least: Bytes,
    most: Bytes,
    /// In force.
    size: Bytes,
    /// The smallest size above that which is known not to pass.
    too_large: Option<Bytes>,
    hint: Option<Bytes>,
    fragments: bool,
    asking: Option<Asking>,
    /// When the next larger size is tried; NEVER at the most.
    raise_at: Instant,
    raise: Duration,
    /// When what nobody tells of becomes a doubt.
    doubt_at: Instant,
    deaf_until: Instant,
    /// Until then only heavy loss is a reason, and how long the next time.
    loss_deaf_until: Instant,
    loss_rest: Duration,
    fates: Fates,
}

impl PathMtu {
    /// Packets of up to `most` over a path that carries `least` in any case.
    pub(super) fn new(least: Bytes, most: Bytes) -> Self {
        let size = most.min(BASE.max(least));
        PathMtu {
            least: least.min(most),
            most,
            size,
            too_large: None,
            hint: None,
            fragments: false,
            asking: None,
            raise_at: if size < most { Instant::ZERO } else { Instant::NEVER },
            raise: FIRST_RAISE,
            doubt_at: Instant::NEVER,
            deaf_until: Instant::ZERO,
            loss_deaf_until: Instant::ZERO,
            loss_rest: REST,
            fates: Fates::default(),
        }
    }

    /// The IP size of full packets.
    pub(super) const fn size(&self) -> Bytes {
        self.size
    }

    /// Whether packets leave without DF.
    pub(super) const fn fragments(&self) -> bool {
        self.fragments
    }

    /// Whether the size is not about to change.
    pub(super) const fn is_settled(&self) -> bool {
        self.asking.is_none()
    }

    // --- reasons to doubt ------------------------------------------------------------------------

    /// An ICMP message says that the path carries no more than `mtu`.
    pub(super) fn on_hint(&mut self, now: Instant, mtu: Bytes) {
        if mtu < self.size && self.suspect(now) {
            self.hint = Some(mtu);
        }
    }

    /// The peer answers, and tells of nothing that was sent; it has until `until` to do so.
    pub(super) fn on_untold(&mut self, until: Instant) {
        self.doubt_at = self.doubt_at.min(until);
    }

    /// The peer has told of packets.
    pub(super) const fn heard(&mut self) {
        self.doubt_at = Instant::NEVER;
    }

    /// So many packets have been told of since the beginning.
    pub(super) fn on_fates(&mut self, now: Instant, received: u64, lost: u64) {
        // Packets that were counted as lost may turn out to be late.
        let lost_now = lost.saturating_sub(self.fates.lost);
        let told = received.saturating_sub(self.fates.received) + lost_now;
        if told < WINDOW {
            return;
        }
        self.fates = Fates { received, lost };
        let is_much = lost_now * 2 >= told;
        if (is_much || lost_now > 0 && now >= self.loss_deaf_until) && self.suspect(now) {
            self.loss_deaf_until = now + self.loss_rest;
            self.loss_rest = (self.loss_rest * 2).min(LONGEST_LOSS_REST);
        }
    }

    fn suspect(&mut self, now: Instant) -> bool {
        let heard = self.asking.is_none() && now >= self.deaf_until;
        if heard {
            self.ask(now, self.size);
        }
        heard
    }

    /// The machine itself refuses packets of that IP size; its device may carry `mtu`.
    pub(super) fn on_refused(&mut self, now: Instant, size: Bytes, mtu: Option<Bytes>) {
        if size <= self.size {
            self.hint = mtu.or(self.hint);
        }
        self.fail(now, size);
    }

    // --- questions and answers -------------------------------------------------------------------

    fn ask(&mut self, now: Instant, size: Bytes) {
        // Padding is whole words.
        let size = Bytes::new(size.get().next_multiple_of(4));
        self.asking = Some(Asking { size, large: Vec::new(), small: None, wants_small: false, failures: 0, due: now });
    }

    /// The challenge that is to leave now, if one is; the token of each is told by [`on_asked`](Self::on_asked).
    pub(super) fn poll(&mut self, now: Instant, srtt: Duration) -> Option<Question> {
        if now >= self.doubt_at {
            self.doubt_at = Instant::NEVER;
            self.suspect(now);
        }
        if self.asking.is_none() && now >= self.raise_at {
            self.raise_at = Instant::NEVER;
            self.try_larger(now);
        }
        let asking = self.asking.as_mut()?;
        if asking.wants_small {
            return Some(Question::Small);
        }
        if now < asking.due {
            return None;
        }
        if matches!(asking.small, Some((_, true))) {
            asking.failures += 1;
        }
        if asking.failures >= MOST_FAILURES {
            let size = asking.size;
            self.fail(now, size);
            return self.poll(now, srtt);
        }
        if asking.large.len() >= MOST_PAIRS {
            self.rest(now);
            if self.size < self.most {
                self.raise_at = now + REST;
            }
            return None;
        }
        asking.due = now + LEAST_SPACING.max(srtt * 3 / 2);
        Some(Question::Large(asking.size))
    }

    /// The challenge has left with this token.
    pub(super) fn on_asked(&mut self, question: Question, token: u64) {
        let Some(asking) = &mut self.asking else { return };
        asking.wants_small = matches!(question, Question::Large(_));
        match question {
            Question::Large(_) => asking.large.push(token),
            Question::Small => asking.small = Some((token, false)),
        }
    }

    /// The peer has echoed this token.
    pub(super) fn on_echo(&mut self, now: Instant, token: u64) {
        let Some(asking) = &mut self.asking else { return };
        if asking.large.contains(&token) {
            let size = asking.size;
            self.pass(now, size);
        } else if let Some((small, answered)) = &mut asking.small {
            *answered |= *small == token;
        }
    }

    /// When [`poll`](Self::poll) is to be asked again.
    pub(super) fn next(&self) -> Instant {
        match &self.asking {
            Some(asking) if asking.wants_small => Instant::ZERO,
            Some(asking) => asking.due.min(self.doubt_at),
            None => self.raise_at.min(self.doubt_at),
        }
    }

    // --- verdicts --------------------------------------------------------------------------------

    fn rest(&mut self, now: Instant) {
        self.asking = None;
        self.hint = None;
        self.deaf_until = now + REST;
    }

    fn pass(&mut self, now: Instant, size: Bytes) {
        self.rest(now);
        self.fragments = false;
        self.size = self.size.max(size.min(self.most));
        if self.size >= self.most {
            (self.too_large, self.raise_at, self.raise) = (None, Instant::NEVER, FIRST_RAISE);
        } else if self.too_large.is_some() {
            self.try_larger(now);
        }
    }

    fn fail(&mut self, now: Instant, size: Bytes) {
        if size.get() > self.most.get().next_multiple_of(4) {
            return;
        }
        let hint = self.hint;
        self.rest(now);
        self.too_large = Some(size);
        self.loss_rest = REST;
        if size.get() > self.size.get().next_multiple_of(4) {
            self.try_larger(now);
            return;
        }
        if let Some(hint) = hint.filter(|hint| (self.least..self.size).contains(hint)) {
            self.size = hint;
            self.raise_later(now);
        } else if self.size > self.least {
            self.size = self.least;
            self.ask(now, self.least);
        } else {
            self.fragments = true;
            self.raise_later(now);
        }
    }

    /// Asks about a size between the one in force and the one that is too large; later about the most, if they are near.
    fn try_larger(&mut self, now: Instant) {
        let Some(above) = self.too_large.take() else {
            self.ask(now, self.most);
            return;
        };
        let above = above.min(self.most);
        let between = above.get().saturating_sub(self.size.get());
        if between <= RESOLUTION {
            self.raise_later(now);
            return;
        }
        self.too_large = Some(above);
        let middle = self.size.get() + between / 2;
        self.ask(now, Bytes::new(middle - middle % 4));
    }

    fn raise_later(&mut self, now: Instant) {
        self.too_large = None;
        self.raise_at = now + self.raise;
        self.raise = (self.raise * 2).min(LONGEST_RAISE);
    }
}
