//! When the ends of a path are asked.

use fairpace_scenario::Scenario;
use fairpace_units::{Bytes, Dscp, Duration, Ecn, Instant};
use fairpace_viewer::{About, End, Wire, run};

/// 4 Mbit/s and 200 ms for 20 s, with two TCP flows beside.
const PATH: &str = r#"
title = "t"
duration = "20 s"
[path]
rate = "4 Mbit/s"
rtt = "200 ms"
queue = { kind = "drop-tail", capacity = "100 pkt" }
[[flows]]
name = "video"
controller = "fixed"
[[flows]]
name = "tcp"
count = 2
controller = "tcp-reno"
"#;

/// Asks to be polled each second, and sends a packet then if it is the one that speaks.
#[derive(Default)]
struct Clock {
    speaks: bool,
    next: Instant,
    polls: u32,
    came: u32,
}

impl End<()> for Clock {
    fn on_packet(&mut self, _: Instant, _: &Wire<()>) {
        self.came += 1;
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<Wire<()>>) -> Instant {
        self.polls += 1;
        if self.next <= now {
            self.next = now + Duration::from_secs(1);
            if self.speaks {
                let (size, about) = (Bytes::new(100), About::Control);
                out.push(Wire { size, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, about, body: () });
            }
        }
        self.next
    }
}

#[test]
fn an_end_is_asked_when_it_wanted_to_be_and_when_something_has_come_and_at_no_other_time() {
    let scenario = Scenario::parse(PATH, "path.toml").unwrap();
    let (mut sender, mut receiver) = (Clock { speaks: true, ..Clock::default() }, Clock::default());
    let beside = run(&scenario, 1, &mut sender, &mut receiver).unwrap().beside;
    // Thousands of packets of others pass meanwhile.
    assert!(beside.iter().all(|(_, counts)| counts.sent.packets.get() > 1_000), "{beside:?}");
    // At 0, 1 ... 20 s; of the 21 packets the last is under way at the end.
    assert_eq!((sender.polls, sender.came), (21, 0));
    assert_eq!((receiver.polls, receiver.came), (21 + 20, 20));
}
