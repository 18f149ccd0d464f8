//! A satellite terminal with QSD, driven by hand: bytes of IP packets in, capacity requests and bytes out.
//!
//! `cargo run -p fairpace-net --example terminal` prints the first seconds of a stream over an idle satellite with the paper's large frame.
//! A real terminal has to bring along a clock, the uplink queue, and the messages to and from its NCC. The guide, from the frame's
//! layout to T_q: `docs/links/terminal.md`.

use fairpace_path::DamaSpec;
use fairpace_path::quick_start::{Agent, Observation, Terminal, TerminalSpec};
use fairpace_rtp::quick_start as wire;
use fairpace_units::{Bytes, Duration, Instant, QsFunction, QsNonce, QsOption, QsRate, Rate};
use std::collections::VecDeque;

/// An IP packet in the terminal, and when it may join the uplink queue.
struct Packet {
    bytes: Vec<u8>,
    not_before: Instant,
}

/// A packet of the stream; the first one asks for 320 kbit/s.
fn packet(first: bool) -> Vec<u8> {
    let rate = QsRate::at_least(Rate::kbps(320.0)).expect("a rate of the option");
    let nonce = QsNonce::new(0x1234_5678);
    let option = QsOption { function: QsFunction::Request, rate, qs_ttl: 91, ip_ttl: 64, nonce };
    let options = if first { wire::ipv4_option(&option).to_vec() } else { Vec::new() };
    let words = 5 + options.len() as u8 / 4;
    // Version and length, TTL 64, UDP, and the addresses; length and checksum are none of the agent's business.
    let mut bytes = vec![0x40 | words, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend(options);
    bytes.resize(1_316, 0);
    bytes
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The frame's layout gives the rest.
    let satellite = DamaSpec::large();
    let hold = satellite.t_q_opt();
    let satellite = satellite.with_agent(Agent::Qsd { hold });
    let (t_r, t_a) = (satellite.super_frame(), satellite.allocation_delay());
    println!(
        "T_r {} ms, T_a {} ms, RTT_m {} ms: T_q {} ms",
        t_r.as_millis(),
        t_a.as_millis(),
        satellite.mean_rtt().as_millis(),
        hold.as_millis()
    );

    let mut terminal = Terminal::new(TerminalSpec::from(&satellite), 1, "terminal")?;
    // Five terminals with a unit each: what the TBTP in force says.
    let assigned = satellite.granularity * f64::from(satellite.terminals);
    let (free_assigned, sent) = (Rate::ZERO, Rate::ZERO);
    terminal.on_tbtp(Observation { capacity: satellite.capacity, assigned, free_assigned, sent });

    // 256 kbit/s from 0.2 s on, but no more than a sender may send before its answer: a packet in 0.8 s.
    let (mut held, mut queued): (Vec<Packet>, VecDeque<Packet>) = (Vec::new(), VecDeque::new());
    let mut first = true;
    let mut next_packet = Instant::from_secs_f64(0.2);
    for super_frame in 1..=5 {
        let boundary = Instant::ZERO + t_r * super_frame;
        while next_packet < boundary {
            let now = next_packet;
            let (mut bytes, size) = (packet(std::mem::take(&mut first)), Bytes::new(1_316));
            // The agent sees the option, and changes it in the packet.
            let decision = wire::forward(&mut bytes, |source, option| terminal.on_option(now, size, source, option))?;
            let not_before = match decision {
                Some(decision) => {
                    println!(
                        "{:6.3} s  {:?}, held until {:.3} s",
                        now.as_secs_f64(),
                        decision.verdict,
                        decision.hold_until.as_secs_f64()
                    );
                    decision.hold_until
                }
                None => {
                    terminal.on_packet(size);
                    now
                }
            };
            held.push(Packet { bytes, not_before });
            next_packet += Duration::from_millis(800);
        }
        // Packets that may go, in order of their times.
        held.sort_by_key(|packet| packet.not_before);
        while held.first().is_some_and(|packet| packet.not_before <= boundary) {
            queued.push_back(held.remove(0));
        }
        let waiting = Bytes::new(queued.iter().map(|packet| packet.bytes.len() as u64).sum());
        let asked = terminal.request(t_r, waiting, Rate::ZERO);
        let answer = boundary + t_a;
        println!(
            "{:6.3} s  asks for {:.0} kbit/s (traffic {:.0}, approved {:.0}); answered at {:.3} s",
            boundary.as_secs_f64(),
            asked.rate.as_bps() / 1e3,
            asked.traffic.as_bps() / 1e3,
            asked.quick_start.as_bps() / 1e3,
            answer.as_secs_f64()
        );
    }
    Ok(())
}
