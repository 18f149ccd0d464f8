//! The state of the path and of its ends for a while, drawn from a seed.

use fairpace_units::{Duration, Instant, RandomStream, Rate};

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// Probabilities for each datagram.
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    pub(crate) late: f64,
    pub(crate) corrupt: f64,
    pub(crate) replay: f64,
    pub(crate) forge: f64,
    /// The peer's feedback claims more than has arrived.
    pub(crate) lie: f64,
    /// DSCP and ECN are erased.
    pub(crate) bleach: bool,
}

/// A thing that happens at the beginning of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Blow {
    None,
    /// Lid closed, or SIGSTOP: sender, receiver.
    Sleep([Option<Duration>; 2]),
    /// A new process, at the same port or another.
    SenderKilled {
        same_port: bool,
    },
    ReceiverKilled,
    /// Ctrl-C at the sender.
    SenderStopped,
}

/// An episode.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) since: Instant,
    pub(crate) until: Instant,
    /// Nothing is wrong: a flow has to get along, at the end at the latest.
    pub(crate) calm: bool,
    /// There, and back.
    pub(crate) ways: [Way; 2],
    pub(crate) blow: Blow,
    /// The source gives no frames.
    pub(crate) pause: bool,
}

fn clear(random: &mut RandomStream) -> Way {
    Way {
        rate: Rate::kbps(400.0 + 4_000.0 * random.uniform()),
        delay: Duration::from_millis(1 + random.below(300)),
        jitter: Duration::from_millis(random.below(5)),
        loss: 0.0,
        duplicate: 0.0,
        late: 0.0,
        corrupt: 0.0,
        replay: 0.0,
        forge: 0.0,
        lie: 0.0,
        bleach: random.below(8) == 0,
    }
}

fn seconds(random: &mut RandomStream, least: u64, most: u64) -> Duration {
    Duration::from_millis(1_000 * least + random.below(1_000 * (most - least)))
}

impl Weather {
    /// The `n`-th episode: every third is calm.
    pub(crate) fn draw(now: Instant, n: u64, random: &mut RandomStream) -> Weather {
        let ways = [clear(random), clear(random)];
        let calm = n.is_multiple_of(3);
        let long = if calm { seconds(random, 120, 150) } else { seconds(random, 2, 45) };
        let mut weather = Weather { since: now, until: now + long, calm, ways, blow: Blow::None, pause: false };
        if !calm {
            for _ in 0..=random.below(3) {
                weather.disturb(random);
            }
        }
        weather
    }

    fn disturb(&mut self, random: &mut RandomStream) {
        let side = random.below(2) as usize;
        let share = random.uniform();
        let way = &mut self.ways[side];
        match random.below(18) {
            0 => way.loss = 0.5 * share,
            1 => way.loss = 1.0,
            2 => self.ways.iter_mut().for_each(|way| way.loss = 1.0),
            3 => way.duplicate = share,
            4 => way.late = 0.5 * share,
            5 => way.corrupt = 0.2 * share,
            6 => way.replay = share,
            7 => way.forge = share,
            8 => self.ways[1].lie = share,
            9 => way.rate = Rate::kbps(20.0 + 400.0 * share),
            10 => way.delay = Duration::from_millis(random.below(2_000)),
            11 => way.jitter = Duration::from_millis(random.below(200)),
            12 => self.pause = true,
            13 => self.blow = Blow::SenderStopped,
            14 => self.blow = Blow::SenderKilled { same_port: share < 0.5 },
            15 => self.blow = Blow::ReceiverKilled,
            16 => {
                let mut asleep = [None; 2];
                asleep[side] = Some(Duration::from_secs_f64(40.0 * share));
                self.blow = Blow::Sleep(asleep);
            }
            // Up to an hour, mostly minutes: the machine of both, or of one.
            _ => {
                let long = Some(Duration::from_secs_f64(3_600.0 * share.powi(6)));
                let other = if random.below(2) == 0 { long } else { None };
                self.blow = Blow::Sleep(if side == 0 { [long, other] } else { [other, long] });
            }
        }
    }
}
