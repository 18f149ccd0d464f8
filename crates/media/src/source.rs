//! The two borders of this crate: frames out of a source, frames into a sink.

use crate::MediaError;
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};

/// The encoding of a frame's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// VP8 [RFC 6386]: a player can show it.
    Vp8,
    /// A VP8 frame header and filler: right size, right key-frame mark, nothing to see.
    Filler,
}

/// The format of a source's frames.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Format {
    /// The encoding of the bytes.
    pub codec: Codec,
    /// Pixels; zero for filler.
    pub width: u32,
    /// Pixels; zero for filler.
    pub height: u32,
    /// Time between two captures.
    pub frame_interval: Duration,
    /// Whether [`FrameSource::set_rate`] changes what comes out. A stream encoded beforehand does
    /// not follow: whoever sends it is not fair to anyone by adapting.
    pub follows_rate: bool,
    /// Size of the input's pictures, in square pixels, if they are scaled to another.
    pub scaled_from: Option<(u32, u32)>,
    /// The input has sound, which is left out. Known once the first picture has come; a container that names its streams
    /// later may tell later.
    pub sound: bool,
    /// The input is a recording whose end is missing: its writer was stopped.
    pub cut_off: bool,
}

/// One encoded video frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedFrame {
    /// The encoder's output.
    pub data: Vec<u8>,
    /// When the picture was taken; the run's time.
    pub capture: Instant,
    /// The same on the media clock: 90 kHz since the run began, wraps. The RTP session adds its
    /// random offset.
    pub timestamp_90k: u32,
    /// Needs no other frame to be decoded.
    pub key: bool,
}

impl EncodedFrame {
    /// How much is to be sent, without any header.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.data.len() as u64)
    }
}

/// A source of encoded frames, asked by a driver that knows the time.
///
/// Getters: [`format`](FrameSource::format), [`next_frame_at`](FrameSource::next_frame_at).
/// Commands: [`set_rate`](FrameSource::set_rate),
/// [`request_key_frame`](FrameSource::request_key_frame). Question:
/// [`next_frame`](FrameSource::next_frame).
///
/// **The driver's contract: call `next_frame(now)` when `next_frame_at()` has come, until it gives
/// `None`; then sleep until `next_frame_at()`, which has moved.** The encoder behind it may
/// need a few milliseconds: `None` then means "not yet", and `next_frame_at()` says when to look again.
///
/// ```
/// use fairpace_media::{ConstantSource, FrameSource};
/// use fairpace_units::{Duration, Instant, Rate};
/// let mut source = ConstantSource::new(Rate::mbps(1.0), Duration::from_millis(40));
/// source.set_rate(Rate::kbps(500.0));
/// let mut now = Instant::ZERO;
/// let mut bytes = 0;
/// while now < Instant::from_secs_f64(1.0) {
///     while let Some(frame) = source.next_frame(now)? {
///         bytes += frame.data.len();
///     }
///     now = source.next_frame_at();
/// }
/// assert_eq!(bytes, 1_000_000 / 8); // a constant source does not follow
/// # Ok::<(), fairpace_media::MediaError>(())
/// ```
pub trait FrameSource: Send {
    /// The format of the frames.
    fn format(&self) -> Format;

    /// The frames' bytes are to come at this rate from the next capture on; packet headers do not
    /// count (see [`media_rate`]). Sources keep it within what they can do.
    fn set_rate(&mut self, rate: Rate);

    /// The receiver cannot decode: make the next capture a key frame, if this source can.
    fn request_key_frame(&mut self);

    /// When to call [`next_frame`](FrameSource::next_frame); [`Instant::NEVER`] when the source
    /// has ended. Changed only by `next_frame`, unless another thread feeds the source.
    fn next_frame_at(&self) -> Instant;

    /// The next frame that is ready at `now`, oldest first.
    ///
    /// After a stall of the caller, captures that lie more than one interval back are skipped:
    /// a camera does not wait.
    ///
    /// # Errors
    /// The input ended in the middle, or the encoder failed. The source is then at its end.
    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError>;
}

impl<S: FrameSource + ?Sized> FrameSource for Box<S> {
    fn format(&self) -> Format {
        (**self).format()
    }

    fn set_rate(&mut self, rate: Rate) {
        (**self).set_rate(rate);
    }

    fn request_key_frame(&mut self) {
        (**self).request_key_frame();
    }

    fn next_frame_at(&self) -> Instant {
        (**self).next_frame_at()
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        (**self).next_frame(now)
    }
}

/// One frame put together again by the receiver, complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedFrame {
    /// Sequence number of its first packet, unwrapped.
    pub first_sequence: u64,
    /// Sequence number of its last packet, unwrapped. The next frame's first is one more, unless packets are
    /// missing between them.
    pub last_sequence: u64,
    /// Packets that never came between the complete frame before it and this one, as far as known then:
    /// no more frames can be lost there. `u64::MAX` if that is not known.
    pub absent_before: u64,
    /// The frame's RTP timestamp; wraps.
    pub timestamp_90k: u32,
    /// The frame.
    pub data: Vec<u8>,
    /// Needs no other frame.
    pub key: bool,
    /// The transport that it came by; `None`: by both, part and part.
    pub via: Option<Via>,
    /// When its last missing packet arrived.
    pub arrival: Instant,
}

/// How many frames a sink has judged, by fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameFates {
    /// Pictures that the source took, from the first frame judged to the last: at least, where the sender does not tell how often it takes one.
    pub source: u64,
    /// Shown in time.
    pub in_time: u64,
    /// Shown when due, decoded without a frame that is lost.
    pub damaged: u64,
    /// Decoded, too late to be shown.
    pub late: u64,
    /// Not whole.
    pub hole: u64,
    /// Whole, and of no use without one that is lost.
    pub reference: u64,
    /// The longest time without a new picture, between two shown frames.
    pub longest_freeze: Duration,
}

impl FrameFates {
    /// Of the source's pictures those that left no trace: not encoded, or dropped before sending.
    pub fn never_sent(&self) -> u64 {
        self.source.saturating_sub(self.in_time + self.damaged + self.late + self.hole + self.reference)
    }
}

/// Takes the frames of a receiver. The driver pushes frames as they become complete, in any order, calls
/// `poll` when `next` has come, and sends a PLI whenever `take_key_request` says so. All but `on_frame` may be left out:
/// the sink then awaits nothing and keeps nothing.
pub trait FrameSink: Send {
    /// A frame is complete, at `now`.
    ///
    /// # Errors
    /// The sink could not write.
    fn on_frame(&mut self, now: Instant, frame: ReceivedFrame) -> Result<(), MediaError>;

    /// Runs what is due.
    ///
    /// # Errors
    /// The sink could not write.
    fn poll(&mut self, _now: Instant) -> Result<(), MediaError> {
        Ok(())
    }

    /// When to call `poll`; [`Instant::NEVER`] if nothing is awaited.
    fn next(&self) -> Instant {
        Instant::NEVER
    }

    /// Whether it takes more. If not, what comes by a transport that waits is left there; what comes by another goes to
    /// [`on_frame`](FrameSink::on_frame) all the same.
    fn has_room(&self) -> bool {
        true
    }

    /// A request for a lost packet and its answer take so long, as far as answers have shown it.
    fn set_answer_time(&mut self, _answer: Duration) {}

    /// The time between two pictures of the source, as the sender says.
    fn set_frame_interval(&mut self, _interval: Duration) {}

    /// The play-out delay now; `None` if frames are not played out.
    fn playout_delay(&self) -> Option<Duration> {
        None
    }

    /// The frames' fates so far; `None` if frames are not played out.
    fn fates(&self) -> Option<FrameFates> {
        None
    }

    /// Packets before that number are judged or given up: nothing more is to be asked for.
    fn given_up_before(&self) -> u64 {
        0
    }

    /// True if a key frame should be asked for now; saying so starts the interval until the next time.
    fn take_key_request(&mut self, _now: Instant) -> bool {
        false
    }

    /// The stream is over: judge what is left and close the file. Harmless twice.
    ///
    /// # Errors
    /// The sink could not write.
    fn finish(&mut self, _now: Instant) -> Result<(), MediaError> {
        Ok(())
    }
}

/// Takes every frame and drops it.
impl FrameSink for () {
    fn on_frame(&mut self, _: Instant, _: ReceivedFrame) -> Result<(), MediaError> {
        Ok(())
    }
}

/// The RTP media clock at an instant of the run: 90 kHz, rounded down, wraps after 13 h.
pub fn timestamp_90k(at: Instant) -> u32 {
    // 90,000 / 10^9 = 9 / 100,000
    (u128::from(at.as_nanos()) * 9 / 100_000) as u32
}

/// The rate left for media when packets of `packet` bytes, `headers` of which are not media, may leave at `wire`: the
/// rate for [`FrameSource::set_rate`].
///
/// Frames rarely fill their last packet: a driver that lets packets be short sends a little more
/// headers than this says.
pub fn media_rate(wire: Rate, packet: Bytes, headers: Bytes) -> Rate {
    if packet <= headers { Rate::ZERO } else { wire * ((packet - headers).as_f64() / packet.as_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_clock_ticks_90_thousand_times_a_second_and_wraps() {
        assert_eq!(timestamp_90k(Instant::from_nanos(1_000_000_000)), 90_000);
        assert_eq!(timestamp_90k(Instant::from_nanos(40_000_000)), 3_600);
        // 2^32 / 90,000 = 47,721.86 s; one more second is 90,000 ticks further, modulo 2^32:
        // 47,722 s = 4,294,980,000 ticks, minus 4,294,967,296 = 12,704
        assert_eq!(timestamp_90k(Instant::from_nanos(47_722_000_000_000)), 12_704);
    }

    #[test]
    fn headers_take_their_share_of_the_wire() {
        // 1,000 B packets with 40 B of headers: 960/1,000 of 1 Mbit/s
        assert_eq!(media_rate(Rate::mbps(1.0), Bytes::new(1_000), Bytes::new(40)), Rate::kbps(960.0));
        assert_eq!(media_rate(Rate::mbps(1.0), Bytes::new(40), Bytes::new(40)), Rate::ZERO);
    }
}
