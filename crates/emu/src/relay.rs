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
//!
//! **A cell** ([`RelayConfig::cell`]) is a relay with several places, for one client each, and each with a flow of its own in the path. The
//! base station on the way of these flows plans their windows as it does for simulated ones, and the relay writes them into the feedback that
//! passes (`guest.rs`). The target sees each place at an address of its own.

mod config;
mod guest;
mod hearing;
mod news;
mod place;
mod sample;
#[cfg(test)]
mod targets;
mod world;

pub use config::{Begin, RelayConfig};
pub use guest::{Gone, LEFT_AFTER, Standing, Tally, Visit};
pub use news::News;
pub use place::TAKEOVER_AFTER;
pub use sample::{CellSample, FlowSample, LinkSample, RelaySample};

use crate::store::Store;
use fairpace_net::pacing::thread_cpu;
use fairpace_net::{
    Clock, DatagramIo, Granted, LatenessHistogram, LatenessSummary, Mark, NetError, RecvOutcome, SendOutcome,
    SocketCounters, UdpSocket, Waiter, Watch, Woken, elsewhere, ip_overhead,
};
use fairpace_rtp::base_station::lower_window;
use fairpace_rtp::packet::is_rtcp;
use fairpace_sim::{Carries, Delivered, Direction, Entering, HopConfig, Observer, Promise, SimReport};
use fairpace_units::{Bytes, Duration, Instant};
use guest::{Change, Guest};
use hearing::Hearing;
use news::Waiting;
use place::{Admission, Place, Places};
use sample::Newest;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Marks, World};

/// A cell has room for so many clients: each has a socket, and each change a plan for all.
pub const MOST_PLACES: usize = 64;

/// Stays of clients that a report has at most; where one more comes, the older half goes.
const MOST_VISITS: usize = 10_000;
/// Samples that a report has at most, as the stays: those of half a day to a day at one per second.
const MOST_SAMPLES: usize = 86_400;

/// How a relay ended and what it saw.
#[derive(Debug)]
pub struct RelayReport {
    /// How long the path's time ran.
    pub elapsed: Duration,
    /// One sample per interval and one at the end, without a cell's clients and news, which the observer of the run has seen.
    pub series: Vec<RelaySample>,
    /// How late packets were released.
    pub lateness: LatenessSummary,
    /// CPU time of the relay / time it ran.
    pub cpu: f64,
    /// The socket towards the clients.
    pub client_socket: SocketCounters,
    /// The sockets towards the target, one for each place.
    pub target_sockets: Vec<SocketCounters>,
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
    /// Of a cell: its clients, in the order in which they left; the last 10,000.
    pub visits: Vec<Visit>,
    /// Plans after which a flow had no promise, or one that is not what was asked for: the cell has less than its clients need.
    pub short_plans: u64,
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
    places: Vec<Place>,
    targets: Watch,
    world: World,
}

impl Relay {
    /// Opens the sockets and builds the path.
    ///
    /// # Errors
    /// [`NetError`]: port in use, no route to the target, a link that cannot be, a cell without places or with too many.
    pub fn open(config: RelayConfig, clock: Clock) -> Result<Relay, NetError> {
        if config.sample.is_zero() {
            return Err(NetError::Config {
                field: "sample",
                found: "0 s".to_owned(),
                allowed: "longer than zero".to_owned(),
            });
        }
        let (world, places) = World::new(&config.path())?;
        if !(1..=MOST_PLACES).contains(&places.len()) {
            return Err(NetError::Config {
                field: "places for clients",
                found: places.len().to_string(),
                allowed: format!("1 to {MOST_PLACES}"),
            });
        }
        let client_side = UdpSocket::listen(config.listen, config.family, config.buffers, clock)?;
        elsewhere("to", config.to, client_side.local_address()?)?;
        let place = |(flow, name, data)| {
            Ok::<_, NetError>(Place {
                flow,
                name,
                data,
                target_side: UdpSocket::connect(config.to, config.buffers, clock)?,
                client: None,
                seen: Instant::ZERO,
                hearing: Hearing::default(),
                shown: None,
                guest: None,
                turn: 0,
            })
        };
        let places = places.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let targets = Watch::new()?;
        places.iter().zip(0..).try_for_each(|(place, i)| targets.add(place.target_side.descriptor(), i))?;
        let mut client_side = client_side;
        client_side.look_for_quick_start()?;
        Ok(Relay { config, clock, client_side, places, targets, world })
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
        self.config.path().hops.iter().any(|hop| match hop {
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
        self.places.iter().try_for_each(|place| place.target_side.may_quick_start())
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

/// A packet under way.
struct UnderWay {
    mark: Mark,
    /// Where it goes if not to the target.
    to: Option<SocketAddr>,
    place: usize,
    /// The place's client when it came.
    turn: u64,
    /// When it came, in the path's time.
    came: Instant,
    size: Bytes,
    is_data: bool,
}

/// A packet that was read and has not entered the path.
struct Arrival {
    at: Instant,
    direction: Direction,
    place: usize,
    marks: Marks,
    token: u64,
}

struct Running {
    config: RelayConfig,
    clock: Clock,
    waiter: Waiter,
    client_side: UdpSocket,
    places: Places,
    /// All of the places' sockets.
    targets: Watch,
    world: World,
    store: Store<UnderWay>,
    /// The path's zero on the run's clock.
    zero: Option<Instant>,
    /// Packets read in this round: they enter the path in the order of their arrival.
    arrivals: Vec<Arrival>,
    buffer: Vec<u8>,
    /// For a packet that is changed before it leaves.
    changed: Vec<u8>,
    lateness: LatenessHistogram,
    next_sample: Instant,
    series: Newest<RelaySample>,
    relayed: Bytes,
    clients: u64,
    strangers: u64,
    store_full: u64,
    not_sent: u64,
    withheld: u64,
    news: Waiting,
    /// Somebody without a place has been told of since the last sample; and who that was.
    refused: (bool, Option<SocketAddr>),
    visits: Newest<Visit>,
    short_plans: u64,
}

impl Running {
    fn new(relay: Relay) -> Result<Running, NetError> {
        let Relay { config, clock, client_side, places, targets, world } = relay;
        let memory = usize::try_from(config.memory.get()).unwrap_or(usize::MAX);
        Ok(Running {
            waiter: Waiter::new(clock)?,
            clock,
            client_side,
            places: Places(places),
            targets,
            world,
            store: Store::new(memory),
            zero: (config.begin == Begin::AtOnce).then(|| clock.now()),
            arrivals: Vec::new(),
            buffer: vec![0; 65_536],
            changed: Vec::new(),
            lateness: LatenessHistogram::new(),
            next_sample: Instant::ZERO + config.sample,
            series: Newest::new(MOST_SAMPLES),
            relayed: Bytes::ZERO,
            clients: 0,
            strangers: 0,
            store_full: 0,
            not_sent: 0,
            withheld: 0,
            news: Waiting::default(),
            refused: (false, None),
            visits: Newest::new(MOST_VISITS),
            short_plans: 0,
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
        self.read(None);
        for place in 0..self.places.0.len() {
            self.read(Some(place));
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|a| a.at);
        for arrival in arrivals.drain(..) {
            self.enter(&arrival);
        }
        self.arrivals = arrivals;
    }

    /// Reads what has come from the clients, or at a place from the target.
    fn read(&mut self, from: Option<usize>) {
        for _ in 0..READ_BUDGET {
            let socket = match from {
                None => &mut self.client_side,
                Some(place) => &mut self.places.0[place].target_side,
            };
            let packet = match socket.recv(&mut self.buffer) {
                RecvOutcome::Packet(packet) => packet,
                // The target is not up yet, or went away: its absence is the clients' to notice.
                RecvOutcome::Refused | RecvOutcome::Hint => continue,
                RecvOutcome::Empty | RecvOutcome::Failed(_) => break,
            };
            let (direction, i) = match from {
                Some(place) => (Direction::Back, place),
                None => match self.admit(packet.from, packet.at) {
                    Some(place) => (Direction::Forward, place),
                    None => {
                        self.refuse(packet.from);
                        continue;
                    }
                },
            };
            let place = &mut self.places.0[i];
            let to = match direction {
                Direction::Forward => None,
                Direction::Back if place.client.is_none() => continue,
                Direction::Back => place.client,
            };
            let bytes = self.buffer.get_mut(..packet.len).unwrap_or_default();
            match direction {
                Direction::Forward => place.hearing.on_received(bytes),
                Direction::Back => place.hearing.on_answer(bytes),
            }
            let came = *self.zero.get_or_insert(packet.at);
            let came = Instant::ZERO + packet.at.since(came);
            let size = Bytes::new(packet.len as u64) + ip_overhead(&packet.from);
            // A plain relay knows nothing of what it relays.
            let is_data = direction == Direction::Forward && !(self.config.cell.is_some() && is_rtcp(bytes));
            let under_way = UnderWay { mark: packet.mark, to, place: i, turn: place.turn, came, size, is_data };
            let Some(token) = self.store.put(&[bytes], under_way) else {
                self.store_full += 1;
                continue;
            };
            let marks = (packet.mark, packet.quick_start);
            self.arrivals.push(Arrival { at: packet.at, direction, place: i, marks, token });
        }
    }

    /// A packet enters the path; a base station hears what it says first.
    fn enter(&mut self, arrival: &Arrival) {
        let Arrival { direction, place, token, marks, .. } = *arrival;
        let Some((bytes, under_way)) = self.store.get(token) else { return };
        let (at, size, is_data) = (under_way.came, under_way.size, under_way.is_data);
        let Place { flow, guest, turn, .. } = &mut self.places.0[place];
        let (flow, mut change) = (*flow, Change::None);
        if let Some(guest) = guest.as_mut().filter(|_| under_way.turn == *turn) {
            let before = guest.visit.standing;
            change = match direction {
                Direction::Forward => guest.on_sent(at, bytes),
                Direction::Back => guest.on_answered(at, bytes),
            };
            let now = guest.visit.standing;
            match now {
                Standing::Sealed if now != before => self.news.tell(News::Sealed(place)),
                Standing::NoWindow if now != before => self.news.tell(News::NoWindow(place)),
                _ => {}
            }
        }
        self.plan(place, at, change);
        let carries = match (direction, is_data) {
            (Direction::Forward, false) => Carries::Control,
            _ => Carries::Data,
        };
        self.world.inject(at, Entering { carries, ..Entering::new(flow, direction, size, token) }, marks);
    }

    /// Lets a place's flow join or leave, and takes over the windows that follow.
    fn plan(&mut self, place: usize, at: Instant, change: Change) {
        let flow = self.places.0[place].flow;
        let is_news = match change {
            Change::None => false,
            Change::Joins => self.world.join(at, flow),
            Change::Leaves => self.world.leave(at, flow),
        };
        if !is_news {
            return;
        }
        let windows = self.world.windows();
        let keeps = |w: &fairpace_sim::Allotted| w.promise.as_ref().is_ok_and(Promise::is_kept);
        self.short_plans += u64::from(!windows.iter().all(keeps));
        for allotted in windows {
            let Some(i) = self.places.0.iter().position(|p| p.flow == allotted.flow) else { continue };
            if let Some(guest) = &mut self.places.0[i].guest {
                guest.on_promise(at, allotted.promise.as_ref().ok().copied());
            }
            if let Some(rwnd) = allotted.rwnd {
                self.news.tell(News::Window(i, rwnd, allotted.promise));
            }
        }
    }

    /// A packet from somebody who has no place.
    fn refuse(&mut self, from: SocketAddr) {
        self.strangers += 1;
        let (is_told, last) = self.refused;
        if !is_told && last != Some(from) {
            self.refused = (true, Some(from));
            self.news.tell(News::Refused(from));
        }
    }

    /// The place of a packet from this address; `None`: it is not relayed.
    fn admit(&mut self, from: SocketAddr, at: Instant) -> Option<usize> {
        let i = match self.places.admit(&self.config, from, at) {
            Admission::Refused => return None,
            Admission::Known(i) if self.config.cell.is_none() || self.places.0[i].guest.is_some() => return Some(i),
            Admission::Known(i) => i,
            Admission::New(i) => {
                self.clients += 1;
                i
            }
        };
        if let Some(cell) = &self.config.cell {
            let warmup = Instant::ZERO + cell.warmup;
            let at = self.path_time(at);
            self.part(i, at, Gone::Replaced);
            let Place { name, data, .. } = &self.places.0[i];
            let guest = Guest::new(i, name, from, at, *data, warmup);
            self.places.0[i].guest = Some(guest);
            self.news.tell(News::Came(i, from));
        }
        Some(i)
    }

    /// The stay of a place's client is over.
    fn part(&mut self, i: usize, at: Instant, why: Gone) {
        let Some(mut guest) = self.places.0[i].guest.take() else { return };
        let change = guest.leaves(at);
        let said = if guest.has_left() { Gone::Bye } else { why };
        let visit = guest.end(at, said);
        self.news.tell(News::Left(i, visit.client, said));
        self.visits.push(visit);
        // At the end nobody is planned anew.
        if why != Gone::End {
            self.plan(i, at, change);
        }
    }

    /// Clients that have gone, and those that ignore their windows.
    fn look_around(&mut self) {
        let now = self.clock.now();
        let at = self.path_time(now);
        for i in 0..self.places.0.len() {
            let place = &mut self.places.0[i];
            let seen = place.seen;
            let Some(guest) = &mut place.guest else { continue };
            let (ignores, is_gone) = (guest.judge(), guest.is_gone(at));
            if ignores {
                self.news.tell(News::Ignores(i));
            }
            if is_gone || now.since(seen) >= LEFT_AFTER {
                self.places.0[i].client = None;
                self.part(i, at, Gone::Silent);
            }
        }
    }

    /// Everything that has come out of the path is sent on.
    fn release(&mut self) {
        if self.zero.is_none() {
            return;
        }
        let now = self.path_time(self.clock.now());
        self.world.advance(now);
        while let Some(out) = self.world.take_delivered() {
            let now = self.path_time(self.clock.now());
            self.lateness.record(now.since(out.at));
            let (sent, length) = self.send(&out, now);
            self.store.remove(out.token);
            if sent != SendOutcome::Sent {
                self.not_sent += 1;
            } else if out.direction == Direction::Forward {
                self.relayed += Bytes::new(length) + ip_overhead(&self.config.to);
            }
        }
        while let Some(dropped) = self.world.take_dropped() {
            if let Some((_, under_way)) = self.store.get(dropped.token).filter(|(_, u)| u.is_data)
                && let Place { guest: Some(guest), turn, .. } = &mut self.places.0[under_way.place]
                && *turn == under_way.turn
            {
                guest.on_dropped(dropped.at);
            }
            self.store.remove(dropped.token);
        }
    }

    /// Sends on a packet that came out of the path, and says how long it is; a client's feedback with its window.
    fn send(&mut self, out: &Delivered, now: Instant) -> (SendOutcome, u64) {
        let Some((bytes, under_way)) = self.store.get(out.token) else { return (SendOutcome::Sent, 0) };
        let place = &mut self.places.0[under_way.place];
        // A path may mark congestion; it never takes a mark away.
        let mark = Mark { ecn: out.ecn, ..under_way.mark };
        let length = bytes.len() as u64;
        let guest = place.guest.as_mut().filter(|_| place.turn == under_way.turn);
        let sent = match out.direction {
            Direction::Forward => {
                if let (Some(guest), true) = (guest, under_way.is_data) {
                    let came = under_way.came;
                    guest.on_delivered(out.at, under_way.size, out.at.since(came), now.since(came));
                }
                // The option as the path's routers left it, with its TTL.
                match &out.quick_start {
                    Some(option) => place.target_side.send_option(bytes, mark, option),
                    None => place.target_side.send(None, bytes, mark),
                }
            }
            Direction::Back if under_way.to == place.client && under_way.turn == place.turn => {
                let rwnd = out.rwnd.filter(|_| guest.as_ref().is_some_and(|guest| guest.is_planned()));
                self.changed.clear();
                self.changed.extend_from_slice(bytes);
                let written = rwnd.map_or(0, |rwnd| lower_window(&mut self.changed, rwnd));
                if place.hearing.may_send(&self.changed) {
                    if let Some(guest) = guest {
                        guest.on_told(now, &self.changed, rwnd, written);
                    }
                    self.client_side.send(under_way.to, &self.changed, mark)
                } else {
                    self.withheld += 1;
                    SendOutcome::Sent
                }
            }
            Direction::Back => {
                self.withheld += 1;
                SendOutcome::Sent
            }
        };
        (sent, length)
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
        self.look_around();
        let mut sample = self.world.sample(now, self.relayed);
        let guests = self.places.0.iter_mut().filter_map(|place| place.guest.as_mut());
        sample.cell.clients = guests.map(|guest| guest.so_far(now)).collect();
        sample.cell.news = self.news.take();
        sample.cell.refused = self.strangers;
        self.refused.0 = false;
        observe(&sample);
        self.series.push(RelaySample { cell: CellSample::default(), ..sample });
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
        self.waiter.wait(until, &[self.client_side.descriptor(), self.targets.as_fd()])
    }

    fn finish(mut self, observe: &mut impl FnMut(&RelaySample), cpu: f64) -> RelayReport {
        let now = self.path_time(self.clock.now());
        if self.zero.is_some() {
            self.release();
            self.sample(now, observe);
        }
        for i in 0..self.places.0.len() {
            self.part(i, now, Gone::End);
        }
        let lateness = self.lateness.summary();
        let client_socket = self.client_side.counters();
        let target_sockets: Vec<SocketCounters> = self.places.0.iter().map(|p| p.target_side.counters()).collect();
        let mut invalid = Vec::new();
        if lateness.p99 > self.config.lateness_limit {
            let (p99, limit) = (lateness.p99.as_secs_f64() * 1e3, self.config.lateness_limit.as_secs_f64() * 1e3);
            invalid.push(format!("1 % of the packets left more than {p99:.1} ms late; the limit is {limit:.1} ms"));
        }
        let drops = client_socket.kernel_drops + target_sockets.iter().map(|s| s.kernel_drops).sum::<u64>();
        if drops > 0 {
            invalid.push(format!("{drops} packets were dropped by this machine's kernel: the relay was too slow"));
        }
        if self.store_full > 0 {
            invalid.push(format!("{} packets did not fit into {} of memory", self.store_full, self.config.memory));
        }
        RelayReport {
            elapsed: now.since(Instant::ZERO),
            series: self.series.into_vec(),
            lateness,
            cpu,
            client_socket,
            target_sockets,
            clients: self.clients,
            strangers: self.strangers,
            store_full: self.store_full,
            not_sent: self.not_sent,
            withheld: self.withheld,
            under_way: self.store.len() as u64,
            peak_memory: Bytes::new(self.store.max_held() as u64),
            visits: self.visits.into_vec(),
            short_plans: self.short_plans,
            invalid,
            path: self.world.finish(),
        }
    }
}
