//! A connection as the network engine drives it: sender, receiver, source.

use std::sync::Arc;

use fairpace_units::{Bytes, Instant, RandomStream};

use super::{TcpParams, TcpReceiver, TcpSender, TcpSource, TcpVariant};
use crate::bursts::Bursts;

/// Both ends of one connection and what it carries. A segment that arrives touches the first cache line, an acknowledgement the next five.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct TcpEndpoint {
    pub(crate) rx: TcpReceiver,
    pub(crate) finished: Option<Instant>,
    source: Source,
    /// The size of segment 0: that of the SYN, if there is one.
    first_size: u32,
    segment_size: u32,
    pub(crate) tx: TcpSender,
}

#[derive(Clone, Debug)]
enum Source {
    Ftp,
    OnOff(Box<Bursts>),
    /// The SYN, if there is one, is one of the segments.
    Transfer {
        segments: u32,
        last_size: u32,
    },
}

/// IP and TCP headers, in bytes.
const HEADERS: u32 = 40;

impl TcpEndpoint {
    /// The bytes of it that a segment touches which arrives, and, behind these, those that an acknowledgement does.
    pub(crate) const RECEIVING: usize = TcpReceiver::HOT.next_multiple_of(64);
    pub(crate) const SENDING: usize = std::mem::offset_of!(TcpEndpoint, tx) + TcpSender::HOT;

    pub(crate) fn new(
        params: Arc<TcpParams>,
        source: &TcpSource,
        segment_size: u32,
        jitter: RandomStream,
        on_off: RandomStream,
    ) -> Self {
        let handshake = params.handshake;
        let first_size = if params.handshake { HEADERS } else { segment_size };
        TcpEndpoint {
            first_size,
            rx: TcpReceiver::new(params.variant == TcpVariant::Sack, params.delayed_ack),
            tx: TcpSender::new(params, jitter),
            source: match *source {
                TcpSource::Ftp => Source::Ftp,
                TcpSource::OnOff(on_off_times) => Source::OnOff(Box::new(Bursts::new(on_off_times, on_off))),
                TcpSource::Transfer(bytes) => transfer(bytes, segment_size, handshake),
            },
            segment_size,
            finished: None,
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        match &mut self.source {
            Source::Ftp => self.tx.on_data(now, u32::MAX),
            Source::OnOff(bursts) => {
                bursts.start(now);
                self.tx.on_data(now, u32::MAX);
            }
            Source::Transfer { segments, .. } => self.tx.on_data(now, *segments),
        }
    }

    pub(crate) fn stop(&mut self) {
        self.tx.pause();
        if let Source::OnOff(bursts) = &mut self.source {
            bursts.stop();
        }
    }

    pub(crate) fn on_timer(&mut self, now: Instant) {
        if let Source::OnOff(bursts) = &mut self.source
            && now >= bursts.next()
        {
            if bursts.toggle(now) {
                self.tx.on_data(now, u32::MAX);
            } else {
                self.tx.pause();
            }
        }
        self.tx.on_timer(now);
    }

    /// All timers.
    pub(crate) fn poll_timer(&self) -> Instant {
        self.tx.poll_timeout().min(self.poll_fast_timer())
    }

    /// All but the retransmission timeout.
    #[inline]
    pub(crate) fn poll_fast_timer(&self) -> Instant {
        let next = self.tx.poll_jitter();
        if let Source::OnOff(bursts) = &self.source { next.min(bursts.next()) } else { next }
    }

    #[inline]
    pub(crate) fn size_of(&self, seq: u32) -> u32 {
        match self.source {
            _ if seq == 0 && self.first_size != self.segment_size => self.first_size,
            Source::Transfer { segments, last_size } if seq + 1 == segments => last_size,
            _ => self.segment_size,
        }
    }

    /// Nothing waits for anything: all that was sent is acknowledged, and the receiver owes no ACK.
    pub(crate) fn is_quiet(&self) -> bool {
        self.tx.outstanding() == 0 && self.tx.unsent() == 0 && self.rx.poll_timer() == Instant::NEVER
    }

    /// Notes the end of a transfer; call after each ACK.
    #[inline]
    pub(crate) fn note_progress(&mut self, now: Instant) {
        if let Source::Transfer { segments, .. } = self.source
            && self.finished.is_none()
            && self.tx.acknowledged() >= segments
        {
            self.finished = Some(now);
        }
    }
}

const _: () = assert!(TcpEndpoint::RECEIVING == 64 && TcpEndpoint::SENDING <= 384);

/// How many segments, and how large the last one is. Sizes are on the wire, headers included, and without the SYN's.
fn transfer(bytes: Bytes, segment_size: u32, handshake: bool) -> Source {
    let size = u64::from(segment_size);
    let segments = bytes.get().div_ceil(size).min(u64::from(u32::MAX) - 2);
    let rest = (bytes.get() - segments.saturating_sub(1) * size).min(size);
    Source::Transfer { segments: segments as u32 + u32::from(handshake), last_size: rest as u32 }
}
