//! Where each frame of the source went, and why.

use crate::path::{About, PathRun};
use core::fmt;
use fairpace_media::{LostFrame, Verdict, timestamp_90k};
use fairpace_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;

/// The end of a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// On the screen when due.
    InTime,
    /// Decoded too late, no packet of it was lost: pacing and queues took too long.
    LateByQueue,
    /// Decoded too late, because a packet of it came again too late, or of one that it refers to.
    LateByRepair,
    /// A packet of it was lost and did not come again in time.
    Hole,
    /// The frame came, but refers to one that did not.
    Reference,
    /// Given up before sending: it had waited too long, or referred to one that was given up.
    NotSent,
    /// The encoder gave no frame for this capture.
    NotEncoded,
    /// Under way when the run ended.
    Open,
}

impl Fate {
    /// All of them, best first.
    pub const ALL: [Fate; 8] = [
        Fate::InTime,
        Fate::LateByQueue,
        Fate::LateByRepair,
        Fate::Hole,
        Fate::Reference,
        Fate::NotSent,
        Fate::NotEncoded,
        Fate::Open,
    ];

    /// A word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::InTime => "in time",
            Fate::LateByQueue => "late (queue)",
            Fate::LateByRepair => "late (repair)",
            Fate::Hole => "hole",
            Fate::Reference => "reference",
            Fate::NotSent => "not sent",
            Fate::NotEncoded => "not encoded",
            Fate::Open => "open",
        }
    }
}

/// One capture of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEntry {
    /// When the picture was taken.
    pub capture: Instant,
    /// Needs no other frame.
    pub key: bool,
    /// The encoder's output; zero if there was none.
    pub size: Bytes,
    /// The size of its picture: a step of [`fairpace_media::PictureFit`], 0 is full.
    pub step: usize,
    /// Packets that left, those of repairs not counted.
    pub packets: u32,
    /// Of these, dropped by the path.
    pub lost: u32,
    /// Packets that left again.
    pub repairs: u32,
    /// Of these, dropped by the path.
    pub repairs_lost: u32,
    /// When its first packet left.
    pub first_left: Option<Instant>,
    /// When it was to be shown.
    pub due: Option<Instant>,
    /// When a decoder had it.
    pub ready: Option<Instant>,
    /// Not whole, and on the screen all the same: its decoder goes on after a loss.
    pub damaged: bool,
    /// Datagrams of it that were not there when they were due; of streams whose decoder takes a part of a frame.
    pub missing: u32,
    /// Frames that a decoder of whole ones did not get here: 1, if this one.
    pub skipped: u32,
    /// The end of its way.
    pub fate: Fate,
}

impl FrameEntry {
    /// A frame of which no packet has left.
    pub(crate) const fn new(capture: Instant, key: bool, size: Bytes, fate: Fate) -> FrameEntry {
        FrameEntry {
            capture,
            key,
            size,
            step: 0,
            packets: 0,
            lost: 0,
            repairs: 0,
            repairs_lost: 0,
            first_left: None,
            due: None,
            ready: None,
            damaged: false,
            missing: 0,
            skipped: 0,
            fate,
        }
    }

    /// From its capture to its time on the screen; `None` if it was not shown before the run ended.
    pub fn glass_to_glass(&self) -> Option<Duration> {
        let shown = self.fate == Fate::InTime || (self.damaged && self.fate != Fate::Open);
        self.due.filter(|_| shown).map(|due| due.since(self.capture))
    }
}

/// The pictures that a sender took from its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captures<'a> {
    /// When the source was first asked; `None` if never.
    pub(crate) began: Option<Instant>,
    /// Time between two pictures.
    pub(crate) interval: Duration,
    /// Every frame that the encoder gave, by the tick of its capture.
    pub(crate) taken: &'a BTreeMap<u32, Taken>,
}

/// A frame that the encoder gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) key: bool,
    pub(crate) size: Bytes,
    /// The size of its picture, as in [`FrameEntry`].
    pub(crate) step: usize,
}

/// A frame as the receiver judged it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The tick of its capture, to 10 ms.
    pub(crate) tick: u32,
    pub(crate) due: Instant,
    pub(crate) ready: Option<Instant>,
    pub(crate) verdict: Verdict,
    pub(crate) damaged: bool,
    pub(crate) missing: u32,
    pub(crate) skipped: u32,
}

/// All captures of the source, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// One entry for each.
    pub frames: Vec<FrameEntry>,
    /// The longest time that the screen stood still, the end of the run included.
    pub longest_freeze: Duration,
}

/// The frames of a ledger by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u32; Fate::ALL.len()]);

impl Tally {
    /// The frames of that fate.
    pub fn of(&self, fate: Fate) -> u32 {
        self.0.get(fate as usize).copied().unwrap_or(0)
    }

    /// All frames whose fate is known.
    pub fn known(&self) -> u32 {
        self.0.iter().sum::<u32>() - self.of(Fate::Open)
    }

    /// Share of the source's frames that were shown in time, 0 to 1.
    pub fn in_time(&self) -> f64 {
        f64::from(self.of(Fate::InTime)) / f64::from(self.known().max(1))
    }
}

impl Ledger {
    /// The entries of a run that has ended.
    pub(crate) fn new(path: &PathRun, source: Captures<'_>, judged: &[Shown]) -> Ledger {
        let Some(began) = source.began else { return Ledger::default() };
        let end = Instant::ZERO + path.duration;
        let mut entries = captures(source, began, end);
        for trip in &path.trips {
            let (About::Media(tick) | About::Repair(tick)) = trip.about else { continue };
            let Some(entry) = entries.get_mut(&tick) else { continue };
            let lost = u32::from(trip.arrived.is_none());
            if matches!(trip.about, About::Media(_)) {
                entry.packets += 1;
                entry.lost += lost;
                entry.first_left.get_or_insert(trip.left);
            } else {
                entry.repairs += 1;
                entry.repairs_lost += lost;
            }
        }
        let mut shown = Vec::new();
        let mut waits_for_repair = false;
        for judged in judged {
            let Some(entry) = nearest(&mut entries, judged.tick) else { continue };
            (entry.due, entry.ready) = (Some(judged.due), judged.ready);
            (entry.damaged, entry.missing, entry.skipped) = (judged.damaged, judged.missing, judged.skipped);
            if judged.damaged || judged.verdict == Verdict::InTime {
                shown.push(judged.due);
            }
            entry.fate = match judged.verdict {
                Verdict::InTime => {
                    waits_for_repair = false;
                    Fate::InTime
                }
                Verdict::Late => {
                    waits_for_repair |= entry.lost > 0;
                    if waits_for_repair { Fate::LateByRepair } else { Fate::LateByQueue }
                }
                Verdict::Lost(LostFrame::Hole) if entry.packets > 0 => Fate::Hole,
                // The play-out's estimate of what a gap held was too high.
                Verdict::Lost(LostFrame::Hole) => entry.fate,
                Verdict::Damaged | Verdict::Lost(LostFrame::Reference) => Fate::Reference,
            };
        }
        // A frame that left and was never judged as one of its own is a hole; one that was not due before the end is open.
        let behind = judged.last().map_or(Duration::ZERO, |j| j.due.since(at(j.tick)));
        for entry in entries.values_mut() {
            if entry.due.unwrap_or(entry.capture + behind) >= end {
                entry.fate = Fate::Open;
            } else if entry.due.is_none() && entry.packets > 0 {
                entry.fate = Fate::Hole;
            }
        }
        let between = shown.windows(2).filter_map(|w| Some(w.get(1)?.since(*w.first()?))).max().unwrap_or_default();
        let to_end = shown.last().map_or(path.duration, |last| end.since((*last).min(end)));
        Ledger { frames: entries.into_values().collect(), longest_freeze: between.max(to_end) }
    }

    /// From a picture's capture to its time on the screen, whole or damaged: the time that this share (0 to 1) of the shown
    /// pictures took at most, by nearest rank; `None` if nothing was shown.
    pub fn glass_to_glass(&self, share: f64) -> Option<Duration> {
        let mut times: Vec<Duration> = self.frames.iter().filter_map(FrameEntry::glass_to_glass).collect();
        times.sort_unstable();
        let rank = (share.clamp(0.0, 1.0) * times.len() as f64).ceil() as usize;
        times.get(rank.max(1) - 1).copied()
    }

    /// The frames by their fate.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for frame in &self.frames {
            if let Some(n) = tally.0.get_mut(frame.fate as usize) {
                *n += 1;
            }
        }
        tally
    }
}

/// A line for each frame, for people.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "capture_s,key,bytes,packets,lost,repairs,repairs_lost,left_ms,ready_ms,due_ms,fate,damaged")?;
        let ms = |at: Option<Instant>, from: Instant| {
            at.map_or_else(String::new, |at| format!("{:.1}", at.as_secs_f64() * 1e3 - from.as_secs_f64() * 1e3))
        };
        for e in &self.frames {
            writeln!(
                f,
                "{:.3},{},{},{},{},{},{},{},{},{},{},{}",
                e.capture.as_secs_f64(),
                u8::from(e.key),
                e.size.get(),
                e.packets,
                e.lost,
                e.repairs,
                e.repairs_lost,
                ms(e.first_left, e.capture),
                ms(e.ready, e.capture),
                ms(e.due, e.capture),
                e.fate.name(),
                u8::from(e.damaged)
            )?;
        }
        Ok(())
    }
}

/// Every capture of the source since the receiver had answered, by its tick; its fate is that it was not sent.
fn captures(source: Captures<'_>, began: Instant, end: Instant) -> BTreeMap<u32, FrameEntry> {
    let mut entries: BTreeMap<u32, FrameEntry> = source
        .taken
        .iter()
        .map(|(tick, taken)| {
            let entry = FrameEntry::new(at(*tick), taken.key, taken.size, Fate::NotSent);
            (*tick, FrameEntry { step: taken.step, ..entry })
        })
        .collect();
    // A source that was stopped, or skips, had pictures all the same.
    let interval = source.interval;
    let mut capture = entries.first_key_value().map_or(began, |(tick, _)| at(*tick));
    while capture < end {
        let tick = timestamp_90k(capture);
        if nearest(&mut entries, tick)
            .is_none_or(|e| e.capture.since(capture).max(capture.since(e.capture)) > interval / 2)
        {
            entries.insert(tick, FrameEntry::new(capture, false, Bytes::ZERO, Fate::NotEncoded));
        }
        capture += interval;
    }
    entries
}

/// The instant of a tick of the 90-kHz clock.
fn at(tick: u32) -> Instant {
    Instant::from_nanos(u64::from(tick) * 100_000 / 9)
}

/// The entry within 10 ms of a tick.
fn nearest(entries: &mut BTreeMap<u32, FrameEntry>, tick: u32) -> Option<&mut FrameEntry> {
    let near = tick.saturating_sub(900)..=tick.saturating_add(900);
    let best = entries.range(near).map(|(t, _)| *t).min_by_key(|t| t.abs_diff(tick))?;
    entries.get_mut(&best)
}
