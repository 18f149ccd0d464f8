//! The gain of a lying receiver: the tables of `docs/sim/liars.md`, and the bound that holds. `FAIRPACE_BLESS=1 cargo
//! test -p fairpace-sim --test liars` writes the tables anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use fairpace_control::{Env, FlowParams, QuickStartParams};
use fairpace_path::quick_start::RouterParams;
use fairpace_path::{Capacity, DelayModel, LinkSpec, LossModel, QueueModel, RateModel};
use fairpace_sim::tcp::{TcpParams, TcpSource};
use fairpace_sim::{
    ConstantConfig, ControllerSpec, FlowConfig, FlowReport, HopConfig, MediaConfig, Protocol, ReceiverBehaviour,
    SimConfig, Source, TcpHalf, run,
};
use fairpace_units::{Bytes, Class, Duration, Instant, Packets, Probability, QsRate, Rate};

const SEEDS: u64 = 5;

/// No liar may gain more than a fifth.
const MOST_GAIN: f64 = 1.2;

const LIES: [(&str, ReceiverBehaviour); 9] = [
    ("hides half of the losses (T3)", ReceiverBehaviour::HideLosses { share: 0.5 }),
    ("hides all losses (T3)", ReceiverBehaviour::HideLosses { share: 1.0 }),
    ("acknowledges early: RTT / 1.5 (T1)", ReceiverBehaviour::EarlyAcks { factor: 1.5 }),
    ("acknowledges early: RTT / 10 (T1)", ReceiverBehaviour::EarlyAcks { factor: 10.0 }),
    ("acknowledges what was never sent (T1)", ReceiverBehaviour::Invented),
    ("claims a delay of RTT / 3 (T5)", ReceiverBehaviour::LieDelay { share: 0.33 }),
    ("claims a delay of 0.9 RTT (T5)", ReceiverBehaviour::LieDelay { share: 0.9 }),
    ("sends old feedback again (T6)", ReceiverBehaviour::Replay),
    ("sends all feedback 100 times (T2)", ReceiverBehaviour::Flood),
];

/// The lies in reports.
const REPORTED_LIES: [(&str, ReceiverBehaviour); 11] = [
    ("hides half of the losses (T3)", ReceiverBehaviour::HideLosses { share: 0.5 }),
    ("hides all losses (T3)", ReceiverBehaviour::HideLosses { share: 1.0 }),
    ("says p = 0 (T3)", ReceiverBehaviour::ZeroLossReports),
    ("says twice X_recv (T4)", ReceiverBehaviour::InflateRate { factor: 2.0 }),
    ("says 100 X_recv (T4)", ReceiverBehaviour::InflateRate { factor: 100.0 }),
    ("echoes early: RTT / 1.5 (T1)", ReceiverBehaviour::EarlyAcks { factor: 1.5 }),
    ("echoes what has not left (T1)", ReceiverBehaviour::Invented),
    ("claims a delay of RTT / 3 (T5)", ReceiverBehaviour::LieDelay { share: 0.33 }),
    ("claims a delay of 0.9 RTT (T5)", ReceiverBehaviour::LieDelay { share: 0.9 }),
    ("sends old reports again (T6)", ReceiverBehaviour::Replay),
    ("sends all reports 100 times (T2)", ReceiverBehaviour::Flood),
];

/// The lies in receiver reports, the only feedback there.
const RECEIVER_REPORT_LIES: [(&str, ReceiverBehaviour); 11] = [
    ("hides half of the losses (T3)", ReceiverBehaviour::HideLosses { share: 0.5 }),
    ("hides all losses (T3)", ReceiverBehaviour::HideLosses { share: 1.0 }),
    ("says that nothing was lost (T3)", ReceiverBehaviour::ZeroLossReports),
    ("says twice b (T8)", ReceiverBehaviour::InflateRate { factor: 2.0 }),
    ("says 100 b (T8)", ReceiverBehaviour::InflateRate { factor: 100.0 }),
    ("answers a report early: RTT / 1.5 (T1)", ReceiverBehaviour::EarlyAcks { factor: 1.5 }),
    ("says it got what was never sent (T1)", ReceiverBehaviour::Invented),
    ("claims a DLSR longer by RTT / 3 (T5)", ReceiverBehaviour::LieDelay { share: 0.33 }),
    ("claims a DLSR longer by 0.9 RTT (T5)", ReceiverBehaviour::LieDelay { share: 0.9 }),
    ("sends old reports again (T6)", ReceiverBehaviour::Replay),
    ("sends all reports 100 times (T2)", ReceiverBehaviour::Flood),
];

/// The schemes that go by receiver reports.
const BY_REPORTS: [&str; 3] = ["lda", "ldaf", "tpba"];

/// The schemes whose sender measures.
const SCHEMES: [&str; 9] = ["auto", "srp", "crp", "mrp", "tfrc", "tfrc-sp", "rcs", "rap", "aimd"];

/// TFRC whose receiver measures.
const COMPATIBLE: &str = "tfrc, receiver measures";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    /// One packet in twenty is damaged.
    Lossy,
    /// Only the queue drops.
    Congested,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Defence {
    /// As on our wire.
    Nonces,
    /// Against receivers that know nothing of nonces: one number in 1,024 is left out.
    Skips,
}

/// One flow and one TCP over 1 Mbit/s, RTT 100 ms and a queue of 25 packets: 200 ms.
fn config(scheme: &str, receiver: ReceiverBehaviour, path: Path, defence: Defence, seed: u64) -> SimConfig {
    let env = Env::default();
    let mut flow = FlowParams::new(&env);
    if defence == Defence::Skips {
        flow.skip = Some((1_024, seed));
    }
    let controller = match scheme {
        COMPATIBLE => ControllerSpec::named("tfrc", env).with("measured_by", "receiver"),
        "lda" | "ldaf" => ControllerSpec::named(scheme, env).with("r_0", "300 kbit/s").with("air_0", "50 kbit/s"),
        scheme => ControllerSpec::named(scheme, env),
    };
    let by_reports = BY_REPORTS.contains(&scheme);
    let media = MediaConfig {
        receiver,
        check_nonces: defence == Defence::Nonces && !by_reports,
        tcp: (scheme == "tpba").then(TcpHalf::default),
        feedback: Some(Duration::from_millis(20)),
        // For the circuit breaker, which has no other news of losses where nothing is acknowledged.
        report_interval: (scheme == COMPATIBLE).then_some(Duration::from_secs(5)),
        ..MediaConfig::new(controller, flow)
    };
    let p = if path == Path::Lossy { 0.05 } else { 0.0 };
    let delay = DelayModel::constant(Duration::from_millis(50));
    let second = Duration::from_secs(1);
    let flow = |name: &str, protocol| FlowConfig { start_spread: second, ..FlowConfig::new(name, protocol) };
    SimConfig {
        seed,
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(10),
        hops: vec![HopConfig::path(
            LinkSpec {
                rate: RateModel::Fixed(Rate::mbps(1.0)),
                delay,
                queue: QueueModel::TwoPriority { capacity: Capacity::Packets(Packets::new(25)) },
                loss: LossModel::Bernoulli(Probability::new(p).expect("below one")),
                ..LinkSpec::default()
            },
            LinkSpec { delay, ..LinkSpec::default() },
        )],

        flows: vec![
            flow("media", Protocol::Media(media)),
            flow("tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp)),
        ],
        ..SimConfig::default()
    }
}

/// Data received from 10 to 60 s in kbit/s, mean over seeds, and how many flows were ended for a lie.
fn received(scheme: &str, receiver: ReceiverBehaviour, path: Path, defence: Defence) -> (f64, u64) {
    let (mut sum, mut ended) = (0.0, 0);
    for seed in 1..=SEEDS {
        let report = run(config(scheme, receiver, path, defence, seed)).expect("valid");
        sum += report.flows[0].throughput().as_bps() / 1e3;
        ended += u64::from(report.flows[0].stopped.is_some());
    }
    (sum / SEEDS as f64, ended)
}

/// A table of the gain over the honest receiver for each lie, and every gain above [`MOST_GAIN`].
fn section(
    schemes: &[&str],
    lies: &[(&str, ReceiverBehaviour)],
    path: Path,
    defence: Defence,
) -> (String, Vec<String>) {
    let honest: Vec<f64> = schemes.iter().map(|s| received(s, ReceiverBehaviour::Honest, path, defence).0).collect();
    let mut table = format!("| the receiver | {} |\n", schemes.join(" | "));
    writeln!(table, "| --- |{}", " --- |".repeat(schemes.len())).expect("to memory");
    let rates: Vec<String> = honest.iter().map(|r| format!("{r:.0} kbit/s")).collect();
    writeln!(table, "| is honest | {} |", rates.join(" | ")).expect("to memory");
    let mut excess = Vec::new();
    for (what, lie) in lies {
        write!(table, "| {what} |").expect("to memory");
        for (scheme, honest) in schemes.iter().zip(&honest) {
            let (got, ended) = received(scheme, *lie, path, defence);
            let gain = got / honest;
            if gain > MOST_GAIN {
                excess.push(format!("{defence:?}, {path:?}: {scheme} {what}: {gain:.2}"));
            }
            let ended = if ended > 0 { format!(" †{ended}") } else { String::new() };
            write!(table, " {gain:.2}{ended} |").expect("to memory");
        }
        table.push('\n');
    }
    (table, excess)
}

/// Answers to one Quick-Start request each, for each height of the lie.
const ANSWERS: u64 = 2_000;

/// Seeds of a flood.
const FLOODS: u64 = 100;

/// A TFRC flow that asks for `kbps` when it begins at 2 s, and what it got 2 s later. The path is that of the
/// other lies with `mbps` and a Quick-Start router; `flood` sources put a request for all there is on each of
/// their 500 packets/s, which take 20 kbit/s each.
fn asking(kbps: f64, mbps: f64, receiver: ReceiverBehaviour, flood: u32, seed: u64) -> FlowReport {
    let env = Env { max_rate: Rate::mbps(10.0), ..Env::default() };
    let quick_start = Some(QuickStartParams::new(Rate::kbps(kbps), seed).expect("a rate of the option"));
    let media = MediaConfig {
        receiver,
        challenge: false,
        source: Source::Greedy,
        ..MediaConfig::new(
            ControllerSpec::named("tfrc", env).with("measured_by", "receiver"),
            FlowParams { quick_start, ..FlowParams::new(&env) },
        )
    };
    let start = Instant::from_secs_f64(2.0);
    let mut flows = vec![FlowConfig {
        start,
        start_spread: Duration::from_millis(500),
        stop: Some(start + Duration::from_secs(2)),
        ..FlowConfig::new("media", Protocol::Media(media))
    }];
    flows.extend((0..flood).map(|i| {
        let rate = Rate::kbps(20.0);
        let flood = ConstantConfig { rate, class: Class::Normal, on_off: None, quick_start: Some(QsRate::MAX) };
        let start_spread = Duration::from_millis(500);
        let packet_size = Bytes::new(5);
        FlowConfig { start_spread, packet_size, ..FlowConfig::new(format!("flood-{i}"), Protocol::Constant(flood)) }
    }));
    let delay = DelayModel::constant(Duration::from_millis(50));
    let queue = QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(25)) };
    let router = Some(RouterParams::default());
    let config = SimConfig {
        seed,
        duration: Duration::from_secs(5),
        hops: vec![HopConfig::path(
            LinkSpec {
                rate: RateModel::Fixed(Rate::mbps(mbps)),
                delay,
                queue,
                quick_start: router,
                ..LinkSpec::default()
            },
            LinkSpec { delay, ..LinkSpec::default() },
        )],

        flows,
        ..SimConfig::default()
    };
    run(config).expect("valid").flows.swap_remove(0)
}

/// Of 8 Mbit/s that are free one source gets a quarter, rounded down: 1,280 kbit/s of the 10,240 that it asks for.
/// Its receiver says more.
fn raised_answers() -> (String, Vec<String>) {
    let mut table =
        "| the receiver | believed | of | 4^-k | data received |\n| --- | --- | --- | --- | --- |\n".to_owned();
    let mut excess = Vec::new();
    let mut honest = 0.0;
    for steps in 0..=3_u8 {
        let lie = if steps == 0 { ReceiverBehaviour::Honest } else { ReceiverBehaviour::RaiseQuickStart { steps } };
        let (mut believed, mut bytes) = (0_u64, 0.0);
        for seed in 1..=ANSWERS {
            let flow = asking(10_240.0, 10.0, lie, 0, seed);
            let counts = flow.media.and_then(|m| m.quick_start).expect("it asks");
            assert_eq!((counts.asked, counts.approved + counts.bad_nonce), (1, 1), "{counts:?}");
            believed += counts.approved;
            bytes += flow.whole.received.bytes.as_f64();
        }
        let what = match steps {
            0 => "is honest".to_owned(),
            1 => "answers with twice the rate".to_owned(),
            k => format!("answers with {} times the rate (k = {k})", 1 << k),
        };
        let p = 0.25_f64.powi(steps.into());
        let deviation = (ANSWERS as f64 * p * (1.0 - p)).sqrt();
        if (believed as f64 - ANSWERS as f64 * p).abs() > 3.0 * deviation {
            excess.push(format!("k = {steps}: {believed} of {ANSWERS} believed"));
        }
        if steps == 0 {
            honest = bytes;
        }
        let gain = bytes / honest;
        if gain > MOST_GAIN {
            excess.push(format!("k = {steps}: {gain:.2}"));
        }
        writeln!(table, "| {what} | {believed} | {ANSWERS} | {:.0} | {gain:.2} |", ANSWERS as f64 * p)
            .expect("to memory");
    }
    (table, excess)
}

/// An honest flow asks for 320 of 10,000 kbit/s beside others that ask for everything 500 times a second.
fn floods() -> (String, Vec<String>) {
    let mut table =
        "| flooding sources | requests/s | approved | data received |\n| --- | --- | --- | --- |\n".to_owned();
    let (mut excess, mut alone) = (Vec::new(), 0.0);
    for flood in [0, 1, 4, 8] {
        let (mut approved, mut bytes) = (0_u64, 0.0);
        for seed in 1..=FLOODS {
            let flow = asking(320.0, 10.0, ReceiverBehaviour::Honest, flood, seed);
            approved += flow.media.and_then(|m| m.quick_start).map_or(0, |counts| counts.approved);
            bytes += flow.whole.received.bytes.as_f64();
        }
        if flood == 0 {
            alone = bytes;
        }
        if approved * 10 < FLOODS * 9 {
            excess.push(format!("beside {flood}: {approved} of {FLOODS} approved"));
        }
        writeln!(table, "| {flood} | {} | {approved} of {FLOODS} | {:.2} |", flood * 500, bytes / alone)
            .expect("to memory");
    }
    (table, excess)
}

/// The page with this part replaced.
fn replaced(page: &str, name: &str, with: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let from = page.find(&begin).expect("the page has the part") + begin.len();
    let to = page.find(&end).expect("the page has its end");
    format!("{}{with}{}", &page[..from], &page[to..])
}

#[test]
fn no_lie_gains_a_fifth_in_the_default_mode_and_the_page_shows_what_each_gains() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/sim/liars.md");
    let page = std::fs::read_to_string(&file).expect("the page is there");
    let (mut new, mut excess) = (page.clone(), Vec::new());
    for (part, path) in [("lossy", Path::Lossy), ("congested", Path::Congested)] {
        // Against lies about time and against repetition there is no other defence without nonces.
        for (name, defence, lies) in [("nonces", Defence::Nonces, &LIES[..]), ("skips", Defence::Skips, &LIES[..5])] {
            let (table, more) = section(&SCHEMES, lies, path, defence);
            new = replaced(&new, &format!("{name}, {part}"), &table);
            excess.extend(more);
        }
        // No bound here: the page says that p is the receiver's word.
        for (name, schemes, lies) in
            [("reports", &[COMPATIBLE][..], REPORTED_LIES), ("receiver reports", &BY_REPORTS, RECEIVER_REPORT_LIES)]
        {
            let (table, more) = section(schemes, &lies, path, Defence::Nonces);
            new = replaced(&new, &format!("{name}, {part}"), &table);
            // No report raises TPBA's rate.
            excess.extend(more.into_iter().filter(|gain| gain.contains(": tpba ")));
        }
    }
    for (name, (table, more)) in [("quick-start, raised", raised_answers()), ("quick-start, flood", floods())] {
        new = replaced(&new, name, &table);
        excess.extend(more);
    }
    assert_eq!(excess, [""; 0]);
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::write(&file, &new).expect("writable");
    } else {
        assert!(new == page, "docs/sim/liars.md differs; FAIRPACE_BLESS=1 writes it anew:\n{new}");
    }
}
