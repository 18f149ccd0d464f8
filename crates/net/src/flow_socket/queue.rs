//! Between a program and the thread that serves its socket: ADUs that wait to leave, and ADUs that wait to be read.
//!
//! Both are bounded in bytes. The thread never waits here; the program does.

use super::stats::{FlowSocketStats, Received};
use crate::NetError;
use fairpace_media::{Codec, EncodedFrame, Format, FrameSink, FrameSource, MediaError, ReceivedFrame, timestamp_90k};
use fairpace_units::{Bytes, Duration, Instant, Rate, Via};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The state that program and thread share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Tells the thread: there is something to send, or room.
    pub(super) wake: Arc<EventFd>,
    /// Tells the program: there is something to read.
    pub(super) readiness: EventFd,
    send_limit: usize,
    receive_limit: usize,
    reorder_wait: Duration,
}

/// Under the lock.
#[derive(Debug, Default)]
pub(super) struct State {
    peer: bool,
    ended: bool,
    /// The program waits no more.
    cancelled: bool,
    error: Option<NetError>,
    pub(super) stats: FlowSocketStats,
    /// To send: whole ADUs, and the one that the program has begun.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    open: Vec<u8>,
    finished: bool,
    /// Not all that was given has left.
    pub(super) left_behind: bool,
    /// To read: ADUs in order, and bytes taken of the first.
    ready: VecDeque<Adu>,
    taken: usize,
    /// Behind a gap, by first sequence number.
    held: BTreeMap<u64, Held>,
    held_bytes: usize,
    /// First sequence number of the next ADU.
    next: Option<u64>,
    last_via: Option<Via>,
}

#[derive(Debug)]
struct Adu {
    data: Vec<u8>,
    via: Option<Via>,
    missing: u64,
    completed: Instant,
}

#[derive(Debug)]
struct Held {
    data: Vec<u8>,
    via: Option<Via>,
    last: u64,
    completed: Instant,
}

impl State {
    pub(super) fn peer_is_there(&mut self) {
        self.peer = true;
    }

    pub(super) fn has_peer(&self) -> bool {
        self.peer
    }

    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(super) fn end(&mut self, error: Option<NetError>) {
        self.ended = true;
        self.error = self.error.take().or(error);
    }

    /// The thread is over: if it has not said why, it has failed.
    pub(super) fn end_if_going_on(&mut self) {
        if !self.ended {
            self.end(Some(NetError::io("go on with the flow: its thread has failed", Errno::ENOTRECOVERABLE)));
        }
    }

    /// Why a flow that was closed did not end well.
    pub(super) fn take_error(&mut self) -> Option<NetError> {
        let left_behind = self.finished && (self.left_behind || !self.waiting.is_empty());
        self.error
            .take()
            .or_else(|| left_behind.then(|| NetError::io("let all leave before `linger` is over", Errno::ETIMEDOUT)))
    }

    /// The error that a program gets once its flow is over.
    fn why(&mut self) -> NetError {
        self.error.take().unwrap_or_else(|| NetError::io("use a flow that has ended", Errno::EPIPE))
    }

    pub(super) fn readable_bytes(&self) -> usize {
        self.held_bytes + self.ready.iter().map(|adu| adu.data.len()).sum::<usize>()
    }

    /// Hands on what is in order, and what has waited for a gap long enough.
    fn advance(&mut self, now: Instant, wait: Duration) {
        while let Some(entry) = self.held.first_entry() {
            let first = *entry.key();
            let expected = self.next.unwrap_or(first);
            if first > expected && now < entry.get().completed + wait {
                return;
            }
            let held = entry.remove();
            self.held_bytes -= held.data.len();
            if first < expected {
                self.stats.late += 1;
                continue;
            }
            self.next = Some(held.last + 1);
            self.stats.missing += first - expected;
            self.stats.split += u64::from(held.via.is_none());
            if let Some(via) = held.via {
                self.stats.switches += u64::from(self.last_via.is_some_and(|last| last != via));
                self.last_via = Some(via);
                self.stats.via = via;
            }
            let Held { data, via, completed, .. } = held;
            self.ready.push_back(Adu { data, via, missing: first - expected, completed });
        }
    }

    fn next_deadline(&self, wait: Duration) -> Instant {
        self.held.first_key_value().map_or(Instant::NEVER, |(_, held)| held.completed + wait)
    }
}

impl Shared {
    pub(super) fn new(send: Bytes, receive: Bytes, reorder_wait: Duration) -> Result<Shared, NetError> {
        let event = || {
            EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
                .map_err(|e| NetError::io("make an event descriptor", e))
        };
        let bytes = |b: Bytes| usize::try_from(b.get()).unwrap_or(usize::MAX);
        Ok(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            wake: Arc::new(event()?),
            readiness: event()?,
            send_limit: bytes(send),
            receive_limit: bytes(receive),
            reorder_wait,
        })
    }

    /// A panic under the lock leaves a flow that has ended, not one that hangs.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            state.end_if_going_on();
            state
        })
    }

    /// Looks at or changes the state; the program, if it waits, looks again.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = f(&mut state);
        self.show(&state);
        self.changed.notify_all();
        result
    }

    /// `readiness` is readable while there is something to read.
    fn show(&self, state: &State) {
        let _ = self.readiness.read();
        if !state.ready.is_empty() || state.ended {
            let _ = self.readiness.write(1);
        }
    }

    pub(super) fn wake(&self) {
        // The write fails only at 2^64 - 1 unread events.
        let _ = self.wake.write(1);
    }

    /// Until something has changed; an error if the program is to wait no more.
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>, NetError> {
        if state.cancelled {
            return Err(NetError::io("wait any longer: the socket is being closed", Errno::ECANCELED));
        }
        let state = self.changed.wait(state).unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            state.end_if_going_on();
            state
        });
        Ok(state)
    }

    /// Until the flow has ended; `false` if it has not after so long.
    pub(super) fn await_end(&self, at_most: Duration) -> bool {
        let going_on = |state: &mut State| !state.ended;
        let (state, _) =
            self.changed.wait_timeout_while(self.lock(), at_most, going_on).unwrap_or_else(PoisonError::into_inner);
        state.ended
    }

    /// Until both halves are there, or the flow has ended.
    pub(super) fn await_peer(&self) -> Result<(), NetError> {
        let mut state = self.lock();
        loop {
            if state.peer {
                return Ok(());
            }
            if state.ended {
                return Err(state.why());
            }
            state = self.wait(state)?;
        }
    }

    pub(super) fn send(&self, bytes: &[u8], adu_end: bool) -> Result<(), NetError> {
        let mut state = self.lock();
        let len = state.open.len() + bytes.len();
        if len > self.send_limit {
            state.open = Vec::new();
            let allowed = format!("at most {} B, the send queue: mark the end of a unit before", self.send_limit);
            return Err(NetError::Config { field: "ADU", found: format!("{len} B"), allowed });
        }
        while !state.ended && state.waiting_bytes + len > self.send_limit {
            state = self.wait(state)?;
        }
        if state.ended {
            return Err(state.why());
        }
        state.open.extend_from_slice(bytes);
        if adu_end && !state.open.is_empty() {
            let adu = core::mem::take(&mut state.open);
            state.waiting_bytes += adu.len();
            state.waiting.push_back(adu);
            drop(state);
            self.wake();
        }
        Ok(())
    }

    /// Nothing more will be sent.
    pub(super) fn finish(&self) {
        self.with(|s| s.finished = true);
        self.wake();
    }

    pub(super) fn recv(&self, buffer: &mut [u8]) -> Result<Option<Received>, NetError> {
        let mut state = self.lock();
        loop {
            let taken = state.taken;
            if let Some(adu) = state.ready.front() {
                let rest = adu.data.get(taken..).unwrap_or_default();
                let len = rest.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..len), rest.get(..len)) {
                    to.copy_from_slice(from);
                }
                let adu_end = len == rest.len();
                let (via, completed) = (adu.via, adu.completed);
                let missing = if taken == 0 { adu.missing } else { 0 };
                state.taken += len;
                state.stats.bytes += len as u64;
                if adu_end {
                    state.taken = 0;
                    state.stats.adus += 1;
                    state.ready.pop_front();
                }
                self.show(&state);
                drop(state);
                self.wake();
                return Ok(Some(Received { len, adu_end, via, missing, completed }));
            }
            if state.ended {
                return state.error.take().map_or(Ok(None), Err);
            }
            state = self.wait(state)?;
        }
    }
}

/// The thread's end of the queue to send.
pub(super) struct QueueSource {
    shared: Arc<Shared>,
}

impl QueueSource {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        QueueSource { shared }
    }
}

/// Nothing is there, but more may come.
const LATER: Instant = Instant::from_nanos(u64::MAX - 1);

impl FrameSource for QueueSource {
    fn format(&self) -> Format {
        Format {
            codec: Codec::Filler,
            width: 0,
            height: 0,
            frame_interval: Duration::ZERO,
            follows_rate: true,
            scaled_from: None,
            sound: false,
            cut_off: false,
        }
    }

    /// The queue is full or it is not: that is how a program hears of the rate.
    fn set_rate(&mut self, _rate: Rate) {}

    fn request_key_frame(&mut self) {}

    fn next_frame_at(&self) -> Instant {
        // Cleared first: what comes in between wakes again.
        let _ = self.shared.wake.read();
        let state = self.shared.lock();
        match state.waiting.is_empty() {
            false => Instant::ZERO,
            true if state.finished => Instant::NEVER,
            true => LATER,
        }
    }

    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        Ok(self.shared.with(|s| {
            let data = s.waiting.pop_front()?;
            s.waiting_bytes -= data.len();
            s.stats.adus += 1;
            s.stats.bytes += data.len() as u64;
            Some(EncodedFrame { data, capture: now, timestamp_90k: timestamp_90k(now), key: true })
        }))
    }
}

/// The thread's end of the queue to read.
pub(super) struct QueueSink {
    shared: Arc<Shared>,
}

impl QueueSink {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        QueueSink { shared }
    }
}

impl FrameSink for QueueSink {
    fn on_frame(&mut self, now: Instant, frame: ReceivedFrame) -> Result<(), MediaError> {
        let (limit, wait) = (self.shared.receive_limit, self.shared.reorder_wait);
        self.shared.with(|s| {
            // Data that came by TCP was read because there was room, and must not be lost.
            if frame.via != Some(Via::Tcp) && s.readable_bytes() + frame.data.len() > limit {
                s.stats.overflowed += 1;
                return;
            }
            s.held_bytes += frame.data.len();
            let ReceivedFrame { first_sequence, last_sequence: last, data, via, arrival: completed, .. } = frame;
            if let Some(twice) = s.held.insert(first_sequence, Held { data, via, last, completed }) {
                s.held_bytes -= twice.data.len();
            }
            s.advance(now, wait);
        });
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Result<(), MediaError> {
        let _ = self.shared.wake.read();
        let wait = self.shared.reorder_wait;
        self.shared.with(|s| s.advance(now, wait));
        Ok(())
    }

    fn next(&self) -> Instant {
        self.shared.lock().next_deadline(self.shared.reorder_wait)
    }

    fn has_room(&self) -> bool {
        self.shared.lock().readable_bytes() < self.shared.receive_limit
    }

    fn finish(&mut self, _now: Instant) -> Result<(), MediaError> {
        self.shared.with(|s| s.advance(Instant::NEVER, Duration::ZERO));
        Ok(())
    }
}
