//! From a file, a pipe or a test pattern to raw pictures, one after the other.

use super::format::ClipFormat;
use super::{Running, bus_error, init, make, play, refused};
use crate::{MediaError, PictureWish};
use fairpace_units::Duration;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Pictures decoded ahead of their use: a third of a second at 25/s hides the decoder's own jitter.
const AHEAD: u32 = 8;
/// How long a decoder may be silent before it is started anew, and at last given up: decodebin of 1.22 now
/// and then swallows a demuxer's error while it starts it (a truncated MP4: about every second time),
/// and then nothing comes at all, error or picture. A pipe's time counts from its end.
const PATIENCE: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(2), Duration::from_secs(15)];

/// The input of a decoder.
pub(crate) enum Input {
    File(PathBuf),
    /// Anything that can be read once, with its name for messages.
    Pipe(Box<dyn Read + Send>, String),
    /// Moving zone plate with the time in it, this many pictures.
    TestPattern(u32),
}

/// A running decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    pipeline: Running,
    sink: gst_app::AppSink,
    name: String,
    /// The pipe, if it is one, has been read to its end.
    pipe_read: Option<Arc<AtomicBool>>,
    /// The file to start anew, and how often that was done.
    file: Option<(PathBuf, PictureWish)>,
    restarts: usize,
    begun: bool,
    streams: Arc<Streams>,
}

/// The streams of an input, as they are found.
#[derive(Debug, Default)]
struct Streams {
    /// There is a video stream.
    video: AtomicBool,
    sound: AtomicBool,
    /// The pictures that leave, once the input's are known; the fault of a wish.
    format: Mutex<Option<Result<ClipFormat, MediaError>>>,
    /// Size of the input's pictures, in square pixels.
    size: Mutex<Option<(u32, u32)>>,
}

impl Streams {
    fn tell(&self, format: Result<ClipFormat, MediaError>) {
        self.format.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(format);
    }
}

/// One step of a decoder.
pub(crate) enum Step {
    Picture(gst::Buffer),
    /// Nothing yet.
    Wait,
    End,
}

impl Decoder {
    /// Starts decoding into I420 of the input's size and rate, or of those wished for.
    pub(crate) fn open(input: Input, wish: PictureWish) -> Result<Decoder, MediaError> {
        let name = match &input {
            Input::File(path) => {
                readable(path)?;
                path.display().to_string()
            }
            Input::Pipe(_, name) => name.clone(),
            Input::TestPattern(_) => "test-pattern".to_owned(),
        };
        init(&name)?;
        let pipeline = Running(gst::Pipeline::new());
        let mut pipe_read = None;
        let file = if let Input::File(path) = &input { Some((path.clone(), wish)) } else { None };
        let chain: Vec<gst::Element> =
            ["videoconvert", "videoscale", "videorate"].iter().map(|f| make(f, &name)).collect::<Result<_, _>>()?;
        let sink = gst_app::AppSink::builder().sync(false).max_buffers(AHEAD).build();
        let streams = Arc::new(Streams::default());
        pipeline.0.add_many(&chain).map_err(refused(&name, "the pipeline"))?;
        pipeline.0.add(&sink).map_err(refused(&name, "appsink"))?;
        gst::Element::link_many(&chain).map_err(refused(&name, "videoconvert"))?;
        chain[2].link(&sink).map_err(refused(&name, "videorate"))?;
        let head = &chain[0];
        match input {
            Input::TestPattern(pictures) => {
                let source = make("videotestsrc", &name)?;
                // A moving zone plate has detail in every direction and never repeats within a
                // loop: it needs bits, so that an encoder can be seen to follow.
                source.set_property_from_str("pattern", "zone-plate");
                source.set_property("num-buffers", pictures.min(i32::MAX as u32) as i32);
                for (name, value) in [("kx2", 12), ("ky2", 12), ("kt", 2)] {
                    source.set_property(name, value);
                }
                pipeline.0.add(&source).map_err(refused(&name, "videotestsrc"))?;
                let usual = ClipFormat::default();
                let format = ClipFormat::suiting(&wish, (usual.width, usual.height), usual.frames_per_second.into())?;
                let wanted = format.caps();
                sink.set_caps(Some(&wanted));
                streams.tell(Ok(format));
                match make("timeoverlay", &name) {
                    // The time is a help for the eye, no more: without Pango there is none.
                    Ok(overlay) => {
                        pipeline.0.add(&overlay).map_err(refused(&name, "timeoverlay"))?;
                        source.link_filtered(&overlay, &wanted).map_err(refused(&name, "videotestsrc"))?;
                        overlay.link(head).map_err(refused(&name, "timeoverlay"))?;
                    }
                    Err(_) => source.link_filtered(head, &wanted).map_err(refused(&name, "videotestsrc"))?,
                }
                streams.video.store(true, Ordering::Relaxed);
            }
            Input::File(path) => {
                let source = make("filesrc", &name)?;
                source.set_property("location", path.as_os_str().to_string_lossy().as_ref());
                decode(&pipeline.0, &source, head, &name, wish, &sink, &streams)?;
            }
            Input::Pipe(reader, _) => {
                let source = gst_app::AppSrc::builder().max_bytes(1 << 20).build();
                source.set_property("block", true);
                decode(&pipeline.0, source.upcast_ref(), head, &name, wish, &sink, &streams)?;
                // Ends with the pipe, or when the pipeline refuses a buffer because it has stopped.
                let done = Arc::new(AtomicBool::new(false));
                pipe_read = Some(done.clone());
                std::thread::spawn(move || {
                    feed(reader, &source);
                    done.store(true, Ordering::Relaxed);
                });
            }
        }
        play(&pipeline.0, &name)?;
        Ok(Decoder { pipeline, sink, name, pipe_read, file, restarts: 0, begun: false, streams })
    }

    /// The next picture; waits for it.
    pub(crate) fn next(&mut self) -> Result<Option<gst::Buffer>, MediaError> {
        let slice = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        loop {
            match self.step(slice)? {
                Step::Picture(buffer) => return Ok(Some(buffer)),
                Step::End => return Ok(None),
                Step::Wait if self.pipe_read.as_ref().is_none_or(|read| read.load(Ordering::Relaxed)) => {
                    waited += slice
                }
                Step::Wait => {}
            }
            // A stream that cannot be started anew gets the longest time at once.
            let last = PATIENCE.len() - 1;
            let turn = if self.file.is_some() && !self.begun { self.restarts.min(last) } else { last };
            if waited < PATIENCE[turn] {
                continue;
            }
            match &self.file {
                Some((path, wish)) if turn < last => {
                    let restarts = self.restarts + 1;
                    *self = Decoder { restarts, ..Decoder::open(Input::File(path.clone()), *wish)? };
                    waited = Duration::ZERO;
                }
                _ => {
                    let message = format!("GStreamer gave neither a picture nor an error for {} s", waited.as_secs());
                    return Err(MediaError::NoVideo { input: self.name.clone(), message });
                }
            }
        }
    }

    /// The next picture, if there is one within `wait`.
    pub(crate) fn step(&mut self, wait: Duration) -> Result<Step, MediaError> {
        let wait = gst::ClockTime::from_nseconds(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        if let Some(sample) = self.sink.try_pull_sample(wait) {
            self.begun = true;
            return Ok(sample.buffer_owned().map_or(Step::Wait, Step::Picture));
        }
        match bus_error(&self.pipeline.0, &self.name) {
            // Sound without pictures ends as a stream that was linked to nothing.
            Some(MediaError::Gst { message, .. })
                if message.contains("not-linked") && !self.streams.video.load(Ordering::Relaxed) =>
            {
                return Err(MediaError::NoVideo { input: self.name.clone(), message: "only other streams".to_owned() });
            }
            Some(e) => return Err(e),
            None => {}
        }
        Ok(if self.sink.is_eos() { Step::End } else { Step::Wait })
    }

    /// Size and rate of the pictures; `None` before the input's are known.
    ///
    /// # Errors
    /// The wish is out of range.
    pub(crate) fn format(&self) -> Result<Option<ClipFormat>, MediaError> {
        let mut format = self.streams.format.lock().unwrap_or_else(PoisonError::into_inner);
        match &*format {
            Some(Err(_)) => format.take().transpose(),
            Some(Ok(known)) => Ok(Some(*known)),
            None => Ok(None),
        }
    }

    /// Size of the input's pictures, in square pixels, as far as it is known.
    pub(crate) fn input_size(&self) -> Option<(u32, u32)> {
        *self.streams.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the input has sound, as far as its streams have been found.
    pub(crate) fn has_sound(&self) -> bool {
        self.streams.sound.load(Ordering::Relaxed)
    }

    /// Begins at the first picture again; false if the input cannot (a pipe).
    pub(crate) fn rewind(&mut self) -> bool {
        !self.is_pipe() && self.pipeline.0.seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO).is_ok()
    }

    /// A pipe is shown once; files are looped.
    pub(crate) fn is_pipe(&self) -> bool {
        self.pipe_read.is_some()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Size in square pixels, and pictures a second, of raw video.
fn size_and_rate(caps: &gst::Caps) -> Option<((u32, u32), f64)> {
    let s = caps.structure(0)?;
    let side = |name| s.get::<i32>(name).ok().and_then(|side| u32::try_from(side).ok());
    let shape =
        s.get::<gst::Fraction>("pixel-aspect-ratio").ok().map_or(1.0, |f| f64::from(f.numer()) / f64::from(f.denom()));
    let rate = s.get::<gst::Fraction>("framerate").ok().map_or(0.0, |f| f64::from(f.numer()) / f64::from(f.denom()));
    let width = (f64::from(side("width")?) * if shape > 0.0 { shape } else { 1.0 }).round() as u32;
    Some(((width, side("height")?), rate))
}

/// `source -> decodebin -> head`, for the first video stream, whose size and rate decide those of the pictures in `sink`; others are
/// not decoded. The flags tell which streams there are.
fn decode(
    pipeline: &gst::Pipeline,
    source: &gst::Element,
    head: &gst::Element,
    name: &str,
    wish: PictureWish,
    sink: &gst_app::AppSink,
    streams: &Arc<Streams>,
) -> Result<(), MediaError> {
    let decodebin = make("decodebin", name)?;
    pipeline.add_many([source, &decodebin]).map_err(refused(name, "decodebin"))?;
    source.link(&decodebin).map_err(refused(name, "decodebin"))?;
    // Not through decodebin's own `caps` filter: with it, 1.22 finds no decoder at all.
    let seen = Arc::clone(streams);
    decodebin.connect("autoplug-continue", false, move |args| {
        let caps = args.get(2).and_then(|v| v.get::<gst::Caps>().ok());
        let audio = caps.is_some_and(|c| c.structure(0).is_some_and(|s| s.name().starts_with("audio/")));
        seen.sound.fetch_or(audio, Ordering::Relaxed);
        Some((!audio).to_value())
    });
    let (head, sink, seen) = (head.clone(), sink.clone(), Arc::clone(streams));
    decodebin.connect_pad_added(move |_, pad| {
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        let video = caps.structure(0).is_some_and(|s| s.name().starts_with("video/"));
        // A second video stream finds the place taken.
        if let Some(into) = head.static_pad("sink").filter(|p| video && !p.is_linked()) {
            // From now on the pictures are of that size and rate; an input that changes its own is scaled.
            let (size, rate) = size_and_rate(&caps).unwrap_or(((640, 360), 0.0));
            *seen.size.lock().unwrap_or_else(PoisonError::into_inner) = Some(size);
            let format = ClipFormat::suiting(&wish, size, rate);
            if let Ok(format) = &format {
                sink.set_caps(Some(&format.caps()));
            }
            seen.tell(format);
            seen.video.fetch_or(pad.link(&into).is_ok(), Ordering::Relaxed);
        }
    });
    Ok(())
}

fn readable(path: &Path) -> Result<(), MediaError> {
    let file = |source| MediaError::File { path: path.to_owned(), doing: "open", source };
    let metadata = File::open(path).and_then(|f| f.metadata()).map_err(file)?;
    if metadata.is_dir() {
        return Err(file(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    Ok(())
}

fn feed(mut reader: Box<dyn Read + Send>, source: &gst_app::AppSrc) {
    let mut chunk = vec![0; 1 << 16];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => {
                if source.push_buffer(gst::Buffer::from_slice(chunk[..n].to_vec())).is_err() {
                    return;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // The decoder sees a stream that ends here, and says so if that is in the middle.
            Err(_) => break,
        }
    }
    let _ = source.end_of_stream();
}
