//! IVF, the plain container of VP8: a 32-byte header, then frames with length and time.
//!
//! ```text
//! header: "DKIF", version u16 = 0, header length u16 = 32, codec "VP80", width u16, height u16,
//!         time base denominator u32, numerator u32, length in ticks u32, unused u32 (ours: 0, or "part")
//! frame:  length u32, time stamp u64 (in time bases), then the frame        all little-endian
//! ```
//!
//! The files that we write have a time base of 1/90,000 s, so that a frame's time is its RTP timestamp's: a player
//! holds a picture on the screen for as long as the viewer of the live stream had to. Until such a file is finished, its unused
//! field reads `part`, which players ignore: a recording whose process was killed is known by the word.

use crate::{Codec, EncodedFrame, Format, FrameSource, MediaError, timestamp_90k, vp8};
use fairpace_units::{Duration, Instant, Rate};
use std::io::{self, Read, Seek, SeekFrom, Write};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 12;
/// No VP8 frame is larger; a length beyond it is damage, and must not make us ask for memory.
const MAX_FRAME: usize = 1 << 26;
/// Ticks per second of what we write.
const TICKS: u32 = 90_000;
/// The unused field of a file that is not finished.
const PART: [u8; 4] = *b"part";
const FINISHED: [u8; 4] = [0; 4];

/// Writes VP8 frames as IVF. [`IvfWriter::finish`] puts size and length into the
/// header; a file without it (the process was killed) still plays.
#[derive(Debug)]
pub struct IvfWriter<W: Write + Seek> {
    out: W,
    frames: u32,
    size: Option<(u16, u16)>,
    last_ticks: Option<u64>,
}

impl<W: Write + Seek> IvfWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&header(0, 0, 0, PART))?;
        Ok(IvfWriter { out, frames: 0, size: None, last_ticks: None })
    }

    /// Adds a frame with its time since the stream's beginning. Times must grow: one that does not is
    /// moved on by a tick, because demuxers refuse equal times.
    ///
    /// # Errors
    /// What the writer says, or a frame of more than 4 GiB.
    pub fn write(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let pixels = |(width, height): (u16, u16)| u32::from(width) * u32::from(height);
        if let Some(vp8::Header { size: Some(size), .. }) = vp8::header(frame)
            && self.size.is_none_or(|before| pixels(size) > pixels(before))
        {
            // Pictures may change their size; a player opens its window for the largest.
            self.size = Some(size);
            // At once, not only at the end: a file that was cut off should play too.
            self.put_header(PART)?;
        }
        // Rounded to the nearest tick: 90,000/s is no whole number of nanoseconds.
        let ticks = (time.as_nanos() * u128::from(TICKS) + 500_000_000) / 1_000_000_000;
        let ticks = (ticks as u64).max(self.last_ticks.map_or(0, |last| last + 1));
        let length = u32::try_from(frame.len()).map_err(|_| io::Error::other("a frame of more than 4 GiB"))?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&ticks.to_le_bytes())?;
        self.out.write_all(frame)?;
        self.last_ticks = Some(ticks);
        self.frames = self.frames.saturating_add(1);
        Ok(())
    }

    /// Frames so far.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Gives what was written to the system, with a header that is right up to here.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.put_header(PART)?;
        self.out.flush()
    }

    /// Completes the header, which says from now on that nothing is missing, and gives the writer back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        self.put_header(FINISHED)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Length in ticks, the last frame counted as long as the mean of the others. The field was meant for
    /// the number of frames, which is the same where a tick is a frame; with finer ticks, ffmpeg writes and
    /// reads the length in ticks, and a player would show a duration of milliseconds otherwise.
    fn length(&self) -> u32 {
        let last = self.last_ticks.unwrap_or(0);
        let mean = last.checked_div(u64::from(self.frames.saturating_sub(1))).unwrap_or(0);
        u32::try_from(last + mean).unwrap_or(u32::MAX)
    }

    fn put_header(&mut self, state: [u8; 4]) -> io::Result<()> {
        let (width, height) = self.size.unwrap_or_default();
        let here = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header(width, height, self.length(), state))?;
        self.out.seek(SeekFrom::Start(here))?;
        Ok(())
    }
}

fn header(width: u16, height: u16, length: u32, state: [u8; 4]) -> [u8; HEADER] {
    let mut h = [0; HEADER];
    h[0..4].copy_from_slice(b"DKIF");
    h[6..8].copy_from_slice(&(HEADER as u16).to_le_bytes());
    h[8..12].copy_from_slice(b"VP80");
    h[12..14].copy_from_slice(&width.to_le_bytes());
    h[14..16].copy_from_slice(&height.to_le_bytes());
    h[16..20].copy_from_slice(&TICKS.to_le_bytes());
    h[20..24].copy_from_slice(&1_u32.to_le_bytes());
    h[24..28].copy_from_slice(&length.to_le_bytes());
    h[28..32].copy_from_slice(&state);
    h
}

/// A frame of an IVF file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IvfFrame {
    /// Time since the stream's time zero.
    pub time: Duration,
    /// The frame.
    pub data: Vec<u8>,
}

/// Reads VP8 frames from IVF: a file, or a pipe, which is read no further than asked.
#[derive(Debug)]
pub struct IvfReader<R: Read> {
    input: R,
    name: String,
    offset: u64,
    /// Width and height in pixels; zero if the writer did not know.
    pub size: (u16, u16),
    /// Numerator and denominator of the time base, in seconds.
    time_base: (u32, u32),
    cut_off: bool,
}

impl<R: Read> IvfReader<R> {
    /// Reads the header. `name` is for messages.
    ///
    /// # Errors
    /// [`MediaError::Ivf`] if it is not an IVF header, or not VP8; [`MediaError::File`].
    pub fn new(input: R, name: impl Into<String>) -> Result<Self, MediaError> {
        let mut r = IvfReader { input, name: name.into(), offset: 0, size: (0, 0), time_base: (1, 1), cut_off: false };
        let mut h = [0; HEADER];
        let got = r.fill(&mut h)?;
        if !h.starts_with(b"DKIF") {
            return Err(r.wrong(0, "it does not begin with `DKIF`".to_owned()));
        }
        if got < HEADER {
            return Err(r.wrong(got as u64, format!("it ends within its {HEADER}-byte header")));
        }
        if &h[8..12] != b"VP80" {
            let codec = String::from_utf8_lossy(&h[8..12]).into_owned();
            return Err(r.wrong(8, format!("its codec is `{codec}`, only `VP80` is supported")));
        }
        let u16_at = |i: usize| u16::from_le_bytes([h[i], h[i + 1]]);
        let u32_at = |i: usize| u32::from_le_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let length = u16_at(6);
        if usize::from(length) != HEADER {
            return Err(r.wrong(6, format!("its header length is {length}, it must be {HEADER}")));
        }
        r.size = (u16_at(12), u16_at(14));
        r.time_base = (u32_at(20), u32_at(16));
        r.cut_off = h[28..] == PART;
        if r.time_base.0 == 0 || r.time_base.1 == 0 {
            return Err(r.wrong(16, "its time base has a zero".to_owned()));
        }
        Ok(r)
    }

    /// Whether this is a recording whose writer was stopped, or is still at it: its end is missing.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The next frame; `None` at the end. A recording that was cut off ends before the frame that was cut.
    ///
    /// # Errors
    /// [`MediaError::Ivf`] if another stream ends within a frame, or a frame names an impossible length;
    /// [`MediaError::File`].
    pub fn next_frame(&mut self) -> Result<Option<IvfFrame>, MediaError> {
        let start = self.offset;
        let mut h = [0; FRAME_HEADER];
        match self.fill(&mut h)? {
            0 => return Ok(None),
            FRAME_HEADER => {}
            _ if self.cut_off => return Ok(None),
            got => {
                return Err(self.wrong(start, format!("it ends after {got} of {FRAME_HEADER} bytes of frame header")));
            }
        }
        let length = u32::from_le_bytes([h[0], h[1], h[2], h[3]]) as usize;
        let ticks = u64::from_le_bytes([h[4], h[5], h[6], h[7], h[8], h[9], h[10], h[11]]);
        if length > MAX_FRAME {
            return Err(self.wrong(start, format!("a frame of {length} bytes, at most {MAX_FRAME} are possible")));
        }
        // Memory grows with what is there, not with what the length field says.
        let mut data = Vec::new();
        let got = self.input.by_ref().take(length as u64).read_to_end(&mut data).map_err(|e| self.unreadable(e))?;
        self.offset += got as u64;
        if got < length && self.cut_off {
            return Ok(None);
        }
        if got < length {
            return Err(self.wrong(start, format!("it ends after {got} of {length} bytes of a frame")));
        }
        let (numerator, denominator) = self.time_base;
        let nanos = u128::from(ticks) * u128::from(numerator) * 1_000_000_000 / u128::from(denominator);
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Ok(Some(IvfFrame { time, data }))
    }

    /// Reads until `buffer` is full or the input ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, MediaError> {
        let mut got = 0;
        while got < buffer.len() {
            match self.input.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.unreadable(e)),
            }
        }
        self.offset += got as u64;
        Ok(got)
    }

    fn wrong(&self, offset: u64, problem: String) -> MediaError {
        MediaError::Ivf { name: self.name.clone(), offset, problem }
    }

    fn unreadable(&self, source: io::Error) -> MediaError {
        MediaError::File { path: self.name.clone().into(), doing: "read", source }
    }
}

/// Sends what somebody else has encoded: an IVF file or pipe, at its own times. This source follows no rate.
///
/// A pipe is read ahead by a thread, so that waiting for it never stops the caller.
#[derive(Debug)]
pub struct IvfSource {
    frames: std::sync::mpsc::Receiver<Result<IvfFrame, MediaError>>,
    /// For messages.
    name: String,
    /// Read, and not yet due.
    ahead: Option<IvfFrame>,
    format: Format,
    /// Run time of the stream's time zero; set by the first frame.
    origin: Option<(Instant, Duration)>,
    next: Instant,
}

/// Frames read ahead of time.
const READ_AHEAD: usize = 64;
/// The longest pause of a file.
const MOST_GAP: Duration = Duration::from_secs(3600);
/// How long to wait before looking again at a pipe that had nothing.
const PIPE_POLL: Duration = Duration::from_millis(2);

impl IvfSource {
    /// Frames of this stream from the caller's first `next_frame` on.
    ///
    /// # Errors
    /// As [`IvfReader::new`]: the header is read here.
    pub fn new(input: impl Read + Send + 'static, name: impl Into<String>) -> Result<Self, MediaError> {
        Self::pausing(input, name, Duration::MAX)
    }

    /// The same of a file, in which a frame that is more than an hour later than the one before is damage: nobody waits for it.
    ///
    /// # Errors
    /// As [`IvfSource::new`].
    pub fn of_file(input: impl Read + Send + 'static, name: impl Into<String>) -> Result<Self, MediaError> {
        Self::pausing(input, name, MOST_GAP)
    }

    fn pausing(
        input: impl Read + Send + 'static,
        name: impl Into<String>,
        longest: Duration,
    ) -> Result<Self, MediaError> {
        let mut reader = IvfReader::new(input, name)?;
        let (n, d) = reader.time_base;
        // Usually one tick is one frame; of our own files and others' in finer ticks, say 25 frames/s.
        let tick = Duration::from_secs_f64(f64::from(n) / f64::from(d));
        let frame_interval = if tick < Duration::from_millis(4) { Duration::from_millis(40) } else { tick };
        let format = Format {
            codec: Codec::Vp8,
            width: reader.size.0.into(),
            height: reader.size.1.into(),
            frame_interval,
            follows_rate: false,
            scaled_from: None,
            sound: false,
            cut_off: reader.cut_off,
        };
        let name = reader.name.clone();
        let (give, frames) = std::sync::mpsc::sync_channel(READ_AHEAD);
        // Ends with the input, or when the receiving half is gone.
        std::thread::spawn(move || {
            let mut latest = None;
            loop {
                let start = reader.offset;
                let (item, last) = match reader.next_frame() {
                    Ok(None) => return,
                    Ok(Some(frame)) if frame.time.saturating_sub(latest.unwrap_or(frame.time)) > longest => {
                        let problem = "a frame's time is more than an hour after that of the frame before";
                        (Err(reader.wrong(start, problem.to_owned())), true)
                    }
                    Ok(Some(frame)) => {
                        latest = Some(frame.time);
                        (Ok(frame), false)
                    }
                    Err(e) => (Err(e), true),
                };
                if give.send(item).is_err() || last {
                    return;
                }
            }
        });
        Ok(IvfSource { frames, name, ahead: None, format, origin: None, next: Instant::ZERO })
    }
}

impl FrameSource for IvfSource {
    fn format(&self) -> Format {
        self.format
    }

    /// No effect: the stream is encoded already.
    fn set_rate(&mut self, _rate: Rate) {}

    /// No effect: the stream is encoded already.
    fn request_key_frame(&mut self) {}

    fn next_frame_at(&self) -> Instant {
        self.next
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        use std::sync::mpsc::TryRecvError;
        if now < self.next {
            return Ok(None);
        }
        let frame = match self.ahead.take() {
            Some(frame) => frame,
            None => match self.frames.try_recv() {
                Ok(Ok(frame)) => frame,
                Ok(Err(e)) => {
                    self.next = Instant::NEVER;
                    return Err(e);
                }
                Err(TryRecvError::Empty) => {
                    self.next = now + PIPE_POLL;
                    return Ok(None);
                }
                Err(TryRecvError::Disconnected) => {
                    self.next = Instant::NEVER;
                    if self.origin.is_some() {
                        return Ok(None);
                    }
                    let problem = "it has no frame".to_owned();
                    return Err(MediaError::Ivf { name: self.name.clone(), offset: HEADER as u64, problem });
                }
            },
        };
        let (start, first) = *self.origin.get_or_insert((now, frame.time));
        let capture = start + frame.time.saturating_sub(first);
        if capture > now {
            self.next = capture;
            self.ahead = Some(frame);
            return Ok(None);
        }
        let key = vp8::header(&frame.data).is_some_and(|h| h.key);
        Ok(Some(EncodedFrame { data: frame.data, capture, timestamp_90k: timestamp_90k(capture), key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hint;
    use crate::filler::filler;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn file(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut w = IvfWriter::new(Cursor::new(Vec::new())).unwrap();
        for (ms, data) in frames {
            w.write(Duration::from_millis(*ms), data).unwrap();
        }
        w.finish().unwrap().into_inner()
    }

    #[test]
    fn a_recording_says_that_it_was_cut_off_until_it_is_finished() {
        let mut writer = IvfWriter::new(io::Cursor::new(Vec::new())).unwrap();
        writer.write(Duration::ZERO, &[1, 2, 3]).unwrap();
        writer.write(Duration::from_millis(40), &[4; 100]).unwrap();
        writer.flush().unwrap();
        let part = writer.out.get_ref().clone();
        let whole = writer.finish().unwrap().into_inner();
        let read = |bytes: &[u8]| {
            let mut reader = IvfReader::new(bytes, "x").unwrap();
            let cut_off = reader.is_cut_off();
            let mut frames = 0;
            while reader.next_frame()?.is_some() {
                frames += 1;
            }
            Ok::<_, MediaError>((cut_off, frames))
        };
        assert_eq!(read(&whole).unwrap(), (false, 2));
        // Torn anywhere, what is whole is read.
        let second = HEADER + FRAME_HEADER + 3;
        for (end, frames) in
            [(HEADER, 0), (second - 1, 0), (second, 1), (second + 5, 1), (second + 20, 1), (part.len(), 2)]
        {
            assert_eq!(read(&part[..end]).unwrap(), (true, frames), "{end}");
        }
        // A finished file that ends within a frame is damaged.
        assert!(read(&whole[..second + 20]).is_err());
        assert_eq!((part.len(), &part[..28], &part[32..]), (whole.len(), &whole[..28], &whole[32..]));
    }

    #[test]
    fn a_file_is_what_the_format_says_byte_by_byte() {
        let mut key = vec![0; 10];
        vp8::write_header(&mut key, true, 640, 360);
        let bytes = file(&[(1_000, key.clone())]);
        let mut expected = b"DKIF\0\0\x20\0VP80\x80\x02\x68\x01".to_vec(); // 640 = 0x280, 360 = 0x168
        expected.extend([0x90, 0x5f, 0x01, 0]); // 90,000 = 0x15f90
        expected.extend([1, 0, 0, 0, 0x90, 0x5f, 0x01, 0, 0, 0, 0, 0]); // 1; ends at 1 s; unused
        expected.extend([10, 0, 0, 0, 0x90, 0x5f, 0x01, 0, 0, 0, 0, 0]); // 10 bytes at 90,000 ticks
        expected.extend(key);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_header_gives_the_length_that_players_show() {
        let frames: Vec<_> = (0..25).map(|i| (i * 40, vec![0; 3])).collect();
        // 25 frames at 25/s are one second: 90,000 ticks.
        assert_eq!(file(&frames)[24..28], 90_000_u32.to_le_bytes());
    }

    #[test]
    fn times_in_a_file_always_grow() {
        let bytes = file(&[(40, filler(20, true)), (40, filler(20, false)), (0, filler(20, false))]);
        let mut r = IvfReader::new(&bytes[..], "x").unwrap();
        let mut ticks = || (r.next_frame().unwrap().unwrap().time.as_nanos() * 9 + 50_000) / 100_000;
        // 40 ms are 3,600 ticks; one tick more each.
        assert_eq!([ticks(), ticks(), ticks()], [3_600, 3_601, 3_602]);
    }

    #[test]
    fn a_file_cut_within_a_frame_says_where() {
        let bytes = file(&[(0, filler(100, true)), (40, filler(100, false))]);
        let mut r = IvfReader::new(&bytes[..bytes.len() - 30], "x.ivf").unwrap();
        assert!(r.next_frame().unwrap().is_some());
        let e = r.next_frame().unwrap_err().to_string();
        // 32 + 12 + 100 = 144
        assert_eq!(e, "`x.ivf`: not readable as IVF at byte 144: it ends after 70 of 100 bytes of a frame");
    }

    #[test]
    fn other_files_are_refused_with_what_was_found() {
        let say = |bytes: &[u8]| IvfReader::new(bytes, "x").unwrap_err().to_string();
        assert_eq!(say(b"RIFF"), "`x`: not readable as IVF at byte 0: it does not begin with `DKIF`");
        assert_eq!(say(b""), "`x`: not readable as IVF at byte 0: it does not begin with `DKIF`");
        assert_eq!(say(b"DKIF\0\0"), "`x`: not readable as IVF at byte 6: it ends within its 32-byte header");
        let mut vp9 = file(&[]);
        vp9[11] = b'9';
        vp9[10] = b'9';
        assert!(say(&vp9).contains("its codec is `VP99`, only `VP80` is supported"));
        let mut huge = file(&[]);
        huge.extend([0xff; 12]);
        let mut r = IvfReader::new(&huge[..], "x").unwrap();
        assert!(r.next_frame().unwrap_err().to_string().contains("a frame of 4294967295 bytes"));
        assert!(IvfReader::new(&b"RIFF"[..], "x").unwrap_err().hint().is_none());
    }

    #[test]
    fn a_stream_is_sent_at_its_own_times() {
        let bytes = file(&[(500, filler(50, true)), (540, filler(50, false)), (700, filler(50, false))]);
        let mut s = IvfSource::new(Cursor::new(bytes), "x").unwrap();
        let mut now = Instant::from_nanos(3_000_000_000);
        let mut captures = Vec::new();
        let mut polls = 0;
        while now != Instant::NEVER {
            while let Some(f) = s.next_frame(now).unwrap() {
                captures.push((f.capture.since(Instant::ZERO).as_millis(), f.key));
            }
            if s.next_frame_at() <= now + PIPE_POLL {
                polls += 1; // the thread may need a moment
                std::thread::yield_now();
                assert!(polls < 1_000_000);
                // Time stands still while the pipe is merely slow.
                s.next = s.next.min(now);
            } else {
                now = s.next_frame_at();
            }
        }
        assert_eq!(captures, [(3_000, true), (3_040, false), (3_200, false)]);
    }

    /// Looks until the source's thread has found its end; what that is.
    fn end_of(source: &mut IvfSource) -> Result<usize, MediaError> {
        let mut frames = 0;
        while source.next_frame_at() != Instant::NEVER {
            frames += usize::from(source.next_frame(source.next_frame_at())?.is_some());
        }
        Ok(frames)
    }

    #[test]
    fn a_stream_without_a_frame_and_one_that_stands_still_for_an_hour_are_no_streams() {
        let source = |bytes: Vec<u8>| IvfSource::of_file(Cursor::new(bytes), "x").unwrap();
        let nothing = end_of(&mut source(file(&[]))).unwrap_err().to_string();
        assert_eq!(nothing, "`x`: not readable as IVF at byte 32: it has no frame");
        let pause = |ms: u64| file(&[(7_200_000, filler(50, true)), (7_200_000 + ms, filler(50, false))]);
        assert_eq!(end_of(&mut source(pause(3_600_000))).unwrap(), 2);
        let damaged = end_of(&mut source(pause(3_600_001))).unwrap_err().to_string();
        // 32 + 12 + 50 = 94
        assert!(damaged.contains("at byte 94: a frame's time is more than an hour after"), "{damaged}");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back_to_the_tick(
            sizes in prop::collection::vec((10_u64..500, 1_u64..100_000), 0..50),
        ) {
            let mut w = IvfWriter::new(Cursor::new(Vec::new())).unwrap();
            let mut ticks = 0;
            let frames: Vec<_> = sizes.iter().map(|&(size, step)| {
                ticks += step;
                (Duration::from_nanos(ticks * 100_000 / 9), filler(size, size % 7 == 0))
            }).collect();
            for (time, data) in &frames {
                w.write(*time, data).unwrap();
            }
            let bytes = w.finish().unwrap().into_inner();
            let mut r = IvfReader::new(&bytes[..], "x").unwrap();
            for (time, data) in &frames {
                let f = r.next_frame().unwrap().unwrap();
                prop_assert_eq!(&f.data, data);
                prop_assert!(f.time.abs_diff(*time) <= Duration::from_nanos(1));
            }
            prop_assert!(r.next_frame().unwrap().is_none());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(tail: Vec<u8>, with_header: bool) {
            let mut bytes = if with_header { file(&[]) } else { Vec::new() };
            bytes.extend(tail);
            if let Ok(mut r) = IvfReader::new(&bytes[..], "x") {
                while let Ok(Some(_)) = r.next_frame() {}
            }
        }
    }
}
