//! TFRC's loss history against a second implementation, written from the text of RFC 5348 §5 and
//! RFC 4828 §4.4 and nothing else: it keeps every arrival, and computes everything anew from all of
//! them, in the RFC's own arrays. p must agree to 1e-12 on 100,000 random sequences of arrivals with
//! bursts of loss, reordering, duplicates, marks, RTTs that vary, and numbers that wrap.
//!
//! `PROPTEST_CASES=n` runs ten times n sequences instead.

use fairpace_control::tfrc::history::{Arrivals, Discounting, Heard, HistoryParams};
use fairpace_control::tfrc::receiver::{RatedArrival, ReceiverParams, TfrcReceiver};
use fairpace_control::{RateHeader, RateReport};
use fairpace_units::{Bytes, Duration, Ecn, Instant, RandomStream, Seq16, Unwrapper16};

// --- the second implementation -----------------------------------------------------------------------

/// One packet as it arrived.
#[derive(Clone, Copy, Debug)]
struct Packet {
    seq: u16,
    /// Nanoseconds.
    at: i128,
    rtt: i128,
    marked: bool,
}

/// A lost or marked packet: place after the first packet to arrive, time, RTT.
type Congested = (i32, i128, i128);

#[derive(Clone, Copy)]
struct Rules {
    discounting: bool,
    short_packets: bool,
}

/// Places in the sequence space, from the first packet to arrive.
fn place(first: u16, seq: u16) -> i32 {
    i32::from(seq.wrapping_sub(first) as i16)
}

/// Dist(S_A, S_B) = (S_A + S_MAX - S_B) % S_MAX [RFC 5348 §5.2].
fn dist(a: u16, b: u16) -> i128 {
    (i128::from(a) + 65_536 - i128::from(b)) % 65_536
}

/// The record: the first copy of each packet, from the first to arrive on.
fn record(arrived: &[Packet]) -> Vec<Packet> {
    let mut kept: Vec<Packet> = Vec::new();
    for p in arrived {
        if place(arrived[0].seq, p.seq) >= 0 && kept.iter().all(|k| k.seq != p.seq) {
            kept.push(*p);
        }
    }
    kept
}

/// Lost and marked packets in the order of their numbers [RFC 5348 §5.1, §5.2].
fn congested(record: &[Packet]) -> Vec<Congested> {
    let first = record[0].seq;
    let highest = record.iter().map(|p| place(first, p.seq)).max().unwrap_or(0);
    let mut all = Vec::new();
    for s in 0..=highest {
        let seq = first.wrapping_add(s as u16);
        match record.iter().find(|p| p.seq == seq) {
            Some(p) if p.marked => all.push((s, p.at, p.rtt)),
            Some(_) => {}
            None => {
                let above = || record.iter().filter(|p| place(first, p.seq) > s);
                // NDUPACK = 3 above it, or a mark above it: "possibly lost" is enough then.
                if above().count() < 3 && !above().any(|p| p.marked) {
                    continue;
                }
                // S_after is the first to arrive with a number above; S_before the last before that.
                let i = record.iter().position(|p| place(first, p.seq) > s).expect("the highest");
                let (before, after) = (record[i - 1], record[i]);
                let t_loss = before.at + (after.at - before.at) * dist(seq, before.seq) / dist(after.seq, before.seq);
                all.push((s, t_loss, after.rtt));
            }
        }
    }
    all
}

/// Loss events: their first packets, and how many packets each lost [RFC 5348 §5.2].
fn events(congested: &[Congested]) -> Vec<(Congested, u32)> {
    let mut events: Vec<(Congested, u32)> = Vec::new();
    for &new in congested {
        match events.last_mut() {
            Some(((_, t_old, r), lost)) if *t_old + *r >= new.1 => *lost += 1,
            _ => events.push((new, 1)),
        }
    }
    events
}

const N: usize = 8;

fn weight(i: usize) -> f64 {
    if i < N / 2 { 1.0 } else { 2.0 * (N - i) as f64 / (N + 2) as f64 }
}

/// DF, when the open interval is `i_0` [RFC 5348 §5.5]. Intervals are numbered from 1.
fn discount(i: &[f64], df: &[f64], i_0: f64) -> f64 {
    let k = i.len() - 1;
    let (mut i_tot, mut w_tot) = (0.0, 0.0);
    for j in 1..=k.min(N) {
        w_tot += weight(j - 1) * df[j];
        i_tot += i[j] * weight(j - 1) * df[j];
    }
    let i_mean = i_tot / w_tot;
    if k > 0 && i_0 > 2.0 * i_mean { (2.0 * i_mean / i_0).max(0.25) } else { 1.0 }
}

/// p, from everything that has arrived.
fn loss_event_rate(arrived: &[Packet], first_interval: f64, rules: Rules) -> (f64, usize) {
    let record = record(arrived);
    let events = events(&congested(&record));
    if events.is_empty() {
        return (0.0, 0);
    }
    // I_0 stands at index 0 and is filled in below; the first interval is the one before the first event.
    let mut i = vec![0.0, first_interval];
    let mut df = vec![1.0, 1.0];
    for pair in events.windows(2) {
        let (((s_a, t_a, r), lost), ((s_b, t_b, _), _)) = (pair[0], pair[1]);
        let n = f64::from(s_b - s_a);
        let short = rules.short_packets && t_b - t_a <= 2 * r;
        let mut general = 1.0;
        if rules.discounting && !short {
            // "updated on every packet arrival": the last before the event counts.
            for i_0 in 1..=(s_b - s_a) {
                general = discount(&i, &df, f64::from(i_0));
            }
        }
        for d in &mut df[1..] {
            *d *= general;
        }
        i.insert(1, if short { n / f64::from(lost) } else { n });
        df.insert(1, 1.0);
    }
    let ((s_a, t_a, r), _) = events[events.len() - 1];
    let s_c = record.iter().map(|p| place(record[0].seq, p.seq)).max().unwrap_or(0);
    let latest = record.iter().map(|p| p.at).max().unwrap_or(0);
    i[0] = f64::from(s_c - s_a + 1);
    let k = (i.len() - 1).min(N);
    let mut general = 1.0;
    if rules.discounting {
        for i_0 in 1..=(s_c - s_a + 1) {
            general = discount(&i, &df, f64::from(i_0));
        }
    }
    let (mut i_tot0, mut w_tot0) = (i[0] * weight(0), weight(0));
    for j in 1..k {
        i_tot0 += i[j] * weight(j) * df[j] * general;
        w_tot0 += weight(j) * df[j] * general;
    }
    let (mut i_tot1, mut w_tot1) = (0.0, 0.0);
    for j in 1..=k {
        i_tot1 += i[j] * weight(j - 1) * df[j];
        w_tot1 += weight(j - 1) * df[j];
    }
    let young = rules.short_packets && latest - t_a <= 2 * r;
    let p = if young { w_tot1 / i_tot1 } else { f64::min(w_tot0 / i_tot0, w_tot1 / i_tot1) };
    (p, events.len())
}

// --- random paths ----------------------------------------------------------------------------------------

/// Packets in the order of arrival: sent up to 10 ms apart with pauses, lost in bursts, up to 60 ms late,
/// sometimes twice, sometimes marked, with an RTT of 20 ms to 400 ms.
fn sequence(random: &mut RandomStream) -> Vec<Packet> {
    let longest = if random.below(20) == 0 { 190 } else { 60 };
    let length = 10 + random.below(longest);
    let start = if random.below(2) == 0 { 65_535 - random.below(60) } else { random.below(65_536) } as u16;
    let (loss, burst) = ([0, 2, 10, 30][random.below(4) as usize], [0, 50, 80][random.below(3) as usize]);
    let (late, twice) = ([0, 10, 40][random.below(3) as usize], [0, 5, 30][random.below(3) as usize]);
    let marks = [0, 3, 20][random.below(3) as usize];
    let (mut now, mut rtt, mut bad) = (1_000_000_000_i128, 20 + random.below(380), false);
    let mut packets = Vec::new();
    for i in 0..length {
        // Often the same nanosecond, or whole milliseconds: ties are where mistakes show.
        // No pause while packets are being lost: a hole of more than 32 RTTs is not followed event by event.
        let pause = if !bad && random.below(50) == 0 { 300 } else { random.below(11) };
        now += i128::from(pause * 1_000_000 + if random.below(3) == 0 { random.below(1_000_000) } else { 0 });
        if random.below(10) == 0 {
            rtt = (rtt + random.below(80)).saturating_sub(40).clamp(20, 400);
        }
        bad = random.below(100) < if bad { burst } else { loss };
        let copies = if bad { 0 } else { 1 + u64::from(random.below(100) < twice) };
        for _ in 0..copies {
            let delay = if random.below(100) < late { random.below(61) } else { 0 };
            packets.push(Packet {
                seq: start.wrapping_add(i as u16),
                at: now + i128::from(delay) * 1_000_000,
                rtt: i128::from(rtt) * 1_000_000,
                marked: random.below(100) < marks,
            });
        }
    }
    packets.sort_by_key(|p| p.at);
    packets
}

/// Ours, fed the same way a receiver of 16-bit numbers feeds it.
struct Ours {
    unwrapper: Unwrapper16,
    arrivals: Arrivals,
    first_interval: f64,
}

impl Ours {
    fn new(rules: Rules, first_interval: f64) -> Ours {
        let params = HistoryParams {
            discounting: if rules.discounting { Discounting::ToQuarter } else { Discounting::Off },
            short_packets: rules.short_packets,
        };
        Ours { unwrapper: Unwrapper16::default(), arrivals: Arrivals::new(&params), first_interval }
    }

    fn on_packet(&mut self, p: &Packet) {
        let seq = self.unwrapper.unwrap(Seq16(p.seq));
        let empty = self.arrivals.events().is_empty();
        let heard = self.arrivals.on_packet(seq, instant(p.at), duration(p.rtt), p.marked);
        if empty && heard == Heard::LossEvent {
            self.arrivals.set_first_interval(self.first_interval);
        }
    }
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).expect("in range"))
}

fn duration(nanos: i128) -> Duration {
    instant(nanos).since(Instant::ZERO)
}

/// Runs one sequence and compares after each `every`th packet and at the end; returns whether there was
/// a loss event.
fn compare(seed: u64, every: usize) -> bool {
    let mut random = RandomStream::named(seed, "tfrc oracle");
    let rules = Rules { discounting: random.below(2) == 0, short_packets: random.below(3) == 0 };
    let first_interval = 1.0 + random.uniform() * 50.0;
    let packets = sequence(&mut random);
    let mut ours = Ours::new(rules, first_interval);
    let mut any = false;
    for n in 1..=packets.len() {
        ours.on_packet(&packets[n - 1]);
        if n % every != 0 && n != packets.len() {
            continue;
        }
        let (p, events) = loss_event_rate(&packets[..n], first_interval, rules);
        let history = ours.arrivals.events();
        let agree = (history.loss_event_rate() - p).abs() <= 1e-12 && history.events() == events as u64;
        assert!(
            agree,
            "sequence {seed}, after {n} packets: ours p = {}, {} events; the other p = {p}, {events} events\n{:#?}",
            history.loss_event_rate(),
            history.events(),
            &packets[..n]
        );
        any |= events > 0;
    }
    any
}

fn cases() -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse::<u64>().ok()).map_or(100_000, |n| n * 10)
}

#[test]
//= 5348-5.1-2
//= 5348-5.2-1
//= 5348-5.4-3
//= 5348-5.5-2
//= 4828-4.4-1
fn p_agrees_with_a_second_implementation_on_random_sequences() {
    let with_loss = (0..cases()).filter(|seed| compare(*seed, 25)).count() as u64;
    // Most sequences must be of use.
    assert!(with_loss > cases() / 2, "{with_loss} of {} had a loss event", cases());
}

#[test]
fn p_agrees_with_a_second_implementation_after_every_packet() {
    let with_loss = (0..cases() / 50).filter(|seed| compare(1 << 32 | *seed, 1)).count() as u64;
    assert!(with_loss > cases() / 100);
}

/// The reports of a whole receiver, when the numbers begin at `start`.
fn reports(seed: u64, start: u16) -> Vec<(Instant, RateReport)> {
    let mut random = RandomStream::named(seed, "tfrc wrap");
    let (mut unwrapper, mut receiver) = (Unwrapper16::default(), TfrcReceiver::new(ReceiverParams::default()));
    let mut packets = Vec::new();
    let mut now = 1_000_000;
    for i in 0..2_000_u16 {
        now += random.below(8_000_000);
        if random.below(50) != 0 {
            let late = if random.below(20) == 0 { random.below(50_000_000) } else { 0 };
            packets.push((now + late, i));
        }
    }
    packets.sort_unstable();
    let mut reports = Vec::new();
    for (at, i) in packets {
        let at = Instant::from_nanos(at);
        while receiver.next() <= at {
            let now = receiver.next();
            reports.extend(receiver.poll(now).map(|r| (now, r)));
        }
        let header = RateHeader { sent_at: at - Duration::from_millis(30), rtt: Some(Duration::from_millis(80)) };
        let seq = unwrapper.unwrap(Seq16(start.wrapping_add(i)));
        let ecn = if i % 333 == 0 { Ecn::Ce } else { Ecn::Ect0 };
        receiver.on_packet(at, &RatedArrival { seq, size: Bytes::new(1_000), header, ecn });
        reports.extend(receiver.poll(at).map(|r| (at, r)));
    }
    reports
}

#[test]
//= 5348-5.2-2
fn where_the_numbers_begin_changes_no_report() {
    for seed in 0..20 {
        let from_zero = reports(seed, 0);
        assert!(from_zero.len() > 50);
        for start in [1, 32_000, 65_036, 65_535] {
            assert_eq!(reports(seed, start), from_zero, "from {start}");
        }
    }
}
