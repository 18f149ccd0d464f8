//! The log of the link, in the format of mahimahi's `mm-link --uplink-log`, which its `mm-throughput-graph` and
//! `mm-delay-graph` read.
//!
//! ```text
//!   # base timestamp: 0
//!   12 + 1500          a packet of so many bytes came (times in ms)
//!   15 # 1500          the link could carry so many bytes
//!   15 - 1500 3        a packet left the link, so many ms after it had come; propagation comes after that
//!   16 d 1 1500        packets were dropped, and their bytes
//! ```
//!
//! Differences: bytes are those of IP (mahimahi's include 4 of its device); every drop is told, not only the queue's;
//! a link of variable rate that is no mahimahi trace has no `#` lines, nor has one without limit.
//!
//! A line waits for those that may still come before it, which takes as long as the link's propagation; a second later it is on disk.

use super::files::Files;
use crate::args::Shell as Args;
use crate::error::{Failure, Outcome};
use fairpace_path::{LinkSpec, RateModel};
use fairpace_sim::{Direction, Observer, PacketEvent, PacketFate};
use fairpace_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one opportunity.
const OPPORTUNITY: u64 = 1_500;
/// So often the lines that are known go to disk, by whoever notes packets.
const FLUSHED_EACH: Duration = Duration::from_millis(500);
/// And if nobody does, so much later.
const NOTHING_CAME: Duration = Duration::from_millis(250);
/// Packets may be noted so long after their instant, when the emulator is late; a line of one that is noted later yet is out of order.
const LATE: Duration = Duration::from_millis(100);

/// The logs of both ways, as far as they are asked for.
#[derive(Clone)]
pub(super) struct Log(Arc<[Mutex<Option<Way>>; 2]>);

impl Log {
    /// Creates the files; `links` are those of the way up and of the way down, if the path is such a pair.
    pub(super) fn create(args: &Args, links: Option<[&LinkSpec; 2]>, files: &mut Files) -> Outcome<Log> {
        let Some(links) = links else {
            if args.up_log.is_some() || args.down_log.is_some() {
                let what =
                    "`--up-log` and `--down-log` are of one link, and this path has several hops or another medium";
                return Err(Failure::usage(what).hint("leave them out; `--pcap` and `--report` take any path"));
            }
            return Ok(Log(Arc::new([Mutex::new(None), Mutex::new(None)])));
        };
        let mut way = |name: &str, path: &Option<PathBuf>, link: &LinkSpec| {
            let Some(path) = path else { return Ok(None) };
            let file = files.create(path)?;
            Way::create(name, path, file, link).map(Some).map_err(|e| Failure::unwritable(path, &e))
        };
        let [up, down] = links;
        let ways = [way("uplink", &args.up_log, up)?, way("downlink", &args.down_log, down)?];
        Ok(Log(Arc::new(ways.map(Mutex::new))))
    }

    /// Who is to be told of each packet; `None` if nobody asked.
    pub(super) fn observer(&self) -> Option<Box<dyn Observer>> {
        let asked = self.ways().any(|way| way.is_some());
        asked.then(|| Box::new(self.clone()) as _)
    }

    /// Lines that are known go to disk, though nothing comes: a shell that is killed after a pause has the lines from before it.
    pub(super) fn flush(&self, now: Instant) {
        for mut way in self.ways() {
            if let Some(way) = &mut *way {
                way.flush_after_a_pause(now);
            }
        }
    }

    /// One after the other: while one is written the emulator's thread can note packets of the other.
    fn ways(&self) -> impl Iterator<Item = MutexGuard<'_, Option<Way>>> {
        self.0.iter().map(|way| way.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything is on disk, or the reason why not.
    pub(super) fn finish(self, at: Duration) -> Outcome {
        for way in self.ways().filter_map(|mut way| way.take()) {
            let path = way.path.clone();
            way.finish(Instant::ZERO + at).map_err(|e| Failure::file("write", &path, &e))?;
        }
        Ok(())
    }
}

impl Observer for Log {
    fn on_packet(&mut self, event: &PacketEvent) {
        let [up, down] = &*self.0;
        let way = match event.packet.direction {
            Direction::Forward => up,
            Direction::Back => down,
        };
        if let Some(way) = &mut *way.lock().unwrap_or_else(PoisonError::into_inner) {
            way.note(event);
        }
    }
}

/// One way.
struct Way {
    path: PathBuf,
    out: BufWriter<File>,
    error: Option<io::Error>,
    propagation: Duration,
    opportunities: Opportunities,
    /// Lines that an earlier one may still come before: of a departure one hears when the packet arrives.
    waiting: BTreeMap<(Instant, u64), String>,
    lines: u64,
    flush_at: Instant,
}

impl Way {
    fn create(name: &str, path: &Path, file: File, link: &LinkSpec) -> io::Result<Way> {
        let mut out = BufWriter::new(file);
        write!(out, "# fairpace shell ({name}) > {}\n# queue: {:?}\n", path.display(), link.queue)?;
        writeln!(out, "# base timestamp: 0")?;
        Ok(Way {
            path: path.to_owned(),
            out,
            error: None,
            propagation: link.delay.propagation,
            opportunities: Opportunities::of(&link.rate),
            waiting: BTreeMap::new(),
            lines: 0,
            flush_at: Instant::ZERO,
        })
    }

    fn note(&mut self, event: &PacketEvent) {
        let size = event.packet.size;
        let (at, line) = match event.fate {
            PacketFate::Sent => (event.at, format!("{} + {size}", ms(event.at))),
            PacketFate::Received => {
                let at = self.known(event.at);
                let stay = ms(at).saturating_sub(ms(event.packet.sent_at));
                (at, format!("{} - {size} {stay}", ms(at)))
            }
            PacketFate::Dropped { .. } => (event.at, format!("{} d 1 {size}", ms(event.at))),
        };
        self.lines += 1;
        self.waiting.insert((at, self.lines), line);
        self.write_until(self.known(event.at));
        if event.at >= self.flush_at {
            self.flush(event.at);
        }
    }

    /// Up to when all lines are known at that instant.
    fn known(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(Instant::ZERO).saturating_sub(self.propagation)
    }

    fn flush(&mut self, at: Instant) {
        self.flush_at = at + FLUSHED_EACH;
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }

    /// The emulator's thread does this itself while packets come, so that it need not wait for another one's lock.
    fn flush_after_a_pause(&mut self, now: Instant) {
        if now >= self.flush_at + NOTHING_CAME {
            let safe = Instant::ZERO + now.since(Instant::ZERO).saturating_sub(LATE);
            self.write_until(self.known(safe));
            self.flush(now);
        }
    }

    /// Writes everything before `until`, in order of time.
    fn write_until(&mut self, until: Instant) {
        let later = self.waiting.split_off(&(until, 0));
        for ((at, _), line) in std::mem::replace(&mut self.waiting, later) {
            self.opportunities_until(at);
            self.line(&line);
        }
        self.opportunities_until(until);
    }

    fn opportunities_until(&mut self, until: Instant) {
        while let Some(at) = self.opportunities.next_before(until) {
            self.line(&format!("{} # {OPPORTUNITY}", ms(at)));
        }
    }

    fn line(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{line}").err();
        }
    }

    fn finish(mut self, at: Instant) -> io::Result<()> {
        self.write_until(at);
        for line in std::mem::take(&mut self.waiting).into_values() {
            self.line(&line);
        }
        self.error.map_or_else(|| self.out.flush(), Err)
    }
}

fn ms(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

/// When the link can carry a packet.
enum Opportunities {
    /// Unknown, or always.
    None,
    /// One each so many nanoseconds; how many have been.
    Every(f64, u64),
    /// As recorded, in ms, again and again; how many have been.
    Trace(Arc<fairpace_path::Trace>, u64),
}

impl Opportunities {
    fn of(rate: &RateModel) -> Opportunities {
        match rate {
            RateModel::Fixed(rate) => Opportunities::Every(OPPORTUNITY as f64 * 8e9 / rate.as_bps(), 0),
            RateModel::Trace(trace) if trace.opportunities().is_some() => Opportunities::Trace(trace.clone(), 0),
            _ => Opportunities::None,
        }
    }

    /// The next one, if it is before `until`.
    fn next_before(&mut self, until: Instant) -> Option<Instant> {
        let (at, n) = match self {
            Opportunities::None => return None,
            Opportunities::Every(distance, n) => (((*n + 1) as f64 * *distance) as u64, n),
            Opportunities::Trace(trace, n) => {
                let times = trace.opportunities()?;
                let (round, place) = (*n / times.len() as u64, *n % times.len() as u64);
                let period = u64::from(*times.last()?);
                ((round * period + u64::from(*times.get(place as usize)?)).saturating_mul(1_000_000), n)
            }
        };
        let at = Instant::ZERO + Duration::from_nanos(at);
        (at < until).then(|| {
            *n += 1;
            at
        })
    }
}
