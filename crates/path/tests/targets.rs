//! Recorded capacity from files, and what a router and a terminal's agent make of requests, under fuzzing.

use fairpace_fuzz::{Script, Target};
use fairpace_path::quick_start::{
    Agent, AgentSpec, Channel, Estimator, Fade, Free, LoadWindow, Observation, QsAgent, QsRouter, RouterParams,
    Statistic, pass_unaware,
};
use fairpace_path::{Gaps, Link, LinkSpec, Plain, RateModel, Trace};
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, RandomStream, Rate};
use std::sync::Arc;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A link follows the trace for ten packets.
fn follow(trace: Trace) {
    let (length, mean) = (trace.duration(), trace.mean_rate());
    assert!(!length.is_zero() && mean > Rate::ZERO, "{length:?} at {mean}");
    let spec = LinkSpec { rate: RateModel::Trace(Arc::new(trace)), ..LinkSpec::default() };
    let mut link = Link::new(&spec, 1, "link").expect("a link");
    let mut now = Instant::ZERO;
    for _ in 0..10 {
        link.push(now, Plain::new(Bytes::new(1_000)));
        let next = link.next();
        if next == Instant::NEVER {
            break;
        }
        now = now.max(next);
        link.pop(now);
    }
}

#[test]
fn any_mahimahi_trace_is_followed_or_refused() {
    let seeds = ["1\n2\n2\n5\n", "0\n0\n30\n", "5\r\n5\r\n10\r\n", "\u{feff}7\n", "4294967295\n"];
    let target = Target::new("mahimahi", HERE).seeds(seeds.map(|s| s.as_bytes().to_vec())).text().memory(1 << 20);
    target.cases(60_000).run(|bytes| {
        if let Ok(trace) = Trace::parse_mahimahi(&String::from_utf8_lossy(bytes)) {
            follow(trace);
        }
    });
}

#[test]
fn any_table_of_rates_is_followed_or_refused() {
    let seeds = [
        "time,rate\n0,1\n1,2\n2,0\n10,5\n",
        "t_ms,up_kbps,rate\n0,1,3\n# a comment\n100,2,4\n300,5,6\n",
        "0, 1\n0.5, 2\n0.5, 3\n1e3, 1e9\n",
        "t,rate_bps\n1,1000\n2,0\n",
    ];
    let target = Target::new("csv", HERE).seeds(seeds.map(|s| s.as_bytes().to_vec())).text().memory(1 << 20);
    target.words([",", "rate", "_ms", "#", "e-308", "1e15"]).cases(60_000).run(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        for column in ["rate", "1", "up_kbps", "rate_bps"] {
            for gaps in [Gaps::Hold, Gaps::Zero, Gaps::Cut] {
                if let Ok(trace) = Trace::parse_csv(&text, column, gaps) {
                    follow(trace);
                }
            }
        }
    });
}

/// A rate of any size, mostly a usual one.
fn rate(script: &mut Script<'_>) -> Rate {
    let kbps = script.number(2) as f64;
    Rate::kbps(match kbps as u64 % 16 {
        0 => 0.0,
        1 => kbps * 1e9,
        _ => kbps,
    })
}

fn option(script: &mut Script<'_>) -> QsOption {
    let first = script.byte();
    QsOption {
        function: if first & 0x10 == 0 { QsFunction::Request } else { QsFunction::Report },
        rate: QsRate::from_code(first & 0xf).expect("four bits"),
        qs_ttl: script.byte(),
        ip_ttl: script.byte(),
        nonce: QsNonce::new(script.number(4) as u32),
    }
}

/// Observations and requests of terminals and hosts, eight bytes each.
fn scripts() -> impl Iterator<Item = Vec<u8>> {
    (0..8_u64).map(|seed| {
        let mut random = RandomStream::named(seed, "quick start");
        let mut script = vec![seed as u8, random.bits() as u8];
        for _ in 0..30 {
            script.extend(random.bits().to_be_bytes());
            script.extend(random.bits().to_be_bytes());
        }
        script
    })
}

#[test]
fn whatever_happens_at_a_router_and_an_agent_no_more_is_approved_than_asked_for_and_than_is_free() {
    Target::new("quick_start", HERE).seeds(scripts()).memory(1 << 20).cases(30_000).run(|bytes| {
        let mut script = Script::new(bytes);
        let kind = script.byte();
        let estimator = match kind % 4 {
            0 => Estimator::Broadcast,
            1 => Estimator::OnDemand,
            2 => Estimator::TbtpSum,
            _ => {
                let fade = Fade { clear: Duration::from_secs(3), length: Duration::from_millis(500), heard: 0.2 };
                Estimator::Listening { inaccuracy: 0.3, fade: Some(fade), spots: 3 }
            }
        };
        let statistic = if kind & 4 == 0 { Statistic::Average } else { Statistic::Peak };
        let load = LoadWindow { statistic, observations: 1 + usize::from(kind >> 5) };
        let agent = [Agent::Off, Agent::Qs, Agent::Qsd { hold: Duration::from_millis(kind.into()) }];
        let agent = agent[usize::from(script.byte()) % 3];
        let router = RouterParams { load, ..RouterParams::default() };
        let spec = AgentSpec { agent, router, estimator };
        let mut agent = QsAgent::new(&spec, Duration::from_millis(777), 1, "terminal").expect("an agent");
        let mut other = QsRouter::new(&router, RandomStream::named(1, "router")).expect("a router");
        let mut channel = Channel::new(load);
        let (mut now, memory) = (Instant::ZERO, other.memory());
        while !script.is_over() {
            let what = script.byte();
            now += Duration::from_millis(script.byte().into());
            match what % 4 {
                0 => channel.observe(Observation {
                    capacity: rate(&mut script),
                    assigned: rate(&mut script),
                    free_assigned: rate(&mut script),
                    sent: rate(&mut script),
                }),
                1 => {
                    let free = Free { capacity: rate(&mut script), used: rate(&mut script) };
                    let asked = option(&mut script);
                    let (mut answer, source) = (asked, script.number(1));
                    let verdict = other.on_request(now, source, &mut answer, || free);
                    if let Some(approved) = verdict.approved() {
                        assert!(approved <= asked.rate && approved.rate() <= free.capacity, "{verdict:?}");
                    }
                    assert!(answer.rate <= asked.rate);
                    assert!(other.recent_approvals(now) <= Rate::mbps(1_310.72) * 256.0);
                }
                2 => {
                    let asked = option(&mut script);
                    let mut answer = asked;
                    let decision = agent.on_request(now, &mut answer, script.number(1), &channel);
                    assert!(answer.rate <= asked.rate && decision.hold_until >= now);
                    assert!(decision.add_to_request <= asked.rate.rate());
                }
                _ => pass_unaware(&mut option(&mut script)),
            }
            assert!(other.memory() <= memory.max(64 << 10), "{} B", other.memory());
        }
    });
}
