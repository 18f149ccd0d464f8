//! G by hand, and beside X.

use super::*;
use crate::LossHow;
use crate::testing::{Packet, Path, SIZE, made, made_as, paper};
use fairpace_units::{Ecn, RandomStream};

const RTT: Duration = Duration::from_millis(500);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Auto alone, told things by hand: packets of 1,000 bytes, a round trip of 500 ms without queues.
struct Alone {
    auto: Auto,
    rtt: RttEstimator,
    now: Instant,
    seq: u64,
}

impl Alone {
    fn new(pairs: &[(&str, &str)]) -> Alone {
        let mut auto: Auto = made_as("auto", pairs, &paper());
        let mut rtt = RttEstimator::new(auto.loss_policy().rtt);
        rtt.update(RTT);
        auto.start(Instant::ZERO, Some(RTT));
        Alone { auto, rtt, now: Instant::ZERO, seq: 0 }
    }

    fn g_kbps(&self) -> f64 {
        self.auto.g().as_bps() / 1e3
    }

    /// A packet that left now is acknowledged after a round trip, of which it waited so long.
    fn ack(&mut self, sent_at: Instant, waiting: Duration) {
        let sample = RTT + waiting;
        let ack = Acked {
            late: false,
            kind: Kind::Data,
            seq: self.seq,
            size: SIZE,
            sent_at,
            rtt: Some(sample),
            ecn: Ecn::NotEct,
            arrived_at: None,
            outstanding: 0,
        };
        self.seq += 1;
        // SRTT stays 500 ms, so that rounds last as long.
        self.auto.on_ack(self.now, &ack, &self.rtt);
    }

    /// `n` packets that left from now on are acknowledged, evenly over a round, and `lost` before them were not.
    fn round(&mut self, n: u64, lost: u64, waiting: Duration) {
        let began = self.now;
        for _ in 0..lost {
            self.lose(began);
        }
        for i in 1..=n {
            self.now = began + RTT * u32::try_from(i).unwrap() / u32::try_from(n).unwrap();
            self.ack(began, waiting);
        }
    }

    fn lose(&mut self, sent_at: Instant) {
        let loss = Loss { seq: self.seq, sent_at, highest_sent: self.seq + 3, how: LossHow::LaterAcks };
        self.seq += 1;
        self.auto.on_loss(self.now, &loss, &self.rtt);
    }

    /// G after a first sign of a queue: five packets of 400 kbit/s; 50 packets in a round since.
    fn after_a_queue() -> Alone {
        let mut a = Alone::new(&[]);
        a.round(25, 0, ms(0));
        a.round(25, 0, ms(0));
        let cut = a.now;
        (0..5).for_each(|_| a.ack(cut, ms(100)));
        assert_ne!(a.auto.phase(), Phase::Start);
        a
    }
}

#[test]
fn it_starts_at_300_kbps_and_doubles_each_round_that_used_it() {
    let mut a = Alone::new(&[]);
    assert_eq!((a.g_kbps(), a.auto.phase()), (300.0, Phase::Start));
    // 19 packets in half a second are 304 kbit/s.
    a.round(19, 0, ms(0));
    assert_eq!(a.g_kbps(), 600.0);
    a.round(38, 0, ms(15));
    assert_eq!((a.g_kbps(), a.auto.phase()), (1_200.0, Phase::Start));
    // Of 1,200 kbit/s 800 were used: below seven tenths. Of those, 320: twice that remains.
    a.round(50, 0, ms(0));
    assert_eq!(a.g_kbps(), 1_200.0);
    a.round(20, 0, ms(0));
    assert_eq!((a.g_kbps(), a.auto.status().reason), (640.0, "not used"));
}

#[test]
fn a_flow_with_a_start_rate_starts_there_and_one_with_a_highest_rate_goes_no_further() {
    let env = Env { start_rate: Some(Rate::kbps(80.0)), max_rate: Rate::kbps(100.0), ..paper() };
    let mut a = Alone { auto: made_as("auto", &[], &env), ..Alone::new(&[]) };
    a.auto.start(Instant::ZERO, Some(ms(2_000)));
    assert_eq!(a.g_kbps(), 80.0);
    a.round(10, 0, ms(0));
    assert_eq!(a.g_kbps(), 100.0);
}

#[test]
fn a_loss_without_a_queue_costs_x_and_not_g() {
    let mut a = Alone::new(&[]);
    a.round(25, 0, ms(0));
    a.round(50, 1, ms(4));
    assert_eq!((a.g_kbps(), a.auto.phase()), (1_200.0, Phase::Start));
    a.auto.on_timer(a.now, &a.rtt);
    assert!(a.auto.x().as_bps() < 900e3, "X heeds it: {}", a.auto.x());
    assert_eq!(a.auto.target_rate(), a.auto.g());
}

#[test]
fn a_loss_whose_neighbours_waited_brings_g_down_to_x() {
    for (before, after, queue) in [(2, 6, false), (5, 7, true), (20, 0, true), (0, 9, false)] {
        let mut a = Alone::new(&[]);
        a.round(25, 0, ms(0));
        let sent_at = a.now;
        a.ack(sent_at, ms(before));
        let lost = a.seq;
        a.seq += 1;
        a.ack(sent_at, ms(after));
        let loss = Loss { seq: lost, sent_at, highest_sent: lost + 3, how: LossHow::LaterAcks };
        a.auto.on_loss(a.now, &loss, &a.rtt);
        assert_eq!(a.auto.g() == a.auto.x(), queue, "waited {before} and {after} ms: {}", a.auto.g());
        assert_eq!(a.auto.phase(), if queue { Phase::Fair } else { Phase::Start });
        assert_eq!(a.auto.status().reason == "lost in a queue", queue);
    }
    // With another bound, the second of them is the path's own.
    let mut a = Alone::new(&[("loss_waiting", "6 ms")]);
    a.round(25, 0, ms(5));
    a.round(25, 1, ms(5));
    assert_eq!(a.auto.phase(), Phase::Start);
}

#[test]
fn five_packets_in_a_row_that_found_a_queue_leave_0_85_of_what_was_delivered() {
    let mut a = Alone::new(&[]);
    a.round(25, 0, ms(0));
    a.round(30, 0, ms(0));
    assert_eq!(a.g_kbps(), 1_200.0);
    // 15 ms are no queue yet, and four packets are none. The first to wait is some jitter, too.
    let sent_at = a.now;
    a.now = sent_at + ms(400);
    for waiting in [20, 20, 20, 20, 15, 20, 20, 20, 20] {
        a.ack(sent_at, ms(waiting));
    }
    assert_eq!(a.g_kbps(), 1_200.0);
    a.ack(sent_at, ms(20));
    // Ten packets in 400 ms: 200 kbit/s.
    assert!((a.g_kbps() - 0.85 * 200.0).abs() < 1e-9, "{}", a.auto.g());
    assert_eq!((a.auto.phase(), a.auto.status().reason), (Phase::Free, "a queue stands"));
}

#[test]
fn a_delay_that_jitters_is_no_queue_and_one_on_top_of_a_queue_hides_none() {
    let mut random = RandomStream::named(1, "auto");
    let mut jitter = move || Duration::from_secs_f64(0.04 * random.uniform());
    let mut a = Alone::new(&[]);
    a.round(25, 0, ms(0));
    let mut losses_in_a_queue = 0;
    for _ in 0..200 {
        let packets = 1 + (a.g_kbps() / 16.0) as u64;
        let (began, lost) = (a.now, packets / 2);
        for i in 1..=packets {
            a.now = began + RTT * u32::try_from(i).unwrap() / u32::try_from(packets).unwrap();
            a.seq += u64::from(i == lost);
            a.ack(began, jitter());
            // Three packets later it is known.
            if i == lost + 2 {
                let loss = Loss { seq: a.seq - 4, sent_at: began, highest_sent: a.seq, how: LossHow::LaterAcks };
                a.auto.on_loss(a.now, &loss, &a.rtt);
                losses_in_a_queue += u32::from(a.auto.status().reason == "lost in a queue");
            }
            assert_ne!(a.auto.status().reason, "a queue stands");
        }
    }
    // Of two waits that are uniform from 0 to 40 ms the mean is 5 ms and more 97 times in a hundred, 5 ms + 2 x 40/3 ms and more nine times, and J varies.
    assert!(losses_in_a_queue <= 60, "{losses_in_a_queue} of 200");
    let sent_at = a.now;
    (0..5).for_each(|_| a.ack(sent_at, ms(100) + jitter()));
    assert_eq!(a.auto.status().reason, "a queue stands");
}

#[test]
fn after_a_cut_a_round_carries_three_packets_more_or_6_ms_of_g_and_a_quarter_of_it_at_most() {
    // Three packets in half a second are 48 kbit/s, as 6 ms are of 4 Mbit/s.
    for (start, steps) in [(100.0, [21.25, 26.5625]), (1_000.0, [48.0, 48.0]), (10_000.0, [102.0, 103.224])] {
        let env = Env { start_rate: Some(Rate::kbps(start)), ..paper() };
        let mut a = Alone { auto: made_as("auto", &[], &env), ..Alone::new(&[]) };
        a.auto.start(Instant::ZERO, Some(RTT));
        a.ack(a.now, ms(0));
        (0..5).for_each(|_| a.ack(a.now, ms(20)));
        assert_eq!((a.g_kbps(), a.auto.phase()), (0.85 * start, Phase::Free));
        for step in steps {
            let last = a.g_kbps();
            a.now += ms(1);
            a.round((last / 16.0) as u64, 0, ms(0));
            assert!((a.g_kbps() - last - step).abs() < 1e-6, "{last} + {}, not {step}", a.g_kbps() - last);
            assert_eq!((a.auto.phase(), a.auto.status().reason), (Phase::Free, "no queue"));
        }
    }
}

#[test]
fn packets_that_left_before_a_cut_and_come_at_once_say_nothing_of_the_rate_after_it() {
    let mut a = Alone::after_a_queue();
    let (g, cut) = (a.g_kbps(), a.now);
    a.now += RTT;
    (0..50).for_each(|_| a.ack(cut - ms(1), ms(100)));
    a.lose(cut - ms(1));
    assert_eq!(a.g_kbps(), g);
    (0..5).for_each(|_| a.ack(a.now, ms(100)));
    assert!(a.g_kbps() < g);
}

/// After a cut, packets that left before it come in reports: so many, so long after the report before, each of which waited so long.
fn stale(reports: &[(u64, u64, u64)]) -> (f64, Alone) {
    let mut a = Alone::after_a_queue();
    let (g, cut) = (a.g_kbps(), a.now);
    for (packets, after, waiting) in reports {
        a.now += ms(*after);
        (0..*packets).for_each(|_| a.ack(cut - ms(1), ms(*waiting)));
    }
    (g, a)
}

fn close(a: &Alone, kbps: f64) {
    assert!((a.g_kbps() - kbps).abs() < 1e-9, "{} kbit/s, not {kbps}", a.g_kbps());
}

#[test]
fn a_queue_that_stays_until_a_cut_can_show_leaves_0_85_of_what_the_path_delivers_meanwhile() {
    // A packet each 40 ms is 200 kbit/s. After the first, eight take 320 ms, and the next ends the measurement.
    let (g, a) = stale(&[(1, 40, 100); 9]);
    assert_eq!(a.g_kbps(), g, "not over yet");
    let (_, a) = stale(&[(1, 40, 100); 10]);
    close(&a, 0.85 * 200.0);
    assert_eq!((a.auto.status().reason, a.auto.phase()), ("a queue stays", Phase::Free));
    // Several do not multiply, each is of its own packets, and G does not grow by one.
    let (_, a) = stale(&[(1, 40, 100); 40]);
    close(&a, 0.85 * 200.0);
    let slower = [[(1, 40, 100); 9].as_slice(), &[(1, 50, 100); 7]].concat();
    close(&stale(&slower).1, 0.85 * 160.0);
    close(&stale(&[slower.as_slice(), &[(1, 20, 100); 40]].concat()).1, 0.85 * 160.0);
    // Packets that left after the cut count as before: five of them find the queue.
    let (_, mut a) = stale(&[(1, 40, 100); 10]);
    let before = a.g_kbps();
    (0..5).for_each(|_| a.ack(a.now, ms(100)));
    assert!(a.g_kbps() < before && a.auto.status().reason == "a queue stands", "{}", a.auto.status().reason);
}

#[test]
fn what_comes_while_a_cut_cannot_show_is_measured_from_report_to_report() {
    // 30 packets each 400 ms are 600 kbit/s, above G; 6 are 120, wherever in a report the cut was.
    for first in [1, 5, 29] {
        let (g, a) = stale(&[(first, 0, 100), (30, 400, 100), (30, 400, 100), (1, 400, 100)]);
        assert_eq!(a.g_kbps(), g);
        let (_, a) = stale(&[(first, 0, 100), (6, 400, 100), (1, 400, 100)]);
        close(&a, 0.85 * 120.0);
    }
    // Three packets are no measurement: it goes on to the report that has the fourth.
    let (g, a) = stale(&[(1, 0, 100), (3, 350, 100), (3, 100, 100)]);
    assert_eq!(a.g_kbps(), g);
    close(&stale(&[(1, 0, 100), (3, 350, 100), (3, 100, 100), (1, 40, 100)]).1, 0.85 * 6.0 * 8.0 / 0.45);
    // One packet that found no queue begins it anew.
    let ninth_is_empty: Vec<_> = (0..40).map(|n| (1, 40, if n % 9 == 8 { 0 } else { 100 })).collect();
    let (g, a) = stale(&ninth_is_empty);
    assert_eq!(a.g_kbps(), g);
    // X is the least.
    let (_, a) = stale(&[(1, 400, 100); 12]);
    assert_eq!((a.auto.g(), a.auto.phase()), (a.auto.x(), Phase::Fair));
}

#[test]
fn a_change_of_x_alone_has_reasons_of_its_own() {
    let mut free = Alone::after_a_queue().auto.free;
    let (g, of) = (free.rate(), |free: &Free| (free.phase(), free.reason(), free.rate()));
    free.raise_to(2.0 * g);
    assert_eq!(of(&free), (Phase::Fair, "X has risen", 2.0 * g));
    free.raise_to(3.0 * g);
    assert_eq!(of(&free), (Phase::Fair, "X has risen", 3.0 * g));
    free.raise_to(g);
    assert_eq!(of(&free), (Phase::Free, "X has fallen", 3.0 * g));
    free.raise_to(0.0);
    assert_eq!(of(&free), (Phase::Free, "X has fallen", 3.0 * g));
}

#[test]
fn where_more_than_a_tenth_is_lost_the_path_is_taken_for_full() {
    let mut a = Alone::new(&[]);
    a.round(25, 2, ms(0));
    assert_eq!(a.g_kbps(), 600.0);
    // 5 of 45 are more than a tenth: 0.85 of 40 packets in half a second.
    a.round(40, 5, ms(0));
    assert!((a.g_kbps() - 0.85 * 600.0).abs() < 1e-9, "{}", a.auto.g());
    assert_eq!(a.auto.status().reason, "much is lost");
    let mut patient = Alone::new(&[("most_loss", "0.2")]);
    patient.round(25, 0, ms(0));
    patient.round(40, 5, ms(0));
    assert_eq!(patient.g_kbps(), 1_200.0);
}

#[test]
fn silence_halves_it_each_time_the_no_feedback_timer_expires() {
    let mut a = Alone::new(&[]);
    for kbps in [150.0, 75.0] {
        let sent = Sent { kind: Kind::Data, class: fairpace_units::Class::Normal, seq: a.seq, size: SIZE };
        a.auto.on_sent(a.now, &sent);
        a.now = a.auto.poll_timer();
        a.auto.on_timer(a.now, &a.rtt);
        assert_eq!(a.g_kbps(), kbps);
        assert_eq!(a.auto.status().reason, "no feedback");
    }
}

/// Data per second in the last ten seconds of forty, kbit/s, over a path of no queue that loses `p`.
fn over_random_loss(scheme: &str, p: f64) -> (f64, Path) {
    let env = Env { max_rate: Rate::mbps(2.0), safety: crate::Safety::Default, ..paper() };
    let mut path = Path::new(made(scheme, &[], &env), &env, ms(250));
    let mut random = RandomStream::named(1, "auto");
    path.run(crate::testing::at(40.0), |_: Packet| random.uniform() >= p);
    let late = path.sent.iter().filter(|p| p.at >= crate::testing::at(30.0)).count();
    (late as f64 * 8.0 / 10.0, path)
}

#[test]
fn random_loss_does_not_bring_it_to_tcps_rate_and_the_breaker_bounds_it() {
    let ((auto, path), (tfrc, _)) = (over_random_loss("auto", 0.02), over_random_loss("tfrc", 0.02));
    assert!(auto > 3.0 * tfrc && auto < 8.0 * tfrc, "auto {auto:.0}, tfrc {tfrc:.0} kbit/s");
    let states: Vec<_> = path.trace.iter().map(|(.., state)| *state).collect();
    assert!(states.contains(&"Free") && !states.contains(&"Fair"), "{states:?}");
}
