//! A relay: UDP in on one port, out to one target, and between them a path in real time. Other
//! flows of the simulator (TCP) take the same bottleneck at the same time.
//!
//! ```text
//!   client ──UDP──▶ [listen]  ──▶ path, forward ──▶  [upstream] ──UDP──▶ target
//!          ◀────────          ◀── path, back    ◀──             ◀───────
//! ```
//!
//! The path is the simulator's network, told the real time: it moves tokens, and the packets' bytes
//! wait in a store beside it. A packet enters the path when the kernel received it, and leaves
//! within timer accuracy of the instant the path names; how late that was is measured for every
//! packet and reported, and the run is marked invalid if the relay could not keep up.
//!
//! A Quick-Start option of a client's packet is read from the socket, judged by the path's routers, and set again on the packet that goes
//! to the target, with the TTL that a router would leave (that takes CAP_NET_RAW; without, the packet goes on without the option).
//!
//! DSCP decides the class in the queue, and DSCP and ECN are passed on as they came (or as the path
//! marked them). One client at a time: a new one takes over when the old one has been silent for
//! [`TAKEOVER_AFTER`]. Who has not shown that it hears gets at most three times what it sent
//! (`hearing.rs`).

mod config;
mod hearing;
mod sample;
#[cfg(test)]
mod targets;
mod world;

pub use config::{Begin, RelayConfig};
pub use sample::{FlowSample, LinkSample, RelaySample};

use crate::store::Store;
use fairpace_net::pacing::thread_cpu;
use fairpace_net::{
    Clock, DatagramIo, Granted, LatenessHistogram, LatenessSummary, Mark, NetError, RecvOutcome, SendOutcome,
    SocketCounters, UdpSocket, Waiter, Woken, elsewhere, ip_overhead, random,
};
use fairpace_sim::{Direction, HopConfig, Observer, SimReport};
use fairpace_units::{Bytes, Duration, Instant};
use hearing::Hearing;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Marks, World};

/// A silent client keeps its place this long.
pub const TAKEOVER_AFTER: Duration = Duration::from_secs(2);

/// How a relay ended and what it saw.
#[derive(Debug)]
pub struct RelayReport {
    /// How long the path's time ran.
    pub elapsed: Duration,
    /// One sample per interval and one at the end.
    pub series: Vec<RelaySample>,
    /// How late packets were released.
    pub lateness: LatenessSummary,
    /// CPU time of the relay / time it ran.
    pub cpu: f64,
    /// The socket towards the clients.
    pub client_socket: SocketCounters,
    /// The socket towards the target.
    pub target_socket: SocketCounters,
    /// Clients seen.
    pub clients: u64,
    /// Packets from others while a client held the place.
    pub strangers: u64,
    /// Packets dropped because the store was full.
    pub store_full: u64,
    /// Packets that came out of the path and could not be sent on.
    pub not_sent: u64,
    /// Packets that came out of the path for a client that had not shown that it hears, or had lost its place.
    pub withheld: u64,
    /// Packets still inside the path at the end.
    pub under_way: u64,
    /// Most bytes ever under way.
    pub peak_memory: Bytes,
    /// Why the numbers are not to be trusted; empty if they are.
    pub invalid: Vec<String>,
    /// The path's record of everything, media that are no links included.
    pub path: SimReport,
}

impl RelayReport {
    /// Whether the relay kept up.
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty()
    }
}

/// A relay whose sockets are open and that is ready to run.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    clock: Clock,
    client_side: UdpSocket,
    target_side: UdpSocket,
    world: World,
}

impl Relay {
    /// Opens the sockets and builds the path.
    ///
    /// # Errors
    /// [`NetError`]: port in use, no route to the target, a link that cannot be.
    pub fn open(config: RelayConfig, clock: Clock) -> Result<Relay, NetError> {
        if config.sample.is_zero() {
            return Err(NetError::Config {
                field: "sample",
                found: "0 s".to_owned(),
                allowed: "longer than zero".to_owned(),
            });
        }
        let world = World::new(&config)?;
        let client_side = UdpSocket::listen(config.listen, config.family, config.buffers, clock)?;
        elsewhere("to", config.to, client_side.local_address()?)?;
        let target_side = UdpSocket::connect(config.to, config.buffers, clock)?;
        let mut client_side = client_side;
        client_side.look_for_quick_start()?;
        Ok(Relay { config, clock, client_side, target_side, world })
    }

    /// Where clients send to.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, NetError> {
        self.client_side.local_address()
    }

    /// The client side's buffers, asked and granted.
    pub fn buffers(&self) -> Granted {
        self.client_side.buffers()
    }

    /// Whether the path has a router that knows Quick-Start.
    pub fn has_quick_start(&self) -> bool {
        self.config.hops().0.iter().any(|hop| match hop {
            HopConfig::Links { forward, back, .. } => forward.quick_start.is_some() || back.quick_start.is_some(),
            HopConfig::Satellite { .. } => true,
            _ => false,
        })
    }

    /// Whether Quick-Start options can be set again on packets that go to the target.
    ///
    /// # Errors
    /// As [`UdpSocket::may_quick_start`].
    pub fn may_quick_start(&self) -> Result<(), NetError> {
        self.target_side.may_quick_start()
    }

    /// Tells `observer` of every packet in the path, simulated ones included: for captures.
    pub fn watch(&mut self, observer: Box<dyn Observer>) {
        self.world.observe(observer);
    }

    /// Relays until the duration is over or `stop` is set. `observe` gets each sample as it is taken.
    ///
    /// # Errors
    /// [`NetError::Io`] if the kernel refuses to wait.
    pub fn run(self, mut observe: impl FnMut(&RelaySample), stop: &AtomicBool) -> Result<RelayReport, NetError> {
        let cpu = thread_cpu();
        let mut run = Running::new(self)?;
        let begin_wall = run.clock.now();
        while !run.over(stop) {
            // Woken by the timer alone, there is nothing to read, and what is due must not wait for that.
            if run.wait()?.readable != 0 {
                run.receive();
            }
            run.release();
            run.sample_if_due(&mut observe);
        }
        let elapsed = run.clock.now().since(begin_wall).as_secs_f64().max(1e-9);
        let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64() / elapsed;
        Ok(run.finish(&mut observe, cpu))
    }
}

/// Opens and runs a relay.
///
/// # Errors
/// As [`Relay::open`] and [`Relay::run`].
pub fn run(config: RelayConfig, observe: impl FnMut(&RelaySample), stop: &AtomicBool) -> Result<RelayReport, NetError> {
    Relay::open(config, Clock::awake())?.run(observe, stop)
}

/// Packets read from each socket before anything else is done: at 1 µs each, well below the
/// accuracy of the timer.
const READ_BUDGET: usize = 256;
/// The stop flag is looked at this often, if nothing else happens.
const LOOK_UP: Duration = Duration::from_millis(50);

struct Running {
    config: RelayConfig,
    clock: Clock,
    waiter: Waiter,
    client_side: UdpSocket,
    target_side: UdpSocket,
    world: World,
    /// Each with its mark, and where it goes if not to the target.
    store: Store<(Mark, Option<SocketAddr>)>,
    /// The path's zero on the run's clock.
    zero: Option<Instant>,
    client: Option<SocketAddr>,
    client_seen: Instant,
    hearing: Hearing,
    /// Packets read in this round: they enter the path in the order of their arrival.
    arrivals: Vec<(Instant, Direction, Bytes, Marks, u64)>,
    buffer: Vec<u8>,
    lateness: LatenessHistogram,
    next_sample: Instant,
    series: Vec<RelaySample>,
    relayed: Bytes,
    clients: u64,
    strangers: u64,
    store_full: u64,
    not_sent: u64,
    withheld: u64,
}

impl Running {
    fn new(relay: Relay) -> Result<Running, NetError> {
        let Relay { config, clock, client_side, target_side, world } = relay;
        let memory = usize::try_from(config.memory.get()).unwrap_or(usize::MAX);
        Ok(Running {
            waiter: Waiter::new(clock)?,
            clock,
            client_side,
            target_side,
            world,
            store: Store::new(memory),
            zero: (config.begin == Begin::AtOnce).then(|| clock.now()),
            client: None,
            client_seen: Instant::ZERO,
            hearing: Hearing::default(),
            arrivals: Vec::new(),
            buffer: vec![0; 65_536],
            lateness: LatenessHistogram::new(),
            next_sample: Instant::ZERO + config.sample,
            series: Vec::new(),
            relayed: Bytes::ZERO,
            clients: 0,
            strangers: 0,
            store_full: 0,
            not_sent: 0,
            withheld: 0,
            config,
        })
    }

    /// The path's time at an instant of the run's clock; zero before it began.
    fn path_time(&self, at: Instant) -> Instant {
        self.zero.map_or(Instant::ZERO, |zero| Instant::ZERO + at.since(zero))
    }

    fn over(&self, stop: &AtomicBool) -> bool {
        let now = self.path_time(self.clock.now());
        stop.load(Ordering::Relaxed) || self.config.duration.is_some_and(|d| now >= Instant::ZERO + d)
    }

    /// Everything that has come goes into the path, in the order in which the kernel got it.
    fn receive(&mut self) {
        for direction in [Direction::Forward, Direction::Back] {
            for _ in 0..READ_BUDGET {
                let socket = match direction {
                    Direction::Forward => &mut self.client_side,
                    Direction::Back => &mut self.target_side,
                };
                let packet = match socket.recv(&mut self.buffer) {
                    RecvOutcome::Packet(packet) => packet,
                    // The target is not up yet, or went away: its absence is the clients' to notice.
                    RecvOutcome::Refused | RecvOutcome::Hint => continue,
                    RecvOutcome::Empty | RecvOutcome::Failed(_) => break,
                };
                let to = match direction {
                    Direction::Forward if !self.admit(packet.from, packet.at) => {
                        self.strangers += 1;
                        continue;
                    }
                    Direction::Forward => None,
                    Direction::Back => match self.client {
                        Some(client) => Some(client),
                        None => continue,
                    },
                };
                let bytes = self.buffer.get_mut(..packet.len).unwrap_or_default();
                match direction {
                    Direction::Forward => self.hearing.on_received(bytes),
                    Direction::Back => self.hearing.on_answer(bytes),
                }
                let Some(token) = self.store.put(&[bytes], (packet.mark, to)) else {
                    self.store_full += 1;
                    continue;
                };
                let size = Bytes::new(packet.len as u64) + ip_overhead(&packet.from);
                self.arrivals.push((packet.at, direction, size, (packet.mark, packet.quick_start), token));
            }
        }
        self.arrivals.sort_by_key(|a| a.0);
        for (at, direction, size, marks, token) in self.arrivals.drain(..) {
            let zero = *self.zero.get_or_insert(at);
            let at = Instant::ZERO + at.since(zero);
            self.world.inject(at, direction, size, marks, token);
        }
    }

    /// Whether a packet from this address is relayed.
    fn admit(&mut self, from: SocketAddr, at: Instant) -> bool {
        if self.client != Some(from) {
            let is_peer = |peer: SocketAddr| from.ip() == peer.ip() && [0, from.port()].contains(&peer.port());
            if self.config.peer.is_some_and(|peer| !is_peer(peer)) {
                return false;
            }
            if self.client.is_some() && at.since(self.client_seen) < TAKEOVER_AFTER {
                return false;
            }
            self.client = Some(from);
            self.hearing = match self.config.peer {
                Some(_) => Hearing::configured(),
                None => Hearing::of(random().ok().map(u32::from_be_bytes)),
            };
            self.clients += 1;
        }
        self.client_seen = self.client_seen.max(at);
        true
    }

    /// Everything that has come out of the path is sent on.
    fn release(&mut self) {
        if self.zero.is_none() {
            return;
        }
        let now = self.path_time(self.clock.now());
        self.world.advance(now);
        while let Some(out) = self.world.take_delivered() {
            let late = self.path_time(self.clock.now()).since(out.at);
            let mut sent = SendOutcome::Sent;
            let mut length = 0;
            if let Some((bytes, (mark, to))) = self.store.get(out.token) {
                // A path may mark congestion; it never takes a mark away.
                let mark = Mark { ecn: out.ecn, ..*mark };
                length = bytes.len() as u64;
                match out.direction {
                    Direction::Forward => {
                        // The option as the path's routers left it, with its TTL.
                        sent = match &out.quick_start {
                            Some(option) => self.target_side.send_option(bytes, mark, option),
                            None => self.target_side.send(None, bytes, mark),
                        };
                    }
                    Direction::Back if *to == self.client && self.hearing.may_send(bytes) => {
                        sent = self.client_side.send(*to, bytes, mark);
                    }
                    Direction::Back => self.withheld += 1,
                }
            }
            self.store.remove(out.token);
            self.lateness.record(late);
            if sent != SendOutcome::Sent {
                self.not_sent += 1;
            } else if out.direction == Direction::Forward {
                self.relayed += Bytes::new(length) + ip_overhead(&self.config.to);
            }
        }
        while let Some(token) = self.world.take_dropped() {
            self.store.remove(token);
        }
    }

    fn sample_if_due(&mut self, observe: &mut impl FnMut(&RelaySample)) {
        let now = self.path_time(self.clock.now());
        if self.zero.is_none() || now < self.next_sample {
            return;
        }
        // After a stop of the process, one sample for all that were missed.
        while self.next_sample <= now {
            self.next_sample += self.config.sample;
        }
        self.sample(now, observe);
    }

    fn sample(&mut self, now: Instant, observe: &mut impl FnMut(&RelaySample)) {
        let sample = self.world.sample(now, self.relayed);
        observe(&sample);
        // A day at one sample per second; a relay that runs longer keeps the newest.
        const MAX_SAMPLES: usize = 86_400;
        if self.series.len() == MAX_SAMPLES {
            self.series.drain(..MAX_SAMPLES / 2);
        }
        self.series.push(sample);
    }

    fn wait(&mut self) -> Result<Woken, NetError> {
        let mut until = self.clock.now() + LOOK_UP;
        if let Some(zero) = self.zero {
            let on_clock = |path: Instant| if path == Instant::NEVER { path } else { zero + path.since(Instant::ZERO) };
            until = until.min(on_clock(self.world.next())).min(on_clock(self.next_sample));
            if let Some(duration) = self.config.duration {
                until = until.min(zero + duration);
            }
        }
        self.waiter.wait(until, &[self.client_side.descriptor(), self.target_side.descriptor()])
    }

    fn finish(mut self, observe: &mut impl FnMut(&RelaySample), cpu: f64) -> RelayReport {
        let now = self.path_time(self.clock.now());
        if self.zero.is_some() {
            self.release();
            self.sample(now, observe);
        }
        let lateness = self.lateness.summary();
        let (client_socket, target_socket) = (self.client_side.counters(), self.target_side.counters());
        let mut invalid = Vec::new();
        if lateness.p99 > self.config.lateness_limit {
            let (p99, limit) = (lateness.p99.as_secs_f64() * 1e3, self.config.lateness_limit.as_secs_f64() * 1e3);
            invalid.push(format!("1 % of the packets left more than {p99:.1} ms late; the limit is {limit:.1} ms"));
        }
        let drops = client_socket.kernel_drops + target_socket.kernel_drops;
        if drops > 0 {
            invalid.push(format!("{drops} packets were dropped by this machine's kernel: the relay was too slow"));
        }
        if self.store_full > 0 {
            invalid.push(format!("{} packets did not fit into {} of memory", self.store_full, self.config.memory));
        }
        RelayReport {
            elapsed: now.since(Instant::ZERO),
            series: self.series,
            lateness,
            cpu,
            client_socket,
            target_socket,
            clients: self.clients,
            strangers: self.strangers,
            store_full: self.store_full,
            not_sent: self.not_sent,
            withheld: self.withheld,
            under_way: self.store.len() as u64,
            peak_memory: Bytes::new(self.store.max_held() as u64),
            invalid,
            path: self.world.finish(),
        }
    }
}
