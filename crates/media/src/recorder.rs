//! A receiver's sink: play-out, and a file of what a viewer would have seen.
//!
//! The file holds all frames that a decoder could take, at their media times: those in time are
//! shown, late ones are marked as not to be shown (they are there for others to refer to), lost
//! ones are missing. So a player shows the stream as it was: where nothing came in time, the
//! picture stands still.

use crate::{
    FrameFates, FrameSink, IvfWriter, Judged, MediaError, Playout, PlayoutParams, ReceivedFrame, Verdict, vp8,
};
use fairpace_units::{Bytes, Duration, Instant};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A frame's fate, for tables and plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRecord {
    /// Capture time since the first frame's.
    pub media_time: Duration,
    /// When it was to be shown.
    pub due: Instant,
    /// When a decoder had it.
    pub ready: Option<Instant>,
    /// The frame's fate.
    pub verdict: Verdict,
    /// Needs no other frame.
    pub key: bool,
    /// Its size; zero if it did not come.
    pub size: Bytes,
}

/// [`Playout`] as a [`FrameSink`], with an IVF file and a list of frames if wanted.
#[derive(Debug)]
pub struct Recorder {
    playout: Playout,
    file: Option<(IvfWriter<BufWriter<File>>, PathBuf)>,
    /// When the file is flushed next.
    flush_at: Instant,
    records: Option<Vec<FrameRecord>>,
}

/// So much of a recording may be lost with its process.
const FLUSHED_EACH: Duration = Duration::from_secs(1);

impl Recorder {
    /// Judges, and keeps nothing but the totals.
    pub fn new(params: PlayoutParams) -> Self {
        Recorder { playout: Playout::new(params), file: None, flush_at: Instant::ZERO, records: None }
    }

    /// Writes what is seen to this file as well, from its beginning; `path` names it in errors. Each second what was written by
    /// then is given to the system, and a killed process loses no more.
    ///
    /// # Errors
    /// The file cannot be written to.
    pub fn to_file(mut self, file: File, path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref().to_owned();
        let made = IvfWriter::new(BufWriter::new(file)).and_then(|mut writer| writer.flush().map(|()| writer));
        let writer = made.map_err(|source| MediaError::File { path: path.clone(), doing: "write", source })?;
        self.file = Some((writer, path));
        Ok(self)
    }

    /// Keeps a record of each frame as well: about 80 bytes, 7 MB an hour at 25 frames/s.
    #[must_use]
    pub fn with_records(mut self) -> Self {
        self.records = Some(Vec::new());
        self
    }

    /// The play-out, for its totals and seconds.
    pub fn playout(&self) -> &Playout {
        &self.playout
    }

    /// All frames judged so far; empty without [`with_records`](Recorder::with_records).
    pub fn records(&self) -> &[FrameRecord] {
        self.records.as_deref().unwrap_or_default()
    }

    fn take(&mut self, judged: Judged) -> Result<(), MediaError> {
        let Judged { media_time, due, ready, verdict, key, mut data, .. } = judged;
        if let Some(records) = &mut self.records {
            let size = Bytes::new(data.len() as u64);
            records.push(FrameRecord { media_time, due, ready, verdict, key, size });
        }
        let Some((writer, path)) = &mut self.file else { return Ok(()) };
        match verdict {
            Verdict::Lost(_) => return Ok(()),
            Verdict::Late => vp8::hide(&mut data),
            Verdict::InTime | Verdict::Damaged => {}
        }
        let written = writer.write(media_time, &data);
        written.map_err(|source| MediaError::File { path: path.clone(), doing: "write", source })
    }
}

impl FrameSink for Recorder {
    fn on_frame(&mut self, now: Instant, frame: ReceivedFrame) -> Result<(), MediaError> {
        self.playout.push(frame);
        self.poll(now)
    }

    fn poll(&mut self, now: Instant) -> Result<(), MediaError> {
        while let Some(judged) = self.playout.poll(now) {
            self.take(judged)?;
        }
        if let Some((writer, path)) = self.file.as_mut().filter(|_| now >= self.flush_at) {
            self.flush_at = now + FLUSHED_EACH;
            writer.flush().map_err(|source| MediaError::File { path: path.clone(), doing: "write", source })?;
        }
        Ok(())
    }

    fn next(&self) -> Instant {
        self.playout.next().min(self.playout.next_key_request())
    }

    fn set_answer_time(&mut self, answer: Duration) {
        self.playout.set_answer_time(answer);
    }

    fn set_frame_interval(&mut self, interval: Duration) {
        self.playout.set_frame_interval(interval);
    }

    fn playout_delay(&self) -> Option<Duration> {
        Some(self.playout.delay())
    }

    fn fates(&self) -> Option<FrameFates> {
        let totals = self.playout.totals();
        let frames = totals.frames;
        Some(FrameFates {
            source: totals.captures,
            in_time: frames.in_time.into(),
            damaged: frames.damaged.into(),
            late: frames.late.into(),
            hole: frames.lost_hole.into(),
            reference: frames.lost_reference.into(),
            longest_freeze: totals.longest_freeze,
        })
    }

    fn given_up_before(&self) -> u64 {
        self.playout.given_up_before()
    }

    fn take_key_request(&mut self, now: Instant) -> bool {
        self.playout.take_key_request(now)
    }

    fn finish(&mut self, now: Instant) -> Result<(), MediaError> {
        while let Some(judged) = self.playout.finish(now) {
            self.take(judged)?;
        }
        let Some((writer, path)) = self.file.take() else { return Ok(()) };
        writer.finish().map_err(|source| MediaError::File { path, doing: "write", source })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IvfReader;
    use crate::filler::filler;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn frame(n: u64, key: bool, arrival: u64) -> ReceivedFrame {
        ReceivedFrame {
            first_sequence: n,
            last_sequence: n,
            absent_before: u64::MAX,
            timestamp_90k: n as u32 * 3_600,
            data: filler(100 + n, key),
            key,
            via: None,
            arrival: at(arrival),
        }
    }

    #[test]
    fn the_file_holds_what_was_seen_hides_the_late_and_lacks_the_lost() {
        let path = std::env::temp_dir().join(format!("fairpace-recorder-{}.ivf", std::process::id()));
        let params = PlayoutParams { delay: Duration::from_millis(100), ..PlayoutParams::default() };
        // Damaged pictures are written too; here they are not wanted.
        let params = PlayoutParams { damaged: false, ..params };
        let mut r = Recorder::new(params).to_file(File::create(&path).unwrap(), &path).unwrap().with_records();
        // 1 late (due 440), 3 missing, 4 refers to it, 5 is a key frame again.
        for (n, key, arrival) in
            [(0, true, 300), (1, false, 450), (2, false, 460), (4, false, 500), (5, true, 540), (6, false, 580)]
        {
            r.on_frame(at(arrival), frame(n, key, arrival)).unwrap();
        }
        r.finish(at(600)).unwrap();
        r.finish(at(600)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut file = IvfReader::new(&bytes[..], "x").unwrap();
        let frames: Vec<_> = std::iter::from_fn(|| file.next_frame().unwrap())
            .map(|f| (f.time.as_millis(), f.data.len(), vp8::header(&f.data).unwrap().shown))
            .collect();
        assert_eq!(frames, [(0, 100, true), (40, 101, false), (80, 102, true), (200, 105, true), (240, 106, true)]);
        // Five frames, the last at 240 ms: with a mean frame of 60 ms the length is 300 ms, 27,000 ticks.
        assert_eq!(bytes[24..28], 27_000_u32.to_le_bytes(), "the header says how long it is");
        assert_eq!(r.records().len(), 7);
        let fates = r.fates().unwrap();
        assert_eq!((fates.in_time, fates.late, fates.hole, fates.reference), (4, 1, 1, 1));
        assert_eq!((fates.source, fates.never_sent()), (7, 0));
    }

    #[test]
    fn a_full_disk_is_called_that_and_the_file_is_named() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let e = Recorder::new(PlayoutParams::default()).to_file(full, "x.ivf").unwrap_err().to_string();
        assert!(e.starts_with("`x.ivf`: cannot write: ") && e.contains("No space left"), "{e}");
    }
}
