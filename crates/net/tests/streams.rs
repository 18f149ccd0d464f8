//! Several streams from one thread, to a receiver of several: each is served for itself and ends alone.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

use fairpace_media::{ConstantSource, EncodedFrame, Format, FrameSource, MediaError, Phased};
use fairpace_net::receive::{Hall, HallReport, ReceiveConfig, ReceiveEnd, ReceiveObserver, ReceiveReport, Receiver};
use fairpace_net::send::{SendConfig, SendEnd, SendReport, Stream, run_many};
use fairpace_net::{Clock, Key, NetError};
use fairpace_rtp::challenge::{Challenge, Echo, Message};
use fairpace_rtp::feedback::Request;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_rtp::{Codec, ReceiverEvent};
use fairpace_units::{Class, Duration, Instant, Rate};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Keeps every record, and tells of each source.
struct Book {
    over: Vec<(u64, ReceiveReport)>,
    sources: mpsc::Sender<u32>,
    refuse: Option<u64>,
}

struct Watch(mpsc::Sender<u32>);

impl ReceiveObserver for Watch {
    fn on_event(&mut self, _: Instant, event: &ReceiverEvent) {
        if let ReceiverEvent::NewSource { ssrc, .. } = event {
            let _ = self.0.send(*ssrc);
        }
    }
}

impl Hall for Book {
    type Sink = ();
    type Observer = Watch;

    fn begin(&mut self, session: u64, _: SocketAddr) -> Result<((), Watch), NetError> {
        if self.refuse == Some(session) {
            return Err(NetError::Io {
                what: "open a session's files",
                source: std::io::ErrorKind::StorageFull.into(),
            });
        }
        Ok(((), Watch(self.sources.clone())))
    }

    fn end(&mut self, session: u64, report: ReceiveReport, _: Option<()>) {
        self.over.push((session, report));
    }
}

/// A receiver of so many on a thread; its port, the sources that come, and what it came to once told to stop or after so many sessions.
struct Receiving {
    port: u16,
    sources: mpsc::Receiver<u32>,
    thread: thread::JoinHandle<(Vec<(u64, ReceiveReport)>, HallReport)>,
    stop: std::sync::Arc<AtomicBool>,
}

impl Receiving {
    fn start(places: usize, sessions: Option<u64>, key: Option<Key>, refuse: Option<u64>) -> Receiving {
        let receiver = Receiver::open(ReceiveConfig { key, ..ReceiveConfig::new(0) }, Clock::start()).unwrap();
        let port = receiver.address().unwrap().port();
        let (tell, sources) = mpsc::channel();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = thread::spawn(move || {
            let mut book = Book { over: Vec::new(), sources: tell, refuse };
            let counts = receiver.serve_many(places, sessions, &mut book, &flag).unwrap();
            (book.over, counts)
        });
        Receiving { port, sources, thread, stop }
    }

    fn end(self) -> (Vec<(u64, ReceiveReport)>, HallReport) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn to(port: u16) -> SendConfig {
    let mut config = SendConfig::new(SocketAddr::from(([127, 0, 0, 1], port)));
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "400 kbit/s".to_owned());
    config.duration = Some(Duration::from_millis(1_200));
    config
}

/// So many frames, and no more.
struct Few(ConstantSource, u32);

impl FrameSource for Few {
    fn format(&self) -> Format {
        self.0.format()
    }
    fn set_rate(&mut self, rate: Rate) {
        self.0.set_rate(rate);
    }
    fn request_key_frame(&mut self) {
        self.0.request_key_frame();
    }
    fn next_frame_at(&self) -> Instant {
        if self.1 == 0 { Instant::NEVER } else { self.0.next_frame_at() }
    }
    fn next_frame(&mut self, now: Instant) -> Result<Option<EncodedFrame>, MediaError> {
        let frame = self.0.next_frame(now)?;
        self.1 -= u32::from(frame.is_some());
        Ok(frame)
    }
}

/// Sends them all from this thread; how each ended.
fn send(configs: Vec<SendConfig>, frames: &[u32]) -> Vec<Result<SendReport, NetError>> {
    let source = |n: usize| {
        let constant = ConstantSource::new(Rate::kbps(300.0), Duration::from_millis(40));
        Phased::new(Few(constant, frames.get(n).copied().unwrap_or(u32::MAX)), Duration::from_millis(n as u64))
    };
    let mut sources: Vec<_> = (0..configs.len()).map(source).collect();
    let mut observers = vec![(); configs.len()];
    let mut ended: Vec<Option<_>> = configs.iter().map(|_| None).collect();
    let mut list: Vec<Stream<'_>> = Vec::new();
    for ((config, source), observer) in configs.into_iter().zip(&mut sources).zip(&mut observers) {
        list.push(Stream { config, source, observer });
    }
    let clock = Clock::start();
    run_many(&mut list, clock, &AtomicBool::new(false), |n, end| ended[n] = Some(end)).unwrap();
    ended.into_iter().map(Option::unwrap).collect()
}

fn is_finished(end: &Result<SendReport, NetError>) -> bool {
    matches!(end, Ok(SendReport { end: SendEnd::Finished, .. }))
}

#[test]
fn all_streams_arrive_whole_each_in_a_session_of_its_own() {
    let receiving = Receiving::start(12, Some(12), None, None);
    // The third has no more than five frames.
    let ended = send((0..12).map(|_| to(receiving.port)).collect(), &[u32::MAX, u32::MAX, 5]);
    // After twelve sessions the receiver ends by itself.
    let (over, counts) = receiving.thread.join().unwrap();
    assert!(ended.iter().all(is_finished), "{ended:?}");
    assert_eq!(over.len(), 12);
    let mut numbers: Vec<_> = over.iter().map(|(n, _)| *n).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    for (_, report) in &over {
        assert!(report.counts && matches!(report.end, ReceiveEnd::Bye(_)), "{report:?}");
        assert_eq!((report.stats.wrong_address, report.stats.media.lost), (0, 0));
    }
    let sent: Vec<_> = ended.iter().map(|end| end.as_ref().unwrap().flow.data.sent).collect();
    let mut received: Vec<_> = over.iter().map(|(_, report)| report.stats.media.received).collect();
    received.sort_unstable();
    let mut in_order = sent.clone();
    in_order.sort_unstable();
    assert_eq!(received, in_order);
    assert!(sent[2] <= 15 && sent[0] > 30, "{sent:?}");
    assert!(counts.door.asked >= 12, "{counts:?}");
}

#[test]
fn streams_that_fail_end_alone_each_with_its_reason() {
    let receiving = Receiving::start(2, None, None, None);
    let mut long = to(receiving.port);
    // Who is told that the receiver is busy asks for 15 s.
    long.duration = Some(Duration::from_secs(17));
    let nobody = to(UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let mut wrong = to(receiving.port);
    wrong.quantum = Duration::from_secs(1);
    // Two places for three senders.
    let ended = send(vec![long.clone(), nobody, wrong, long.clone(), long], &[]);
    let (over, counts) = receiving.end();
    let nobody = ended[1].as_ref().unwrap();
    assert!(matches!(nobody.end, SendEnd::Failed(NetError::PeerUnreachable { .. })), "{nobody:?}");
    assert!(matches!(ended[2], Err(NetError::Config { field: "quantum", .. })), "{:?}", ended[2]);
    let busy = |end: &&Result<SendReport, NetError>| {
        matches!(end, Ok(SendReport { end: SendEnd::Failed(NetError::PeerBusy { .. }), .. }))
    };
    assert_eq!((ended.iter().filter(busy).count(), ended.iter().filter(|end| is_finished(end)).count()), (1, 2));
    assert!(over.len() == 2 && counts.door.full > 0, "{counts:?}");
}

#[test]
fn with_a_key_each_sender_has_keys_of_its_own_and_one_of_another_key_ends_alone() {
    let key = || Some(Key::new([7; 32]));
    let receiving = Receiving::start(4, None, key(), None);
    let with = |key| SendConfig { key, ..to(receiving.port) };
    let other = with(Some(Key::new([8; 32])));
    let ended = send(vec![with(key()), other, with(key()), with(key())], &[]);
    let (over, counts) = receiving.end();
    let finished: Vec<bool> = ended.iter().map(is_finished).collect();
    assert_eq!(finished, [true, false, true, true], "{ended:?}");
    let other = ended[1].as_ref().unwrap();
    assert!(matches!(other.end, SendEnd::Failed(NetError::PeerUnreachable { .. })), "{other:?}");
    assert!(over.len() == 3 && over.iter().all(|(_, report)| report.unsealed == 0), "{over:?}");
    assert!(counts.unsealed > 0);
}

#[test]
fn a_session_whose_files_cannot_be_opened_ends_alone() {
    let receiving = Receiving::start(2, Some(2), None, Some(1));
    let ended = send(vec![to(receiving.port), to(receiving.port)], &[]);
    let (mut over, _) = receiving.thread.join().unwrap();
    over.sort_by_key(|(n, _)| *n);
    assert!(matches!(over[0].1.end, ReceiveEnd::Failed(NetError::Io { .. })), "{over:?}");
    assert!(matches!(over[1].1.end, ReceiveEnd::Bye(_)), "{over:?}");
    let goodbyes = ended.iter().filter(|e| matches!(e, Ok(SendReport { end: SendEnd::PeerBye, .. }))).count();
    assert_eq!((goodbyes, ended.iter().filter(|e| is_finished(e)).count()), (1, 1), "{ended:?}");
}

/// A challenge as anybody can send it in any name.
fn forged(token: u64, ssrc: u32, proof: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Challenge {
        token,
        class: Class::Normal,
        codec: Codec::Generic,
        media: (96, ssrc),
        dummy: (97, ssrc ^ 1),
        retransmission: None,
        fec: None,
        form: Request::Ccfb,
        proof,
    }
    .emit(&mut bytes);
    bytes
}

/// A sender by hand, of the stream that the test names.
struct ByHand {
    socket: UdpSocket,
    token: u64,
    sequence: u16,
}

impl ByHand {
    /// From that address of this machine to a receiver at that one.
    fn new(from: &str, (to, port): (&str, u16)) -> ByHand {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.connect((to, port)).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
        ByHand { socket, token: 0, sequence: 1 }
    }

    /// Asks for a place; the echo, if one comes.
    fn ask(&mut self, stream: u32, proof: Option<u32>) -> Option<Echo> {
        self.token += 1;
        self.socket.send(&forged(self.token, stream, proof)).unwrap();
        let mut buffer = [0; 1_500];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let Some(Rtcp::App(app)) = Compound::parse(&buffer[..len]).ok().and_then(|mut all| all.next()) else {
                continue;
            };
            match Message::parse(&app) {
                Ok(Some(Message::Echo(echo))) if echo.token == self.token => return Some(echo),
                _ => {}
            }
        }
        None
    }

    /// Asks, and shows the number that comes back.
    fn enter(&mut self, stream: u32) -> Echo {
        let first = self.ask(stream, None).expect("no echo");
        assert!(first.taken && !first.busy, "{first:?}");
        let second = self.ask(stream, Some(first.next_report)).expect("no second echo");
        assert!(!second.taken && !second.busy, "{second:?}");
        second
    }

    fn media(&mut self, stream: u32, packets: usize) {
        for _ in 0..packets {
            let [high, low] = self.sequence.to_be_bytes();
            self.sequence += 1;
            let bytes = [&[0x80, 0xe0, high, low, 0, 0, 0, 0][..], &stream.to_be_bytes(), &[1, 2, 3, 4]].concat();
            self.socket.send(&bytes).unwrap();
        }
    }

    fn goodbye(&self, stream: u32) {
        let name = stream.to_be_bytes();
        self.socket.send(&[&[0x80, 201, 0, 1][..], &name, &[0x81, 203, 0, 1], &name].concat()).unwrap();
    }
}

/// A goodbye is believed after half a second.
const GRACE: u64 = 800;

fn wait(ms: u64) {
    thread::sleep(std::time::Duration::from_millis(ms));
}

#[test]
fn who_cannot_hear_takes_no_place_however_many_challenges_come() {
    // One place stays free.
    let receiving = Receiving::start(3, None, None, None);
    // Each socket stands for a forged address, whose owner hears the answers and says nothing.
    let deaf: Vec<_> = (0..40).map(|n| UdpSocket::bind((format!("127.0.1.{}", 1 + n % 8), 0)).unwrap()).collect();
    let begun = std::time::Instant::now();
    let stop = AtomicBool::new(false);
    let (ended, asked) = thread::scope(|scope| {
        let forging = scope.spawn(|| {
            let mut asked = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for (n, socket) in deaf.iter().enumerate() {
                    let proof = asked.is_multiple_of(2).then_some(asked as u32);
                    socket.send_to(&forged(asked, 1_000 + n as u32, proof), ("127.0.0.1", receiving.port)).unwrap();
                    asked += 1;
                }
                thread::yield_now();
            }
            asked
        });
        let ended = send(vec![to(receiving.port), to(receiving.port)], &[]);
        stop.store(true, Ordering::Relaxed);
        (ended, forging.join().unwrap())
    });
    let (over, counts) = receiving.end();
    assert!(ended.iter().all(is_finished), "{ended:?}");
    assert!(asked > 1_000 && over.len() == 2, "{asked}: {over:?}");
    assert!(counts.door.held_back > 0, "{counts:?}");
    // A host is sent ten answers at once and a hundred a second, none longer than a challenge.
    let most = 10 + (begun.elapsed().as_secs_f64() * 100.0) as u64 + 1;
    let mut answers = [0; 8];
    for (n, socket) in deaf.iter().enumerate() {
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0; 100]).is_ok_and(|len| len <= 36) {
            answers[n % 8] += 1;
        }
    }
    assert!(answers.iter().all(|n| *n <= most), "{answers:?} of {most}");
}

#[test]
fn who_hears_and_sends_no_media_keeps_no_other_host_out_and_begins_no_session() {
    let receiving = Receiving::start(4, None, None, None);
    let mut hogs: Vec<_> = (0..4).map(|_| ByHand::new("127.0.0.9", ("127.0.0.1", receiving.port))).collect();
    for (n, hog) in hogs.iter_mut().enumerate() {
        hog.enter(n as u32);
        // Neither is media: a byte, and a packet of a stream that it has not named.
        hog.socket.send(&[0]).unwrap();
        hog.media(99, 3);
    }
    wait(50);
    let mut honest = ByHand::new("127.0.0.1", ("127.0.0.1", receiving.port));
    honest.enter(50);
    honest.media(50, 5);
    honest.goodbye(50);
    // The place that it leaves is taken again, and then there is none for who has more than a share.
    wait(GRACE);
    hogs[0].enter(60);
    let full = ByHand::new("127.0.0.9", ("127.0.0.1", receiving.port)).ask(61, None).expect("no echo");
    assert!(full.busy && !full.ends, "{full:?}");
    let (over, _) = receiving.end();
    let [(1, report)] = &over[..] else { panic!("{over:?}") };
    assert_eq!(report.stats.media.received, 5);
}

#[test]
fn a_sender_started_again_at_its_address_gets_a_session_of_its_own_and_the_receiver_goes_on() {
    let receiving = Receiving::start(2, None, None, None);
    let mut sender = ByHand::new("127.0.0.1", ("127.0.0.1", receiving.port));
    sender.enter(7);
    sender.media(7, 5);
    wait(50);
    sender.enter(8);
    sender.media(8, 6);
    sender.goodbye(8);
    wait(GRACE);
    // The stream of before may come again.
    sender.enter(7);
    sender.media(7, 7);
    wait(50);
    let (over, _) = receiving.end();
    let [(1, first), (2, second), (3, third)] = &over[..] else { panic!("{over:?}") };
    assert!(matches!(first.end, ReceiveEnd::Replaced) && first.goes_on, "{first:?}");
    assert!(matches!(second.end, ReceiveEnd::Bye(_)) && second.goes_on, "{second:?}");
    assert!(matches!(third.end, ReceiveEnd::Interrupted) && !third.goes_on, "{third:?}");
    assert_eq!([first, second, third].map(|r| r.stats.media.received), [5, 6, 7]);
}

#[test]
fn senders_that_get_each_others_addresses_go_on_each_in_its_own_session() {
    let receiving = Receiving::start(3, None, None, None);
    let (mut a, mut b) = (
        ByHand::new("127.0.0.1", ("127.0.0.1", receiving.port)),
        ByHand::new("127.0.0.1", ("127.0.0.1", receiving.port)),
    );
    a.enter(1);
    b.enter(2);
    a.media(1, 5);
    b.media(2, 6);
    // As behind a translator that was started again, after as much silence as shows a change. The third one comes by another address of the
    // receiver's, and hears nothing from elsewhere.
    wait(2_100);
    let mut c = ByHand::new("127.0.0.1", ("127.0.0.2", receiving.port));
    (a.sequence, b.sequence, c.sequence) = (7, 6, 8);
    b.enter(1);
    b.media(1, 2);
    c.enter(2);
    c.media(2, 3);
    // The name of a stream is no proof.
    let other = a.ask(1, Some(5)).map(|echo| (echo.taken, echo.busy));
    assert!(matches!(other, None | Some((_, true))), "{other:?}");
    a.media(1, 1);
    b.goodbye(1);
    c.goodbye(2);
    wait(GRACE);
    let (mut over, counts) = receiving.end();
    over.sort_by_key(|(n, _)| *n);
    let [(1, first), (2, second)] = &over[..] else { panic!("{over:?}") };
    assert!(matches!((&first.end, &second.end), (ReceiveEnd::Bye(_), ReceiveEnd::Bye(_))), "{over:?}");
    assert_eq!([first, second].map(|r| (r.stats.media.received, r.stats.unproven)), [(7, 0), (9, 0)]);
    assert_eq!(counts.strays, 1);
}

#[test]
fn who_has_shown_at_the_door_that_it_hears_need_not_show_it_again_and_its_session_counts() {
    let receiving = Receiving::start(1, Some(1), None, None);
    let mut sender = ByHand::new("127.0.0.1", ("127.0.0.1", receiving.port));
    let echo = sender.enter(7);
    assert!(!echo.show, "{echo:?}");
    sender.media(7, 5);
    sender.goodbye(7);
    let (over, _) = receiving.thread.join().unwrap();
    let [(1, report)] = &over[..] else { panic!("{over:?}") };
    assert!(report.counts && report.stats.proven, "{report:?}");
}

#[test]
fn a_receiver_of_several_that_cannot_be_is_refused() {
    let with = |change: fn(&mut ReceiveConfig), places| {
        let mut config = ReceiveConfig::new(0);
        change(&mut config);
        let receiver = Receiver::open(config, Clock::start()).unwrap();
        let mut book = Book { over: Vec::new(), sources: mpsc::channel().0, refuse: None };
        match receiver.serve_many(places, None, &mut book, &AtomicBool::new(true)) {
            Err(NetError::Config { field, .. }) => Some(field),
            _ => None,
        }
    };
    assert_eq!([0, 1, 1_000, 1_001].map(|n| with(|_| {}, n)), [Some("places"), None, None, Some("places")]);
    assert_eq!(with(|config| config.patience = Some(Duration::from_secs(1)), 1), Some("patience"));
    assert_eq!(with(|config| config.tcp = true, 1), Some("tcp"));
}

#[test]
fn packets_in_the_name_of_a_stream_from_elsewhere_do_not_come_near_it() {
    let receiving = Receiving::start(2, None, None, None);
    let port = receiving.port;
    let (over, counts, ended) = thread::scope(|scope| {
        let sending = scope.spawn(move || send(vec![to(port)], &[]));
        let ssrc = receiving.sources.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
        let forger = UdpSocket::bind("127.0.0.1:0").unwrap();
        forger.connect(("127.0.0.1", port)).unwrap();
        let name = ssrc.to_be_bytes();
        let media = [&[0x80, 0xe0, 0, 9, 0, 0, 0, 0][..], &name, &[0, 1, 2, 3]].concat();
        let goodbye = [&[0x80, 201, 0, 1][..], &name, &[0x81, 203, 0, 1], &name].concat();
        for _ in 0..200 {
            forger.send(&media).unwrap();
            forger.send(&goodbye).unwrap();
        }
        let ended = sending.join().unwrap();
        let (over, counts) = receiving.end();
        (over, counts, ended)
    });
    assert!(is_finished(&ended[0]), "{ended:?}");
    let [(_, report)] = &over[..] else { panic!("{over:?}") };
    assert_eq!((report.stats.wrong_address, report.stats.byes_ignored, report.stats.unproven), (0, 0, 0));
    assert_eq!(report.stats.media.received, ended[0].as_ref().unwrap().flow.data.sent);
    assert!(counts.strays >= 300, "{counts:?}");
}
