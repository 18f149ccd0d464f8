use super::*;
use crate::equation::Equation;
use fairpace_units::Probability;

const R: Duration = Duration::from_millis(100);
const SIZE: Bytes = Bytes::new(1_000);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A receiver, and the path's delay taken as 40 ms.
struct Rig {
    receiver: TfrcReceiver,
    rtt: Option<Duration>,
    /// When reports left, and what they said.
    reports: Vec<(Instant, RateReport)>,
}

impl Rig {
    fn new() -> Rig {
        Rig { receiver: TfrcReceiver::new(ReceiverParams::default()), rtt: Some(R), reports: Vec::new() }
    }

    fn arrival(&self, seq: u64, now: Instant, ecn: Ecn) -> RatedArrival {
        let header = RateHeader { sent_at: now - Duration::from_millis(40), rtt: self.rtt };
        RatedArrival { seq, size: SIZE, header, ecn }
    }

    fn wait(&mut self, until: Instant) {
        while self.receiver.next() <= until {
            let now = self.receiver.next();
            let report = self.receiver.poll(now).expect("what is due comes");
            assert_eq!(self.receiver.poll(now), None, "once");
            self.reports.push((now, report));
        }
    }

    fn packet(&mut self, seq: u64, at: u64) {
        self.wait(ms(at));
        let arrival = self.arrival(seq, ms(at), Ecn::NotEct);
        self.receiver.on_packet(ms(at), &arrival);
        self.wait(ms(at));
    }

    fn marked(&mut self, seq: u64, at: u64) {
        self.wait(ms(at));
        let arrival = self.arrival(seq, ms(at), Ecn::Ce);
        self.receiver.on_packet(ms(at), &arrival);
        self.wait(ms(at));
    }

    fn times(&self) -> Vec<u64> {
        self.reports.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect()
    }

    fn last(&self) -> RateReport {
        self.reports.last().expect("a report").1
    }
}

/// The interval that [RFC 5348 §6.3.1] asks for, by the equation itself.
fn interval(bytes_per_s: f64, s: u64, r: Duration) -> f64 {
    let path = TcpPath::new(Bytes::new(s), r, 4 * r, 1.0).expect("a path");
    1.0 / Equation::Tfrc.loss_rate(&path, Rate::bps(bytes_per_s * 8.0)).get()
}

#[test]
//= 5348-6.3-1
fn the_first_packet_is_reported_at_once_with_nothing_measured() {
    let mut rig = Rig::new();
    rig.packet(70_000, 1_000);
    let expected =
        RateReport { echoed: ms(960), delay: Duration::ZERO, received_rate: Rate::ZERO, loss_event_rate: 0.0 };
    assert_eq!(rig.reports, [(ms(1_000), expected)]);
    // The timer is at its RTT.
    rig.packet(70_001, 1_001);
    assert_eq!(rig.receiver.next(), ms(1_100));
}

#[test]
//= 5348-6-1
//= 5348-6.2-2
fn a_report_leaves_once_per_rtt_of_the_newest_packet() {
    let mut rig = Rig::new();
    for i in 0..=25 {
        if i > 8 {
            rig.rtt = Some(Duration::from_millis(50));
        }
        rig.packet(i, 10 * i);
    }
    // From 90 ms on packets say 50 ms: the timer that is set at 100 ms runs so long.
    assert_eq!(rig.times(), [0, 100, 150, 200, 250]);
}

#[test]
//= 5348-3.2.2-1
//= 5348-6.2-1
fn a_report_says_which_packet_how_long_ago_how_fast_and_p() {
    let mut rig = Rig::new();
    for i in 0..=13 {
        rig.packet(i, 15 * i);
    }
    // 15, 30, … 90 ms: six packets in 100 ms; 105, … 195 ms: seven in the next.
    let second = rig.reports[1].1;
    assert_eq!(second.echoed, ms(50));
    assert_eq!(second.delay, Duration::from_millis(10));
    assert_eq!(second.received_rate, Rate::bps(60_000.0 * 8.0));
    assert_eq!(second.loss_event_rate, 0.0);
    rig.wait(ms(200));
    assert_eq!(rig.last().received_rate, Rate::bps(70_000.0 * 8.0));
}

/// A report at 0 and each 100 ms from there; the request at 130 ms is reported at once, and the next 100 ms later.
//= 5634-2.2-1
//= 5634-3.2.2-1
#[test]
fn a_quick_start_request_is_reported_at_once_and_the_timer_runs_from_there() {
    let mut rig = Rig::new();
    for k in 0..40 {
        let at = 10 * k;
        rig.wait(ms(at));
        let arrival = rig.arrival(k, ms(at), Ecn::NotEct);
        rig.receiver.on_packet(ms(at), &arrival);
        if at == 130 {
            rig.receiver.on_quick_start_request(ms(at));
        }
        rig.wait(ms(at));
    }
    assert_eq!(rig.times(), [0, 100, 130, 230, 330]);
}

#[test]
//= 5348-6.2-3
//= 5348-6.1-2
//= 5348-6.2-4
fn without_data_nothing_is_sent_and_the_next_packet_is_reported_at_once() {
    let mut rig = Rig::new();
    for i in 0..=9 {
        rig.packet(i, 10 * i);
    }
    rig.wait(ms(5_000));
    assert_eq!(rig.times(), [0, 100]);
    assert_eq!(rig.receiver.next(), Instant::NEVER);
    rig.packet(10, 5_000);
    assert_eq!(rig.times(), [0, 100, 5_000]);
    // One packet in the last RTT.
    assert_eq!(rig.last().received_rate, Rate::bps(10_000.0 * 8.0));
    rig.packet(11, 5_010);
    assert_eq!(rig.receiver.next(), ms(5_100), "the timer runs again");
}

#[test]
//= 5348-6-1
fn less_than_a_packet_per_rtt_is_reported_packet_by_packet() {
    let mut rig = Rig::new();
    for i in 0..10 {
        rig.packet(i, 300 * i);
        assert_eq!(rig.times().last(), Some(&(300 * i)));
    }
    assert_eq!(rig.last().received_rate, Rate::bps(10_000.0 * 8.0));
}

#[test]
//= 5348-6.3-2
fn until_a_packet_carries_an_rtt_every_packet_is_reported() {
    let mut rig = Rig::new();
    rig.rtt = None;
    for i in 0..5 {
        rig.packet(i, 10 * i);
    }
    assert_eq!(rig.times(), [0, 10, 20, 30, 40]);
    // The packet at 40 ms was reported: the next report is R later, not the second that R was taken for.
    rig.rtt = Some(R);
    for i in 5..=25 {
        rig.packet(i, 10 * i);
    }
    assert_eq!(rig.times(), [0, 10, 20, 30, 40, 140, 240]);
    assert_eq!(rig.last().received_rate, Rate::bps(100_000.0 * 8.0));
}

/// One packet before its sender knows R, and as many as the initial window once it does.
#[test]
//= 5348-6.3-2
fn the_first_packet_with_an_rtt_is_reported_r_after_the_last_report() {
    let mut rig = Rig::new();
    rig.rtt = None;
    rig.packet(0, 0);
    rig.rtt = Some(R);
    for i in 1..=4 {
        rig.packet(i, 75 + 25 * i);
    }
    assert_eq!(rig.times(), [0, 100]);
    // One packet in that R.
    assert_eq!(rig.last().received_rate, Rate::bps(10_000.0 * 8.0));
    rig.wait(ms(300));
    assert_eq!(rig.times(), [0, 100, 200]);
    assert_eq!(rig.last().received_rate, Rate::bps(30_000.0 * 8.0));
}

#[test]
//= 5348-6-2
//= 5348-6.1-1
fn a_new_loss_event_is_reported_at_once_if_p_rose() {
    let mut rig = Rig::new();
    for i in (0..=54).filter(|i| *i != 51) {
        rig.packet(i, 10 * i);
    }
    // 51 is lost when 54 comes, at 540 ms, between the reports of 500 and 600 ms.
    assert_eq!(rig.times(), [0, 100, 200, 300, 400, 500, 540]);
    assert!(rig.last().loss_event_rate > 0.0);
    // 58, at 580 ms, is within R of 510 ms: the same event.
    for i in (55..=61).filter(|i| *i != 58) {
        rig.packet(i, 10 * i);
    }
    assert_eq!(rig.times().len(), 7);
    assert_eq!(rig.receiver.next(), ms(640));
}

#[test]
//= 5348-6.1-1
fn a_new_loss_event_that_lowers_p_waits_for_the_timer() {
    // Intervals: the first one, 1, 100. While the last is open p is about 2/(100 + 1); closed, it
    // no longer crowds the first one out: p = 3/(100 + 1 + first) is lower.
    let mut rig = Rig::new();
    for i in 0..=60 {
        rig.packet(i, 8 * i);
    }
    rig.marked(61, 600);
    rig.marked(62, 701);
    for i in 63..=161 {
        rig.packet(i, 701 + 8 * (i - 62));
    }
    let (reported, before) = (rig.last().loss_event_rate, rig.reports.len());
    rig.marked(162, 1_495);
    assert_eq!(rig.receiver.arrivals.events().events(), 3);
    assert!(rig.receiver.loss_event_rate() < reported, "{} {reported}", rig.receiver.loss_event_rate());
    assert_eq!(rig.reports.len(), before);
    assert_eq!(rig.receiver.next(), ms(1_501), "the timer's");
}

#[test]
//= 5348-6-3
fn a_late_packet_that_removes_an_event_is_reported_at_once() {
    let mut rig = Rig::new();
    for i in (0..=54).filter(|i| *i != 51) {
        rig.packet(i, 10 * i);
    }
    rig.packet(51, 545);
    assert_eq!(rig.times().last(), Some(&545));
    assert_eq!(rig.last().loss_event_rate, 0.0);
    assert_eq!(rig.last().echoed, ms(500), "still the newest packet's");
}

#[test]
//= 5348-6.3.1-1
//= 5348-6.3.1-3
fn the_first_interval_gives_the_highest_rate_so_far_by_the_equation() {
    let mut rig = Rig::new();
    // 125 packets per second of 1,000 bytes, then half of that, then a loss.
    for i in 0..=100 {
        rig.packet(i, 8 * i);
    }
    for i in 101..=160 {
        rig.packet(i, 800 + 16 * (i - 100));
    }
    rig.packet(162, 1_792);
    rig.packet(163, 1_808);
    rig.packet(164, 1_824);
    let highest = rig.reports.iter().map(|r| r.1.received_rate.as_bps() / 8.0).fold(0.0, f64::max);
    assert!((120_000.0..=130_000.0).contains(&highest), "{highest}");
    let seeded = rig.receiver.arrivals.events().intervals().next().expect("the first interval");
    assert!((seeded / interval(highest, 1_000, R) - 1.0).abs() < 1e-9, "{seeded}");
    // Within 5 % of X_target by the equation itself [RFC 5348 §6.3.1].
    let path = TcpPath::new(SIZE, R, 4 * R, 1.0).expect("a path");
    let x = Equation::Tfrc.rate(&path, Probability::new(1.0 / seeded).expect("p")).as_bps() / 8.0;
    assert!((x / highest - 1.0).abs() < 0.05);
    // And what is reported is what came: about 62,500 bytes per second.
    let x_recv = rig.last().received_rate.as_bps() / 8.0;
    assert!((50_000.0..=70_000.0).contains(&x_recv), "{x_recv}");
}

#[test]
//= 5348-6.3.1-1
//= 5348-6.3.1-2
//= 5348-6.3.1-4
fn the_first_interval_has_the_worked_values() {
    // X_target 125,000 B/s, s = 1,460 B, R = 100 ms: p = 0.0156836, 63.76 packets; at 0.5 packets
    // per RTT p = 0.206429, 4.844 packets.
    assert!((interval(125_000.0, 1_460, R) - 63.76).abs() < 0.005);
    let mut rig = Rig::new();
    rig.marked(0, 0);
    let seeded = rig.receiver.arrivals.events().intervals().next().expect("the first interval");
    assert!((seeded - 4.844).abs() < 0.001, "{seeded}");
    assert!((rig.last().loss_event_rate - 0.206_429).abs() < 1e-6);
    assert_eq!(rig.last().received_rate, Rate::ZERO);
}

#[test]
//= 5348-6.2-1
fn a_burst_within_the_first_rtt_is_no_higher_rate() {
    let mut rig = Rig::new();
    for i in (0..=8).filter(|i| *i != 5) {
        rig.packet(i, i);
    }
    // Seven packets since the first, 5 is lost when 8 comes: 70 packets/s, not 7 in 8 ms.
    assert_eq!(rig.times(), [0, 8]);
    assert_eq!(rig.last().received_rate, Rate::bps(70_000.0 * 8.0));
    let seeded = rig.receiver.arrivals.events().intervals().next().expect("the first interval");
    assert!((seeded / interval(70_000.0, 1_000, R) - 1.0).abs() < 1e-9);
}

#[test]
fn small_packets_seed_the_history_with_what_their_sender_takes_off() {
    // 100 bytes of 140 are data: 12,500 B/s of data is 17,500 B/s of 1,460-byte segments.
    let params = ReceiverParams { small_packets: Some(40.0), ..ReceiverParams::default() };
    let mut receiver = TfrcReceiver::new(params);
    for seq in (0..=130).filter(|s| *s != 127) {
        let at = ms(8 * seq);
        let header = RateHeader { sent_at: at, rtt: Some(R) };
        receiver.on_packet(at, &RatedArrival { seq, size: Bytes::new(100), header, ecn: Ecn::NotEct });
        receiver.poll(at);
    }
    let seeded = receiver.arrivals.events().intervals().next().expect("the first interval");
    let x_target = receiver.most / (100.0 / 140.0);
    assert!((seeded / interval(x_target, 1_460, R) - 1.0).abs() < 1e-9);
}

#[test]
fn whatever_a_header_says_a_report_is_sane_and_memory_bounded() {
    let mut rig = Rig::new();
    let hostile = [None, Some(Duration::ZERO), Some(Duration::MAX), Some(Duration::from_nanos(1))];
    let mut now = 0;
    for (i, jump) in [0, 3, 1 << 40, (1 << 40) + 9, 5, 1 << 41, u64::MAX, 7].into_iter().cycle().take(4_000).enumerate()
    {
        now += [0, 1, 50, 70_000][i % 4];
        let sent_at = [Instant::NEVER, Instant::ZERO, ms(now)][i % 3];
        let header = RateHeader { sent_at, rtt: hostile[i % 4] };
        let size = Bytes::new([0, 1, u64::MAX][i % 3]);
        let ecn = if i % 5 == 0 { Ecn::Ce } else { Ecn::NotEct };
        let seq = u64::saturating_add(jump, i as u64 * 3);
        rig.receiver.on_packet(ms(now), &RatedArrival { seq, size, header, ecn });
        rig.wait(ms(now));
    }
    for (at, report) in &rig.reports {
        assert!((0.0..=1.0).contains(&report.loss_event_rate) && report.received_rate <= Rate::MAX);
        assert!(report.delay <= at.since(Instant::ZERO));
    }
    assert!(rig.reports.len() > 100);
}

/// The headers say that R is a minute: the arrivals of that are not all kept.
#[test]
fn as_ns2_memory_is_bounded_whatever_the_header_says_of_r() {
    let params = ReceiverParams { as_ns2: true, reports_as_ns2: true, ..ReceiverParams::default() };
    let mut rig = Rig { receiver: TfrcReceiver::new(params), rtt: Some(Duration::from_secs(60)), reports: Vec::new() };
    for seq in 0..Ns2::MOST as u64 + 1_000 {
        rig.packet(seq, seq / 100);
    }
    let kept = rig.receiver.ns2.as_ref().map(|ns2| ns2.arrivals.len());
    assert_eq!(kept, Some(Ns2::MOST));
}

/// One packet each, R = 100 ms. The report of a packet is followed by another 1.5 R later, by which X_recv is a packet per second if
/// nothing came; the report that the timer brings is not. A packet within R of a report waits for the timer, unless it tells of a loss.
#[test]
fn as_ns2_reports_are_repeated_and_say_a_packet_per_second_where_nothing_came() {
    let params = ReceiverParams { as_ns2: true, reports_as_ns2: true, ..ReceiverParams::default() };
    let mut rig = Rig { receiver: TfrcReceiver::new(params), ..Rig::new() };
    rig.packet(0, 1_000);
    rig.packet(1, 1_400);
    rig.packet(2, 1_450);
    rig.packet(4, 1_560);
    rig.wait(ms(3_000));
    assert_eq!(rig.times(), [1_000, 1_150, 1_400, 1_550, 1_560, 1_710]);
    let received = |n: usize| rig.reports[n].1.received_rate.as_packets_per_second(SIZE);
    // 1 in 250 ms, 1 in 150 ms, 1 in the R before.
    for (n, wanted) in [(1, 1.0), (2, 4.0), (3, 1.0 / 0.15), (4, 10.0), (5, 1.0)] {
        assert!((received(n) - wanted).abs() < 1e-9, "{n}: {} for {wanted}", received(n));
    }
    assert_eq!((rig.reports[1].1.echoed, rig.reports[1].1.delay), (rig.reports[0].1.echoed, ms(150).since(ms(0))));
}
