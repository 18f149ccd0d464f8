//! The emulator's report about itself: whether the numbers of a run are those of its path, or of this machine.

use crate::Side;
use fairpace_net::LatenessSummary;
use fairpace_path::Count;
use fairpace_units::{Bytes, Duration};

/// The packets that went in and out at one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SideReport {
    /// Packets of the flows that came from this side, each segment for itself.
    pub read: Count,
    /// Super-packets among them.
    pub read_joined: u64,
    /// Packets that came out of the path at this side, each segment for itself.
    pub written: Count,
    /// Super-packets that were written.
    pub written_joined: u64,
    /// Packets between addresses that are no flow's: dropped.
    pub unknown: u64,
    /// Packets to all or to a group (neighbours, routers): dropped.
    pub multicast: u64,
    /// Packets that are not IP, and super-packets whose lengths do not add up: dropped.
    pub malformed: u64,
    /// Packets for which the emulator had no room.
    pub no_room: u64,
    /// Packets that the kernel threw away because the emulator did not read them in time.
    pub kernel_drops: u64,
    /// Packets that came out while this side's device was down: lost, as on a wire that is pulled out.
    pub down: u64,
    /// Packets that the kernel had no memory for (`EAGAIN`, `ENOBUFS`), a second time too.
    pub refused: u64,
    /// Packets that the kernel did not take for another reason, or that had no device to go to.
    pub not_written: u64,
    /// The device was taken away.
    pub gone: bool,
}

/// From when on a run is not to be trusted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// 99 of 100 packets must be written within this of their time, and 99 of 100 looks at a device must come within this
    /// of its being seen empty.
    pub lateness: Duration,
    /// Share of one processor that the loop may take; from there on it is the bottleneck, whatever the path is.
    pub cpu: f64,
}

impl Default for Limits {
    /// 10 ms, as the relay's; 95 %.
    fn default() -> Self {
        Limits { lateness: Duration::from_millis(10), cpu: 0.95 }
    }
}

impl Limits {
    /// For a bottleneck that sends a packet in so much time: two and a half of them late, from 2 to 40 ms. So the limit
    /// is the usual 10 ms where a packet takes 4 ms (1,000 B at 2 Mbit/s).
    ///
    /// A lateness of some packets' time is a burst of so many packets, which a queue of a few does not hold: 16 ms, four
    /// packets, cost a flow over a queue of eight 7.5 % of its rate (`docs/emu/worlds.md`). Below 2 ms no machine without
    /// real-time priority would have a valid run.
    pub fn for_packet_time(time: Duration) -> Limits {
        let lateness = (time * 5 / 2).max(Duration::from_millis(2)).min(Duration::from_millis(40));
        Limits { lateness, ..Limits::default() }
    }
}

/// How a run went, as far as the emulator is concerned.
#[derive(Clone, PartialEq, Debug)]
pub struct EmuReport {
    /// How long it ran.
    pub elapsed: Duration,
    /// How late packets were written: the instant of writing less the instant at which the path let them go.
    /// Never below zero.
    pub lateness: LatenessSummary,
    /// How long packets may have waited for the loop to read them, at most: the time since their device was last seen
    /// empty, not counting sleep. (Their time in the path begins when they are read.)
    pub unread: LatenessSummary,
    /// Processor time of the loop / time it ran.
    pub cpu: f64,
    /// Whether the loop had real-time priority ([`crate::spawn_first`]).
    pub real_time: bool,
    /// The senders' side, then the receivers'.
    pub sides: [SideReport; 2],
    /// Packets still inside the path at the end.
    pub under_way: u64,
    /// Most bytes of packets ever under way.
    pub peak_memory: Bytes,
    /// The packets that each device holds until the loop reads them; more are [`SideReport::kernel_drops`].
    pub device_queue: u32,
    /// Segmentation offload was on.
    pub offload: bool,
    /// Why the numbers are not to be trusted; empty if they are.
    pub invalid: Vec<String>,
}

impl EmuReport {
    /// Whether the emulator kept up.
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty()
    }

    /// The packets that went in and out at that side.
    pub fn side(&self, side: Side) -> &SideReport {
        &self.sides[side as usize]
    }

    /// Packets between addresses that are no flow's, at both sides.
    pub fn unknown(&self) -> u64 {
        self.sides.iter().map(|s| s.unknown).sum()
    }

    /// Fills in [`EmuReport::invalid`].
    pub(crate) fn judge(&mut self, limits: &Limits, memory: Bytes) {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        if self.lateness.p99 > limits.lateness {
            let (p99, limit) = (ms(self.lateness.p99), ms(limits.lateness));
            self.invalid
                .push(format!("1 % of the packets left more than {p99:.1} ms late; the limit is {limit:.1} ms"));
        }
        if self.unread.p99 > limits.lateness {
            let (p99, limit) = (ms(self.unread.p99), ms(limits.lateness));
            self.invalid.push(format!("packets may have waited {p99:.1} ms to be read; the limit is {limit:.1} ms"));
        }
        if self.cpu > limits.cpu {
            let (cpu, limit) = (self.cpu * 100.0, limits.cpu * 100.0);
            self.invalid.push(format!("the emulator took {cpu:.0} % of a processor; the limit is {limit:.0} %"));
        }
        for side in Side::BOTH {
            let SideReport { kernel_drops, no_room, refused, gone, .. } = self.sides[side as usize];
            let name = side.name();
            if kernel_drops > 0 {
                let queue = self.device_queue;
                self.invalid.push(format!(
                    "{kernel_drops} packets of the {name} were dropped before the emulator had read them (the device holds {queue})"
                ));
            }
            if no_room > 0 {
                self.invalid.push(format!("{no_room} packets of the {name} did not fit into {memory} of memory"));
            }
            if refused > 0 {
                self.invalid.push(format!("the kernel had no memory for {refused} packets to the {name}"));
            }
            if gone {
                self.invalid.push(format!("the device of the {name} was taken away"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_lateness_goes_with_the_packet_time_at_the_bottleneck() {
        let limit = |us: u64| Limits::for_packet_time(Duration::from_micros(us)).lateness;
        // 1,000 B at 2 Mbit/s: the usual limit. At 10 Mbit/s a fifth of that, but not below 2 ms; at 100 kbit/s not above 40.
        assert_eq!(limit(4_000), Limits::default().lateness);
        assert_eq!([2_000, 800, 80, 80_000].map(limit), [5, 2, 2, 40].map(Duration::from_millis));
    }
}
