//! The cell on loopback: clients and target written by hand, so that every word that passes is known.

use fairpace_emu::relay::{Gone, News, Relay, RelayConfig, RelayReport, RelaySample, Standing, Visit};
use fairpace_net::{Buffers, Clock, DatagramIo, Mark, NetError, RecvOutcome, SendOutcome, UdpSocket, Waiter};
use fairpace_path::{ArqSpec, Capacity, Channel, DelayModel, LinkSpec};
use fairpace_rtp::Codec;
use fairpace_rtp::challenge::{Challenge, Echo, Message};
use fairpace_rtp::feedback::Request;
use fairpace_rtp::feedback::sack_vector::wire::Ack;
use fairpace_rtp::rtcp::{Compound, Rtcp};
use fairpace_sim::{
    BaseStation, BaseStationSpec, FlowConfig, HopConfig, Member, Promise, Protocol, RadioConfig, RouteHop, SimConfig,
};
use fairpace_units::{Bytes, Class, Dscp, Duration, Ecn, Instant, Packets, Rate};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MARK: Mark = Mark { dscp: Dscp::DEFAULT, ecn: Ecn::NotEct };

/// Shares 20 packets equally; with three members nothing is promised.
struct Equal;

impl BaseStation for Equal {
    fn plan(&mut self, _: Instant, members: &[Member]) -> Vec<u32> {
        members.iter().map(|_| 20 / members.len() as u32).collect()
    }

    fn promises(&self, members: &[Member], windows: &[u32]) -> Vec<Result<Promise, String>> {
        let promise = Promise {
            outage: 0.004,
            bound: 0.01,
            throughput: Rate::kbps(windows.first().copied().map_or(0.0, f64::from)),
        };
        members
            .iter()
            .map(|_| if members.len() < 3 { Ok(promise) } else { Err("three are too many".to_owned()) })
            .collect()
    }
}

/// Slots of 1 ms behind a wire, and so many places. Data may take 30 ms.
fn cell(places: usize) -> SimConfig {
    let wire = LinkSpec { delay: DelayModel::constant(Duration::from_millis(1)), ..LinkSpec::default() };
    let downlink = ArqSpec {
        slot: Duration::from_millis(1),
        slot_size: Bytes::new(1_500),
        ..ArqSpec::downlink(Channel::memoryless(0.0).unwrap(), Capacity::Packets(Packets::new(500)))
    };
    let radio = RadioConfig { downlink, uplink: None, base_station: Some(BaseStationSpec::new(|| Box::new(Equal))) };
    let place = |i| FlowConfig {
        route: vec![RouteHop::links(0), RouteHop { hop: 1, ports: [0, 0] }],
        delay_bound: Some(Duration::from_millis(30)),
        ..FlowConfig::new(format!("place-{i}"), Protocol::External)
    };
    SimConfig {
        hops: vec![HopConfig::path(wire.clone(), wire), HopConfig::radio(radio)],
        flows: (0..places).map(place).collect(),
        ..SimConfig::default()
    }
}

/// A target, and a cell before it that runs in a thread.
struct Bench {
    clock: Clock,
    cell: SocketAddr,
    target: UdpSocket,
    waiter: Waiter,
}

impl Bench {
    fn with<T>(places: usize, work: impl FnOnce(&mut Bench) -> T) -> (T, RelayReport, Vec<RelaySample>) {
        let clock = Clock::start();
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let target = UdpSocket::bind(local, true, Buffers::default(), clock).unwrap();
        let mut config = RelayConfig::new(0, target.local_address().unwrap());
        config.cell = Some(cell(places));
        config.sample = Duration::from_millis(50);
        let relay = Relay::open(config, clock).unwrap();
        let cell = SocketAddr::from((Ipv4Addr::LOCALHOST, relay.address().unwrap().port()));
        let (stop, samples) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let running = scope.spawn(|| relay.run(|sample| samples.lock().unwrap().push(sample.clone()), &stop));
            let mut bench = Bench { clock, cell, target, waiter: Waiter::new(clock).unwrap() };
            // A failure ends the relay, too.
            let out = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut bench)));
            stop.store(true, Ordering::Relaxed);
            let out = out.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let report = running.join().unwrap().unwrap();
            (out, report, std::mem::take(&mut *samples.lock().unwrap()))
        })
    }

    fn client(&self) -> UdpSocket {
        UdpSocket::connect(self.cell, Buffers::default(), self.clock).unwrap()
    }

    fn pause(&mut self, ms: u64) {
        let until = self.clock.now() + Duration::from_millis(ms);
        while self.clock.now() < until {
            self.waiter.wait(until, &[]).unwrap();
        }
    }

    /// A packet of the client comes to the target, from this address.
    fn up(&mut self, client: &mut UdpSocket, bytes: &[u8]) -> SocketAddr {
        assert_eq!(client.send(None, bytes, MARK), SendOutcome::Sent);
        let (got, from) = take(self.clock, &mut self.waiter, &mut self.target).expect("it comes to the target");
        assert_eq!(got, bytes);
        from
    }

    /// A packet of the target for that address comes to the client like that.
    fn down(&mut self, to: SocketAddr, client: &mut UdpSocket, bytes: &[u8]) -> Vec<u8> {
        assert_eq!(self.target.send(Some(to), bytes, MARK), SendOutcome::Sent);
        take(self.clock, &mut self.waiter, client).expect("it comes to the client").0
    }

    /// A client that asks, and is let in: its window by the echo, and where the target sees it.
    fn enter(&mut self, client: &mut UdpSocket, form: Request, echo: &[u8]) -> (Option<u8>, SocketAddr) {
        let place = self.up(client, &challenge(form));
        // A client gets three times what it sent, until it has shown that it hears.
        for n in 0..3 {
            self.up(client, &media(n));
        }
        let echo = self.down(place, client, echo);
        let rwnd = Compound::parse(&echo).unwrap().find_map(|packet| match packet {
            Rtcp::App(app) => match Message::parse(&app).unwrap() {
                Some(Message::Echo(echo)) => Some(echo.rwnd.map(NonZeroU8::get)),
                _ => None,
            },
            _ => None,
        });
        (rwnd.unwrap(), place)
    }
}

fn take(clock: Clock, waiter: &mut Waiter, socket: &mut UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let until = clock.now() + Duration::from_secs(5);
    let mut buffer = [0; 2_048];
    while clock.now() < until {
        if let RecvOutcome::Packet(r) = socket.recv(&mut buffer) {
            return Some((buffer[..r.len].to_vec(), r.from));
        }
        waiter.wait(until, &[socket.descriptor()]).unwrap();
    }
    None
}

fn challenge(form: Request) -> Vec<u8> {
    let mut out = Vec::new();
    let (class, codec, media, dummy) = (Class::Normal, Codec::Generic, (97, 5), (98, 6));
    Challenge { token: 1, class, codec, media, dummy, retransmission: None, fec: None, form, proof: None }
        .emit(&mut out);
    out
}

fn echo() -> Vec<u8> {
    let mut out = Vec::new();
    let (receiver, token, dscp, ecn, delay) = (7, 1, Dscp::DEFAULT, Ecn::NotEct, Duration::ZERO);
    let (rwnd, feedback_interval, next_report) = (None, Duration::ZERO, 3);
    let (taken, fec, busy, ends, show) = (false, false, false, false, false);
    Echo { receiver, token, dscp, ecn, delay, rwnd, feedback_interval, next_report, taken, fec, busy, ends, show }
        .emit(&mut out);
    out
}

fn ack(number: u32, rwnd: Option<u16>) -> Vec<u8> {
    let mut out = Vec::new();
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    Ack { receiver: 7, number, ack: number, vector: 0, rwnd, dscp, ecn, delay: 0, arrival: 0, nonce_sum: 9 }
        .emit(&mut out);
    out
}

fn bye() -> Vec<u8> {
    vec![0x81, 203, 0, 1, 0, 0, 0, 5]
}

fn media(sequence: u16) -> Vec<u8> {
    let mut out = vec![0x80, 97];
    out.extend(sequence.to_be_bytes());
    out.extend([0, 0, 0, 0, 0, 0, 0, 5]);
    out.resize(97, 0);
    out
}

fn visit<'a>(report: &'a RelayReport, name: &str) -> &'a Visit {
    report.visits.iter().find(|v| v.name == name).unwrap_or_else(|| panic!("{name} of {:?}", report.visits))
}

#[test]
fn each_flow_is_told_its_window_as_flows_come_and_go() {
    let ((), report, samples) = Bench::with(2, |b| {
        let (mut first, mut second) = (b.client(), b.client());
        let (rwnd, at) = b.enter(&mut first, Request::SackVector, &echo());
        assert_eq!(rwnd, Some(20), "before anything is sent");
        assert_eq!(b.down(at, &mut first, &ack(1, None)), ack(1, Some(20)));
        assert_eq!(b.down(at, &mut first, &ack(2, Some(30))), ack(2, Some(20)));
        assert_eq!(b.down(at, &mut first, &ack(3, Some(7))), ack(3, Some(7)), "the receiver's own is smaller");

        let (rwnd, other) = b.enter(&mut second, Request::SackVector, &echo());
        assert_eq!(rwnd, Some(10));
        assert_ne!(at, other, "the target sees each place at an address of its own");
        assert_eq!(b.down(at, &mut first, &ack(4, None)), ack(4, Some(10)));
        // Data goes on as it came.
        for n in 0..5 {
            b.up(&mut second, &media(n));
        }
        b.up(&mut second, &bye());
        assert_eq!(b.down(at, &mut first, &ack(5, None)), ack(5, Some(20)));
        assert_eq!(b.down(other, &mut second, &ack(5, None)), ack(5, None), "the last words of one that has gone");
        // Its place is free two seconds after its goodbye.
        b.pause(2_100);
        let mut third = b.client();
        assert_eq!(b.enter(&mut third, Request::SackVector, &echo()), (Some(10), other));
    });
    let (first, second) = (visit(&report, "place-0"), visit(&report, "place-1"));
    assert_eq!((first.standing, first.tally.windows_written), (Standing::Planned, 5));
    assert_eq!((first.end.map(|e| e.1), second.end.map(|e| e.1)), (Some(Gone::End), Some(Gone::Bye)));
    assert_eq!((second.tally.data, second.tally.late, second.tally.promised), (8, 0, 5));
    assert!((second.tally.outage_by_plan().unwrap() - 0.004).abs() < 1e-9);
    assert_eq!((report.clients, report.strangers, report.short_plans, report.visits.len()), (3, 0, 0, 3));
    let windows = report.path.radios[0].windows.iter().map(|w| (w.flow, w.rwnd)).collect::<Vec<_>>();
    assert_eq!(windows, [(0, 20), (0, 10), (1, 10), (0, 20), (0, 10)]);
    let news: Vec<News> = samples.iter().flat_map(|s| s.cell.news.clone()).collect();
    let left = |n: &&News| matches!(n, News::Left(1, _, Gone::Bye));
    assert_eq!(news.iter().filter(left).count(), 1, "{news:?}");
    assert!(news.iter().any(|n| matches!(n, News::Window(0, 20, Ok(p)) if p.bound == 0.01)), "{news:?}");
    assert!(samples.iter().any(|s| s.cell.clients.len() == 2));
}

#[test]
fn who_cannot_be_told_a_window_passes_unplanned_and_unchanged() {
    // As `fairpace send --key-file` seals a challenge: an APP packet behind it.
    let sealed = |message: Vec<u8>| {
        let trailer = [&[0x87, 204, 0, 15, 0, 0, 0, 5][..], b"FPCE", &[1; 52]].concat();
        [message, trailer].concat()
    };
    let ((), report, samples) = Bench::with(3, |b| {
        let (mut planned, mut keyed, mut other) = (b.client(), b.client(), b.client());
        let (_, at) = b.enter(&mut planned, Request::SackVector, &echo());
        let place = b.up(&mut keyed, &sealed(challenge(Request::SackVector)));
        b.up(&mut keyed, &media(0));
        assert_eq!(b.down(place, &mut keyed, &sealed(echo())), sealed(echo()));
        // Of sealed feedback only the first eight bytes are clear, and these are those of an ACK.
        let mut feedback = ack(1, None);
        feedback[8..].fill(0xa5);
        assert_eq!(b.down(place, &mut keyed, &feedback), feedback);
        assert_eq!(b.down(place, &mut keyed, &ack(1, None)), ack(1, None), "nor what looks like one");
        let (rwnd, _) = b.enter(&mut other, Request::Ccfb, &echo());
        assert_eq!(rwnd, None);
        assert_eq!(b.down(at, &mut planned, &ack(1, None)), ack(1, Some(20)), "alone in the plan");
        b.pause(120);
    });
    let [planned, keyed, other] = ["place-0", "place-1", "place-2"].map(|name| visit(&report, name));
    assert_eq!(
        [planned.standing, keyed.standing, other.standing],
        [Standing::Planned, Standing::Sealed, Standing::NoWindow]
    );
    assert_eq!((keyed.tally.sealed_feedback, keyed.tally.windows_written), (2, 0));
    let news: Vec<News> = samples.iter().flat_map(|s| s.cell.news.clone()).collect();
    assert!(news.contains(&News::Sealed(1)) && news.contains(&News::NoWindow(2)), "{news:?}");
}

#[test]
fn a_cell_asked_for_more_than_it_has_says_so_and_who_finds_no_place_is_counted() {
    let ((), report, samples) = Bench::with(3, |b| {
        let mut clients = [b.client(), b.client(), b.client()];
        for client in &mut clients {
            b.enter(client, Request::SackVector, &echo());
        }
        let mut late = b.client();
        for _ in 0..4 {
            late.send(None, &challenge(Request::SackVector), MARK);
        }
        b.pause(150);
        let mut buffer = [0; 100];
        assert!(!matches!(b.target.recv(&mut buffer), RecvOutcome::Packet(_)), "it reaches nobody");
    });
    // The third plan promises nothing, and every flow has a window all the same.
    assert_eq!((report.strangers, report.clients, report.short_plans), (4, 3, 1));
    assert!(report.visits.iter().all(|v| v.promise.is_none() && v.window.is_some_and(|w| w >= 6)));
    let said = |n: &News| matches!(n, News::Window(2, 6, Err(why)) if why == "three are too many");
    assert!(samples.iter().flat_map(|s| &s.cell.news).any(said), "{samples:?}");
    assert!(report.series.iter().all(|s| s.cell.clients.is_empty()), "a day of them would take gigabytes");
    let refused = samples.iter().flat_map(|s| &s.cell.news).filter(|n| matches!(n, News::Refused(_))).count();
    assert!((1..=4).contains(&refused));
}

#[test]
fn a_flow_that_ignores_its_window_is_named_and_one_that_keeps_to_it_is_not() {
    let ((), report, samples) = Bench::with(2, |b| {
        let (mut honest, mut greedy) = (b.client(), b.client());
        let (_, at) = b.enter(&mut honest, Request::SackVector, &echo());
        let (rwnd, other) = b.enter(&mut greedy, Request::SackVector, &echo());
        assert_eq!(rwnd, Some(10));
        // Longer ago than a sender may not have heard of it.
        b.down(at, &mut honest, &ack(0, None));
        b.down(other, &mut greedy, &ack(0, None));
        b.pause(1_100);
        for n in 1..=60_u16 {
            b.up(&mut honest, &media(n));
            for k in 0..3 {
                b.up(&mut greedy, &media(3 * n + k));
            }
            // Each second packet is acknowledged: eight and more are outstanding, or more each time.
            b.down(at, &mut honest, &ack(u32::from(n.saturating_sub(8)), None));
            b.down(other, &mut greedy, &ack(u32::from(n), None));
        }
        b.pause(120);
    });
    let (honest, greedy) = (visit(&report, "place-0"), visit(&report, "place-1"));
    assert!(!honest.ignores_window && honest.tally.over_window == 0, "{honest:?}");
    assert!(greedy.ignores_window && greedy.tally.over_window > 100, "{greedy:?}");
    assert_eq!((honest.tally.data, greedy.tally.data), (63, 183), "nothing is lost");
    let named = samples.iter().flat_map(|s| &s.cell.news).filter(|n| matches!(n, News::Ignores(1))).count();
    assert_eq!(named, 1);
}

#[test]
fn a_cell_has_at_least_one_place_and_not_too_many() {
    let open = |places| {
        let mut config = RelayConfig::new(0, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)));
        config.cell = Some(cell(places));
        if places == 0 {
            config.cell = Some(SimConfig {
                flows: vec![FlowConfig::new(
                    "tcp",
                    Protocol::Tcp(Default::default(), fairpace_sim::tcp::TcpSource::Ftp),
                )],
                ..cell(1)
            });
        }
        Relay::open(config, Clock::start()).map(drop)
    };
    for (places, found) in [(0, "0"), (65, "65")] {
        let refused = open(places).unwrap_err();
        assert!(matches!(&refused, NetError::Config { found: f, .. } if f == found), "{refused}");
        assert!(refused.to_string().contains("1 to 64"), "{refused}");
    }
    assert!(open(64).is_ok());
}
