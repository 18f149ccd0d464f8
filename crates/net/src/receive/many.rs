//! Several senders at a time, at one port and on one thread, with one timer for all.
//!
//! Each sender has a place of its own: a session, keys, and what its frames go to. Datagrams find it by the address that they come from; a
//! challenge that names its stream finds it from elsewhere too, as after a change of address, and is judged there. All else comes to the [`Door`]:
//! a sender gets a place once it has shown that it sees what goes to its address, and until then nothing is kept of it. So nothing that is sent in
//! another's name reaches a place but what is sent in the name of its own sender. There are as many places as the receiver was told.
//!
//! A tool of plain RTP cannot show anything, and gets no place. Nor is there a TCP half, or a player to pass media on to.

use super::{LOOK_UP, Last, Port, PortCounts, ReceiveEnd, ReceiveObserver, ReceiveReport, Receiver, Serving};
use crate::alarms::Alarms;
use crate::pacing::thread_cpu;
use crate::random::secret;
use crate::seal::{self, ReceiverSeal};
use crate::{Clock, DatagramIo as _, Mark, NetError, Received, RecvOutcome, UdpSocket, Waiter};
use fairpace_media::FrameSink;
use fairpace_rtp::{AtDoor, Door, DoorStats, Room, packet};
use fairpace_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most places of a receiver.
pub const MOST_PLACES: usize = 1_000;
/// A sender that has a place and sends no media keeps it from others for so long.
const IDLE: Duration = Duration::from_secs(10);
/// Datagrams that are read in one round.
const READS: usize = 512;
/// From one round to the next while datagrams come, where several senders have places.
const ROUND: Duration = Duration::from_micros(100);

/// Who gives each session what its frames go to.
pub trait Hall {
    /// The sink of a session's frames.
    type Sink: FrameSink;
    /// Who looks on.
    type Observer: ReceiveObserver;

    /// A session begins; they are numbered from 1, in the order in which they begin.
    ///
    /// # Errors
    /// What is needed cannot be had: the session ends, alone.
    fn begin(&mut self, session: u64, from: SocketAddr) -> Result<(Self::Sink, Self::Observer), NetError>;

    /// A session is over; no sink: it could not begin.
    fn end(&mut self, session: u64, report: ReceiveReport, sink: Option<Self::Sink>);
}

/// The counts of a receiver of several that belong to no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HallReport {
    /// Of the challenges of those who had no place.
    pub door: DoorStats,
    /// Challenges of those that were not sealed with the key, or had come before; zero without a key.
    pub unsealed: u64,
    /// Other datagrams from addresses that had no place.
    pub strays: u64,
}

impl Receiver {
    /// Serves so many senders at a time until `sessions` have been served in all (`None`: for ever), or the stop flag is set. A sender that
    /// came, and sent nothing, had no session.
    ///
    /// # Errors
    /// [`NetError::Config`]: no place or more than [`MOST_PLACES`], a TCP half, a player. The kernel refuses to wait.
    pub fn serve_many<H: Hall>(
        self,
        places: usize,
        sessions: Option<u64>,
        hall: &mut H,
        stop: &AtomicBool,
    ) -> Result<HallReport, NetError> {
        let refuse =
            |field, found: String, allowed: &str| Err(NetError::Config { field, found, allowed: allowed.to_owned() });
        if !(1..=MOST_PLACES).contains(&places) {
            return refuse("places", places.to_string(), "1 to 1000");
        }
        if self.tcp.is_some() {
            return refuse("tcp", "true".to_owned(), "of a receiver of several senders: false");
        }
        if let Some(player) = self.config.forward {
            return refuse("forward", player.to_string(), "of a receiver of several senders: none");
        }
        let Receiver { config, clock, socket, .. } = self;
        let door = Door::new(secret()?, config.session.from.clone(), config.session.data_dscp);
        let mut all = All {
            seal: config.key.clone().map(ReceiverSeal::new),
            config,
            clock,
            socket,
            door,
            places: (0..places).map(|_| None).collect(),
            alarms: Alarms::default(),
            by_address: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            sessions,
            begun: 0,
            over: 0,
            strays: 0,
            stopping: false,
            hall,
        };
        all.run(stop)?;
        let unsealed = all.seal.as_ref().map_or(0, ReceiverSeal::refused);
        Ok(HallReport { door: all.door.stats(), unsealed, strays: all.strays })
    }
}

/// All places, and the door in front.
struct All<'h, H: Hall> {
    config: super::ReceiveConfig,
    clock: Clock,
    socket: UdpSocket,
    door: Door,
    /// Of those who have no place.
    seal: Option<ReceiverSeal>,
    places: Vec<Option<Place<H>>>,
    alarms: Alarms,
    by_address: BTreeMap<SocketAddr, usize>,
    by_stream: BTreeMap<u32, usize>,
    sessions: Option<u64>,
    begun: u64,
    over: u64,
    strays: u64,
    stopping: bool,
    hall: &'h mut H,
}

/// A sender's place.
struct Place<H: Hall> {
    serving: Serving<Box<Port>>,
    outputs: Outputs<H>,
    /// Where its datagrams come from.
    address: SocketAddr,
    /// The SSRC of its media.
    media: u32,
    /// The address of this machine to which its newest datagram was sent.
    reached_at: Option<(SocketAddr, IpAddr)>,
    before: PortCounts,
    cpu: Duration,
}

/// The sink and the observer of a place's session.
enum Outputs<H: Hall> {
    /// No media has come.
    NotYet,
    /// Its session has this number.
    Open(u64, H::Sink, H::Observer),
    /// They could not be had.
    Failed(u64),
}

impl<H: Hall> All<'_, H> {
    fn run(&mut self, stop: &AtomicBool) -> Result<(), NetError> {
        let mut waiter = Waiter::new(self.clock)?;
        let (mut buffer, mut unsealed, mut due) = (vec![0; 65_536], Vec::new(), Vec::new());
        loop {
            let now = self.clock.now();
            if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.stopping, true) {
                (0..self.places.len()).for_each(|place| self.alarms.set(place, now));
            }
            let reads = self.read(&mut buffer, &mut unsealed)?;
            let now = self.clock.now();
            self.alarms.take_due(now, &mut due);
            for place in due.drain(..) {
                self.turn(place, stop);
            }
            let is_empty = self.places.iter().all(Option::is_none);
            if is_empty && (self.stopping || self.sessions.is_some_and(|most| self.over >= most)) {
                return Ok(());
            }
            if reads > 0 && self.by_address.len() > 1 {
                waiter.sleep(now + ROUND)?;
            } else {
                waiter.wait(self.alarms.next().min(now + LOOK_UP), &[self.socket.descriptor()])?;
            }
        }
    }

    /// Takes in what has come; the number of datagrams.
    fn read(&mut self, buffer: &mut [u8], unsealed: &mut Vec<u8>) -> Result<usize, NetError> {
        for reads in 0..READS {
            match self.socket.recv(buffer) {
                RecvOutcome::Packet(about) => {
                    let bytes = buffer.get(..about.len).unwrap_or_default();
                    match self.place_of(bytes, &about) {
                        Some(place) => self.hand_in(place, bytes, &about, unsealed),
                        None => self.at_door(bytes, &about, unsealed)?,
                    }
                }
                RecvOutcome::Refused | RecvOutcome::Hint => {}
                RecvOutcome::Empty | RecvOutcome::Failed(_) => return Ok(reads),
            }
        }
        Ok(READS)
    }

    /// The place that a datagram is for.
    fn place_of(&self, bytes: &[u8], about: &Received) -> Option<usize> {
        let by_address = self.by_address.get(&about.from).copied();
        by_address.or_else(|| {
            self.by_stream.get(&Door::challenge(bytes).filter(|_| packet::is_rtcp(bytes))?.media.1).copied()
        })
    }

    fn hand_in(&mut self, number: usize, bytes: &[u8], about: &Received, unsealed: &mut Vec<u8>) {
        let Some(place) = self.places.get_mut(number).and_then(Option::as_mut) else { return };
        if place.address == about.from {
            place.reached_at = self.socket.reached_at();
        }
        self.alarms.set(number, about.at);
        let Some(bytes) = place.serving.open(bytes, about, unsealed) else { return };
        if matches!(place.outputs, Outputs::NotYet) && place.address == about.from && !packet::is_rtcp(bytes) {
            self.begun += 1;
            place.outputs = match self.hall.begin(self.begun, about.from) {
                Ok((sink, observer)) => Outputs::Open(self.begun, sink, observer),
                Err(error) => {
                    place.serving.end = Some(ReceiveEnd::Failed(error));
                    Outputs::Failed(self.begun)
                }
            };
        }
        let taken = match &mut place.outputs {
            Outputs::Open(_, sink, observer) => place.serving.datagram(bytes, about, sink, observer),
            Outputs::NotYet | Outputs::Failed(_) => place.serving.datagram(bytes, about, &mut (), &mut ()),
        };
        if let Err(error) = taken {
            place.serving.end.get_or_insert(ReceiveEnd::Failed(error));
        }
    }

    /// A datagram of somebody who has no place.
    fn at_door(&mut self, bytes: &[u8], about: &Received, unsealed: &mut Vec<u8>) -> Result<(), NetError> {
        if !packet::is_rtcp(bytes) || Door::challenge(bytes).is_none() {
            self.strays += 1;
            return Ok(());
        }
        let opened = match &mut self.seal {
            Some(seal) => seal.open(bytes, about.from, seal::draw, unsealed),
            None => Some(bytes),
        };
        let Some(bytes) = opened else { return Ok(()) };
        let Some(challenge) = Door::challenge(bytes) else { return Ok(()) };
        let (now, room) = (self.clock.now(), self.room());
        match self.door.judge(now, &challenge, (about.mark.dscp, about.mark.ecn), about.from, room) {
            AtDoor::Ignored => {}
            AtDoor::Answer(answer) => {
                let sealed = match &mut self.seal {
                    Some(seal) => seal.seal(answer.what, answer.bytes, about.from),
                    None => Some(answer.bytes),
                };
                if let Some(bytes) = sealed {
                    // One that does not leave is asked for again.
                    let _ = self.socket.send(answer.to, bytes, Mark { dscp: answer.dscp, ecn: answer.ecn });
                }
            }
            AtDoor::Shown => {
                if let Some(number) = self.free_place() {
                    self.let_in(number, challenge.media.1, bytes, about)?;
                }
            }
        }
        Ok(())
    }

    fn room(&self) -> Room {
        let taken = self.by_address.len() as u64;
        if self.stopping || self.sessions.is_some_and(|most| self.over >= most) {
            Room::Closed
        } else if self.idle().is_some()
            || (self.places.iter().any(Option::is_none) && self.sessions.is_none_or(|most| self.over + taken < most))
        {
            Room::Free
        } else {
            Room::Full
        }
    }

    /// The place of a sender that has it for a while, and has sent no media.
    fn idle(&self) -> Option<usize> {
        let now = self.clock.now();
        let is_idle =
            |place: &Place<H>| matches!(place.outputs, Outputs::NotYet) && now.since(place.serving.begun) >= IDLE;
        self.places.iter().position(|place| place.as_ref().is_some_and(is_idle))
    }

    fn free_place(&mut self) -> Option<usize> {
        let free = self.places.iter().position(Option::is_none);
        let of_sessions = self.sessions.is_none_or(|most| self.over + (self.by_address.len() as u64) < most);
        free.filter(|_| of_sessions).or_else(|| {
            let idle = self.idle()?;
            self.leave(idle);
            Some(idle)
        })
    }

    /// The sender of that challenge has a place from now on.
    fn let_in(&mut self, number: usize, media: u32, challenge: &[u8], about: &Received) -> Result<(), NetError> {
        let seal = self.seal.as_mut().map(|seal| seal.part(about.from));
        let port = Port::new(self.config.clone(), self.clock, seal, None)?;
        let mut place = Place {
            before: port.counts(&self.socket),
            serving: Serving::new(Box::new(port), Last::Whoever),
            outputs: Outputs::NotYet,
            address: about.from,
            media,
            reached_at: self.socket.reached_at(),
            cpu: thread_cpu(),
        };
        place.serving.port.now = place.serving.port.now.max(about.at);
        // A challenge has no media in it.
        place.serving.datagram(challenge, about, &mut (), &mut ())?;
        self.by_address.insert(about.from, number);
        self.by_stream.insert(media, number);
        self.alarms.set(number, about.at);
        if let Some(free) = self.places.get_mut(number) {
            *free = Some(place);
        }
        Ok(())
    }

    /// One turn of a place: all that is due there.
    fn turn(&mut self, number: usize, stop: &AtomicBool) {
        let Some(place) = self.places.get_mut(number).and_then(Option::as_mut) else { return };
        let socket = &mut self.socket;
        socket.answer_from(place.reached_at);
        let was_gone = place.serving.port.session.peer().is_none() && !matches!(place.outputs, Outputs::NotYet);
        let (mut none, mut nobody) = ((), ());
        let (sink, observer): (&mut dyn FrameSink, &mut dyn ReceiveObserver) = match &mut place.outputs {
            Outputs::Open(_, sink, observer) => (sink, observer),
            Outputs::NotYet | Outputs::Failed(_) => (&mut none, &mut nobody),
        };
        if let Err(error) = place.serving.upkeep(socket, sink, observer, stop) {
            place.serving.end.get_or_insert(ReceiveEnd::Failed(error));
        }
        // All that happened has been told, and no end was among it.
        if was_gone {
            let detail = "nothing but packets that are no media came".to_owned();
            let gone = NetError::PeerVanished { peer: place.address, detail };
            place.serving.end.get_or_insert(ReceiveEnd::Failed(gone));
        }
        let until = place.serving.drain(socket).map(|until| place.serving.until(until, sink));
        match (until, place.serving.port.session.peer()) {
            // Its sender has left without media.
            (Some(_), None) if matches!(place.outputs, Outputs::NotYet) => self.leave(number),
            (Some(until), Some(address)) => {
                if address != place.address {
                    // The sender's address has changed; the address to answer from comes with its next datagram.
                    self.by_address.remove(&place.address);
                    self.by_address.insert(address, number);
                    (place.address, place.reached_at) = (address, None);
                }
                self.alarms.set(number, until);
            }
            // How it left is told at the next turn.
            (Some(_), None) => self.alarms.set(number, Instant::ZERO),
            (None, _) => self.leave(number),
        }
    }

    /// The place is free again; what came is handed in.
    fn leave(&mut self, number: usize) {
        let Some(place) = self.places.get_mut(number).and_then(Option::take) else { return };
        let Place { serving, outputs, address, media, before, cpu, reached_at } = place;
        self.by_address.remove(&address);
        self.by_stream.remove(&media);
        self.alarms.set(number, Instant::NEVER);
        self.socket.answer_from(reached_at);
        let (session, sink) = match outputs {
            Outputs::NotYet => return,
            Outputs::Open(session, mut sink, _) => {
                let report = serving.finish(&mut self.socket, None, &before, &mut sink, cpu);
                (session, (report, Some(sink)))
            }
            Outputs::Failed(session) => {
                (session, (serving.finish(&mut self.socket, None, &before, &mut (), cpu), None))
            }
        };
        let (report, sink) = sink;
        if !matches!(report.end, ReceiveEnd::Failed(NetError::PeerVanished { .. })) {
            self.door.on_ended(self.clock.now(), media);
        }
        self.over += 1;
        self.hall.end(session, report, sink);
    }
}
