//! Traffic that listens to nobody: a constant rate, perhaps in bursts.

use fairpace_units::{Class, Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream};

use crate::bursts::Bursts;
use crate::config::ConstantConfig;

/// The TTL that packets leave with.
const TTL: u8 = 64;

/// The sender of a [`ConstantConfig`]: start it, ask it for packets until there is none, come back at
/// [`ConstantSender::poll_timer`] and tell it so.
#[derive(Clone, Debug)]
pub struct ConstantSender {
    /// Nanoseconds between packets, with their fraction.
    spacing_ns: f64,
    size: u32,
    class: Class,
    quick_start: Option<(QsRate, RandomStream)>,
    bursts: Option<Bursts>,
    /// Packet `n` of the current burst leaves at `began` + n × spacing: no rounding adds up.
    began: Instant,
    in_burst: u64,
    next_packet: Instant,
    seq: u64,
}

impl ConstantSender {
    /// Packets of `size` bytes; lengths of bursts are drawn from `on_off`, Quick-Start TTLs and nonces from `quick_start`.
    pub fn new(config: &ConstantConfig, size: u32, on_off: RandomStream, quick_start: RandomStream) -> Self {
        ConstantSender {
            spacing_ns: f64::from(size) * 8e9 / config.rate.as_bps(),
            size,
            class: config.class,
            quick_start: config.quick_start.map(|rate| (rate, quick_start)),
            bursts: config.on_off.map(|times| Bursts::new(times, on_off)),
            began: Instant::ZERO,
            in_burst: 0,
            next_packet: Instant::NEVER,
            seq: 0,
        }
    }

    /// The source begins.
    pub fn start(&mut self, now: Instant) {
        if let Some(bursts) = &mut self.bursts {
            bursts.start(now);
        }
        self.begin_burst(now);
    }

    /// The source ends.
    pub fn stop(&mut self) {
        self.next_packet = Instant::NEVER;
        if let Some(bursts) = &mut self.bursts {
            bursts.stop();
        }
    }

    /// The instant that [`ConstantSender::poll_timer`] named has come.
    pub fn on_timer(&mut self, now: Instant) {
        if let Some(bursts) = &mut self.bursts
            && now >= bursts.next()
        {
            if bursts.toggle(now) {
                self.begin_burst(now);
            } else {
                self.next_packet = Instant::NEVER;
            }
        }
    }

    /// Number, size and class of the next packet to send now; ask until there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(u64, u32, Class)> {
        if now < self.next_packet {
            return None;
        }
        self.in_burst += 1;
        self.next_packet = Instant::from_nanos(self.began.as_nanos() + (self.in_burst as f64 * self.spacing_ns) as u64);
        self.seq += 1;
        Some((self.seq - 1, self.size, self.class))
    }

    /// The option of the packet that leaves now.
    pub fn quick_start(&mut self) -> Option<QsOption> {
        let (rate, random) = self.quick_start.as_mut()?;
        let bits = random.bits();
        let (qs_ttl, nonce) = ((bits >> 32) as u8, QsNonce::new(bits as u32));
        Some(QsOption { function: QsFunction::Request, rate: *rate, qs_ttl, ip_ttl: TTL, nonce })
    }

    /// When the next packet leaves or a burst begins or ends; never if it is over.
    pub fn poll_timer(&self) -> Instant {
        self.bursts.as_ref().map_or(self.next_packet, |b| self.next_packet.min(b.next()))
    }

    /// `on` or `off`.
    pub fn state(&self) -> &'static str {
        let on = self.bursts.as_ref().map_or(self.next_packet != Instant::NEVER, Bursts::on);
        if on { "on" } else { "off" }
    }

    fn begin_burst(&mut self, now: Instant) {
        (self.began, self.in_burst, self.next_packet) = (now, 0, now);
    }
}
