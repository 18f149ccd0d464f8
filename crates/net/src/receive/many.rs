//! Several senders at a time, at one port and on one thread, with one timer for all.
//!
//! Each sender has a place of its own: a session, keys, and what its frames go to. Datagrams find it by the address that they come from ([`Roster`]); a
//! challenge finds it by the stream that it names, from elsewhere too, as after a change of address, and is judged there. A challenge of a
//! stream that has no place comes to the [`Door`]: its sender gets one once it has shown that it sees what goes to its address, and until then
//! nothing is kept of it. So nothing that is sent in another's name reaches a place but challenges of its own stream. There are as many places
//! as the receiver was told.
//!
//! A session begins with the first media that is believed; challenges alone begin none. A new stream from the address of an old one takes the old one's
//! place: its sender was started again.
//!
//! A tool of plain RTP cannot show anything, and gets no place. Nor is there a TCP half, or a player to pass media on to.

mod roster;

use super::{LOOK_UP, Last, Port, PortCounts, ReceiveEnd, ReceiveObserver, ReceiveReport, Receiver, Serving};
use crate::alarms::Alarms;
use crate::pacing::thread_cpu;
use crate::random::secret;
use crate::seal::{self, ReceiverSeal};
use crate::socket::ReachedAt;
use crate::{Clock, DatagramIo as _, Mark, NetError, Received, RecvOutcome, UdpSocket, Waiter};
use fairpace_media::FrameSink;
use fairpace_rtp::challenge::Challenge;
use fairpace_rtp::{AtDoor, Door, DoorStats, ReceiverEvent, Room};
use fairpace_units::{Duration, Instant, format_duration};
use roster::Roster;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most places of a receiver.
pub const MOST_PLACES: usize = 1_000;
/// Datagrams that are read in one round.
const READS: usize = 512;
/// From one round to the next while datagrams come, where several senders have places.
const ROUND: Duration = Duration::from_micros(100);
/// Refused datagrams are told of at most so often.
const TOLD_APART: Duration = Duration::from_secs(1);

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

    /// More has come that belongs to no session; once a second at most. May be left out.
    fn on_refused(&mut self, _counts: &HallReport) {}
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
    /// [`NetError::Config`]: no place or more than [`MOST_PLACES`], a TCP half, a player, a patience. The kernel refuses to wait.
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
        if let Some(patience) = self.config.patience {
            let allowed = "of a receiver of several senders: none; the stop flag ends it";
            return refuse("patience", format_duration(patience), allowed);
        }
        let Receiver { config, clock, socket, .. } = self;
        let door = Door::new(secret()?, config.session.from.clone(), config.session.data_dscp, places);
        let mut all = All {
            seal: config.key.clone().map(ReceiverSeal::new),
            config,
            clock,
            socket,
            door,
            places: (0..places).map(|_| None).collect(),
            roster: Roster::new(places),
            alarms: Alarms::default(),
            sessions,
            begun: 0,
            over: 0,
            strays: 0,
            told: (Instant::ZERO, HallReport::default()),
            stopping: false,
            hall,
        };
        all.run(stop)?;
        Ok(all.counts())
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
    roster: Roster,
    alarms: Alarms,
    sessions: Option<u64>,
    begun: u64,
    /// Sessions that are over, and count.
    over: u64,
    strays: u64,
    /// The counts that were told last, and when.
    told: (Instant, HallReport),
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
    /// Of its newest datagram, and of the newest challenge of its stream from elsewhere.
    reached_at: [Option<ReachedAt>; 2],
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
            if self.roster.len() == 0 && (self.stopping || self.is_served()) {
                return Ok(());
            }
            self.tell_refused(now);
            if reads > 0 && self.roster.len() > 1 {
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
                    match (Door::challenge(bytes), self.roster.of_address(about.from)) {
                        (Some(challenge), _) => match self.roster.of_stream(challenge.media.1) {
                            Some(place) => self.hand_in(place, bytes, &about, unsealed),
                            None => self.at_door(bytes, &about, unsealed),
                        },
                        (None, Some(place)) => self.hand_in(place, bytes, &about, unsealed),
                        (None, None) => self.strays += 1,
                    }
                }
                RecvOutcome::Refused | RecvOutcome::Hint => {}
                RecvOutcome::Empty | RecvOutcome::Failed(_) => return Ok(reads),
            }
        }
        Ok(READS)
    }

    fn hand_in(&mut self, number: usize, bytes: &[u8], about: &Received, unsealed: &mut Vec<u8>) {
        let Some(place) = self.places.get_mut(number).and_then(Option::as_mut) else { return };
        let [here, elsewhere] = &mut place.reached_at;
        *(if place.address == about.from { here } else { elsewhere }) = self.socket.reached_at();
        self.alarms.set(number, about.at);
        let Some(bytes) = place.serving.open(bytes, about, unsealed) else { return };
        let media = place.serving.judge(bytes, about);
        if media.is_some() && matches!(place.outputs, Outputs::NotYet) {
            self.begun += 1;
            self.roster.on_media(number);
            place.outputs = match self.hall.begin(self.begun, about.from) {
                Ok((sink, observer)) => Outputs::Open(self.begun, sink, observer),
                Err(error) => {
                    place.serving.end = Some(ReceiveEnd::Failed(error));
                    Outputs::Failed(self.begun)
                }
            };
        }
        let passed = match &mut place.outputs {
            Outputs::Open(_, sink, observer) => place.serving.pass_on(media, about, sink, observer),
            Outputs::NotYet | Outputs::Failed(_) => place.serving.pass_on(media, about, &mut (), &mut ()),
        };
        if let Err(error) = passed {
            place.serving.end.get_or_insert(ReceiveEnd::Failed(error));
        }
        self.follow(number);
    }

    /// The sender of a place may have shown that it is at another address.
    fn follow(&mut self, number: usize) {
        let Some(place) = self.places.get_mut(number).and_then(Option::as_mut) else { return };
        let Some(address) = place.serving.port.session.peer().filter(|peer| *peer != place.address) else { return };
        let [_, elsewhere] = place.reached_at;
        (place.address, place.reached_at) = (address, [elsewhere.filter(|(from, _)| *from == address), None]);
        self.roster.on_moved(number, address);
    }

    /// A challenge of a stream that has no place.
    fn at_door(&mut self, bytes: &[u8], about: &Received, unsealed: &mut Vec<u8>) {
        let opened = match &mut self.seal {
            Some(seal) => seal.open(bytes, about.from, seal::draw, unsealed),
            None => Some(bytes),
        };
        let Some((bytes, challenge)) = opened.and_then(|bytes| Some((bytes, Door::challenge(bytes)?))) else { return };
        let now = self.clock.now();
        let is_closed = self.stopping || self.is_served();
        let may_grow = self.sessions.is_none_or(|most| self.over + (self.roster.len() as u64) < most);
        let vacancy = self.roster.vacancy(now, about.from, may_grow).filter(|_| !is_closed);
        let room = match vacancy {
            Some(_) => Room::Free,
            None if is_closed => Room::Closed,
            None => Room::Full,
        };
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
                if let Some(number) = vacancy {
                    // If it cannot be, it is asked for again: nobody else is harmed.
                    let _ = self.let_in(number, &challenge, bytes, about);
                }
            }
        }
    }

    /// All sessions have been that are to be.
    fn is_served(&self) -> bool {
        self.sessions.is_some_and(|most| self.over >= most)
    }

    /// The sender of that challenge has the place from now on.
    fn let_in(&mut self, number: usize, challenge: &Challenge, bytes: &[u8], about: &Received) -> Result<(), NetError> {
        let reached_at = self.socket.reached_at();
        let port = Port::new(self.config.clone(), self.clock, None, None)?;
        if let Some(old) = self.places.get_mut(number).and_then(Option::as_mut) {
            if let Outputs::Open(_, _, observer) = &mut old.outputs {
                observer.on_event(about.at, &ReceiverEvent::Replaced);
            }
            old.serving.end.get_or_insert(ReceiveEnd::Replaced);
            self.leave(number);
        }
        let mut place = Place {
            before: port.counts(&self.socket),
            serving: Serving::new(Box::new(port), Last::No, true),
            outputs: Outputs::NotYet,
            address: about.from,
            media: challenge.media.1,
            reached_at: [reached_at, None],
            cpu: thread_cpu(),
        };
        let port = &mut place.serving.port;
        port.seal = self.seal.as_mut().map(|seal| seal.part(about.from));
        port.now = port.now.max(about.at);
        // A challenge has no media in it.
        let _ = place.serving.judge(bytes, about);
        place.serving.port.session.on_proven();
        self.roster.enter(number, self.clock.now(), about.from, place.media);
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
        // All that happened has been told.
        if was_gone && place.serving.end.is_none() {
            let detail = "nothing but packets that are no media came".to_owned();
            let gone = NetError::PeerVanished { peer: place.address, detail };
            place.serving.end = Some(ReceiveEnd::Failed(gone));
        }
        let until = place.serving.drain(socket).map(|until| place.serving.until(until, sink));
        match (until, place.serving.port.session.peer()) {
            // Its sender has left without media.
            (Some(_), None) if matches!(place.outputs, Outputs::NotYet) => self.leave(number),
            (Some(until), Some(_)) => {
                self.alarms.set(number, until);
                self.follow(number);
            }
            // How it left is told at the next turn.
            (Some(_), None) => self.alarms.set(number, Instant::ZERO),
            (None, _) => self.leave(number),
        }
    }

    /// The place is free again; what came is handed in.
    fn leave(&mut self, number: usize) {
        let Some(place) = self.places.get_mut(number).and_then(Option::take) else { return };
        let Place { mut serving, outputs, media, before, cpu, reached_at, .. } = place;
        self.roster.leave(number);
        self.alarms.set(number, Instant::NEVER);
        self.socket.answer_from(reached_at);
        if let (Some(seal), Some(own)) = (&mut self.seal, &mut serving.port.seal) {
            seal.take_back(own, seal::draw);
        }
        let (session, report, sink) = match outputs {
            Outputs::NotYet => return,
            Outputs::Open(session, mut sink, _) => {
                let report = serving.finish(&mut self.socket, None, &before, &mut sink, cpu);
                (session, report, Some(sink))
            }
            Outputs::Failed(session) => (session, serving.finish(&mut self.socket, None, &before, &mut (), cpu), None),
        };
        // Who fell silent, or whose address another has, may come again with the same stream.
        if !matches!(report.end, ReceiveEnd::Failed(NetError::PeerVanished { .. }) | ReceiveEnd::Replaced) {
            self.door.on_ended(self.clock.now(), media);
        }
        self.over += u64::from(report.counts);
        self.hall.end(session, report, sink);
    }

    fn counts(&self) -> HallReport {
        let unsealed = self.seal.as_ref().map_or(0, ReceiverSeal::refused);
        HallReport { door: self.door.stats(), unsealed, strays: self.strays }
    }

    fn tell_refused(&mut self, now: Instant) {
        let (at, told) = self.told;
        let counts = self.counts();
        if counts != told && now.since(at) >= TOLD_APART {
            self.told = (now, counts);
            self.hall.on_refused(&counts);
        }
    }
}
