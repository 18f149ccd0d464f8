//! Several streams on one thread: one timer for all, one look at all sockets.
//!
//! Each stream is a session of its own, with its socket, controller and source, and ends alone; the others go on. A round asks
//! the streams whose instant has come and those whose sockets have something, each once, in the order of the instants. Between two
//! rounds lies [`ROUND`] at least, so that what is due about the same time costs one wake-up: a packet is late by so much at the most.

use super::{DATAGRAM, Drained, LOOK_UP, Running, SendConfig, SendObserver, SendReport, fit_to_device};
use crate::alarms::Alarms;
use crate::pacing::thread_cpu;
use crate::watch::Watch;
use crate::{Clock, DatagramIo as _, NetError, UdpSocket, Waiter};
use fairpace_media::FrameSource;
use fairpace_units::{Duration, Instant};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// From one round to the next, where there is more than one stream.
const ROUND: Duration = Duration::from_micros(100);
/// A wait that is shorter than this is slept through, and the sockets are looked at afterwards: what has come has the kernel's stamp.
const SHORT: Duration = Duration::from_millis(1);

/// One stream of several.
pub struct Stream<'a> {
    /// Whom to send to, and how.
    pub config: SendConfig,
    /// Where the frames come from.
    pub source: &'a mut dyn FrameSource,
    /// Who looks on.
    pub observer: &'a mut dyn SendObserver,
}

/// Sends all streams until each has ended, each as [`run`](super::run) does. `ended` gets the number of a stream in the list, from 0, with its record as
/// soon as it is over, or with what prevented its beginning. [`SendReport::cpu`] is that of the whole thread.
///
/// # Errors
/// The kernel gives no timer, or refuses to wait.
pub fn run_many(
    streams: &mut [Stream<'_>],
    clock: Clock,
    stop: &AtomicBool,
    mut ended: impl FnMut(usize, Result<SendReport, NetError>),
) -> Result<(), NetError> {
    let cpu = thread_cpu();
    let (mut waiter, mut watch) = (Waiter::new(clock)?, Watch::new()?);
    let mut alarms = Alarms::default();
    let round = if streams.len() > 1 { ROUND } else { Duration::ZERO };
    let mut all = Vec::new();
    let now = clock.now();
    for (number, stream) in streams.iter_mut().enumerate() {
        let begun = Sending::begin(stream, clock).and_then(|sending| {
            watch.add(sending.socket.descriptor(), number)?;
            Ok(sending)
        });
        all.push(begun.map_err(|error| ended(number, Err(error))).ok());
        alarms.set(number, if all.last().is_some_and(Option::is_some) { now } else { Instant::NEVER });
    }
    let mut left = all.iter().flatten().count();
    let (mut buffer, mut due) = (vec![0; DATAGRAM], Vec::new());
    let (mut looked, mut stopping) = (now, false);
    while left > 0 {
        let now = clock.now();
        if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut stopping, true) {
            (0..all.len()).for_each(|number| alarms.set(number, now));
        }
        alarms.take_due(now, &mut due);
        for number in due.drain(..) {
            let Some(slot) = all.get_mut(number) else { continue };
            match slot.as_mut().map(|sending| sending.turn(&mut buffer, stop)) {
                Some(Drained::Wait(until)) => alarms.set(number, until),
                Some(Drained::Stopped(reason)) => {
                    left -= 1;
                    if let Some(sending) = slot.take() {
                        ended(number, Ok(sending.finish(reason, thread_cpu().saturating_sub(cpu))));
                    }
                }
                None => {}
            }
        }
        // A round that took long is followed by the next at once.
        let until = alarms.next().max(now + round);
        let is_short = until.since(clock.now()) < SHORT;
        let readable = if is_short {
            waiter.sleep(until)?;
            clock.now().since(looked) >= SHORT
        } else {
            waiter.wait(until.min(now + LOOK_UP), &[watch.as_fd()])?.readable != 0
        };
        if readable {
            looked = clock.now();
            watch.each_readable(|number| {
                if let Some(sending) = all.get_mut(number).and_then(Option::as_mut) {
                    sending.readable = true;
                    alarms.set(number, looked);
                }
            })?;
        }
    }
    Ok(())
}

/// A stream that has begun.
struct Sending<'a> {
    run: Running<'a>,
    socket: UdpSocket,
    source: &'a mut dyn FrameSource,
    observer: &'a mut dyn SendObserver,
    /// Datagrams have come.
    readable: bool,
}

impl<'a> Sending<'a> {
    fn begin(stream: &'a mut Stream<'_>, clock: Clock) -> Result<Sending<'a>, NetError> {
        let Stream { config, source, observer } = stream;
        config.check()?;
        let socket = UdpSocket::connect(config.peer, config.buffers, clock)?;
        fit_to_device(config, &socket, clock, &mut **observer)?;
        let run = Running::begin(config, clock, source.format())?;
        Ok(Sending { run, socket, source: &mut **source, observer: &mut **observer, readable: true })
    }

    /// Once round; the instant is that of the next.
    fn turn(&mut self, buffer: &mut [u8], stop: &AtomicBool) -> Drained {
        let readable = std::mem::take(&mut self.readable);
        match self.run.turn(&mut self.socket, self.source, buffer, readable, stop) {
            Drained::Wait(until) => {
                self.run.notify(self.source, self.observer);
                let until = self.run.until(until, self.source);
                // The connection of a TCP half is looked at so often, and not watched.
                Drained::Wait(if self.run.has_tcp() { until.min(self.run.now + SHORT) } else { until })
            }
            stopped @ Drained::Stopped(_) => stopped,
        }
    }

    fn finish(mut self, reason: fairpace_rtp::StopReason, cpu: Duration) -> SendReport {
        self.run.finish(&mut self.socket, self.source, self.observer, reason, cpu)
    }
}
