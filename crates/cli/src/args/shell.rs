//! The flags of `fairpace shell`.

use super::{count, duration, loss_rate, seed};
use clap::{Args, ValueHint};
use fairpace_path::{Capacity, CoDelParams, FqCoDelParams, PieParams, QueueModel};
use fairpace_units::{Bytes, Duration, Packets, Probability, parse_duration};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a shell or a command behind an emulated link
///
/// The command runs in a network of its own, whose only way out is the link; its other end is a second network
/// of our own, where --serve runs something to talk to. The link is the `[path]` of a scenario, or made from
/// options as mahimahi's shells are: its traces are read as they are. No root is needed where the system gives
/// namespaces and TUN devices to users (`fairpace doctor` says), and the host's network is not touched.
///
/// Inside, $FAIRPACE_FAR and $FAIRPACE_FAR_IPV6 (and $MAHIMAHI_BASE) are the addresses of the far end. A shell in a
/// shell puts one link behind the other. A summary of the link is printed at the end, on stderr.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace shell scenarios/geo.toml --serve 'iperf3 -s' -- sh -c 'iperf3 -c $FAIRPACE_FAR'
  fairpace shell --up TMobile-LTE-driving.up --down TMobile-LTE-driving.down --delay 25ms
  fairpace shell --up 2Mbit/s --down 10Mbit/s --queue droptail:packets=100 -- ping -c 3 10.77.128.1
  fairpace shell --delay 40ms -- fairpace shell --up lte.up -- sh -c 'echo $FAIRPACE_FAR'   one in the other

Exit code: that of CMD; 126 it may not be run, 127 it is not there, 128 + N it was ended by signal N.
Before CMD runs: 2 usage, 3 scenario or trace, 4 privilege, 9 another run in real time is under way.")]
pub(crate) struct Shell {
    /// Scenario file (TOML) whose `[path]` is the link, or a mahimahi trace for both ways
    #[arg(value_name = "LINK.toml|TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) link: Option<PathBuf>,
    /// The command and its arguments; $SHELL if absent
    #[arg(value_name = "CMD", last = true, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// From CMD to the far end: a mahimahi trace, or a rate
    #[arg(long, value_name = "TRACE|RATE", value_hint = ValueHint::FilePath, help_heading = "Link")]
    pub(crate) up: Option<String>,
    /// From the far end to CMD: a mahimahi trace, or a rate
    #[arg(long, value_name = "TRACE|RATE", value_hint = ValueHint::FilePath, help_heading = "Link")]
    pub(crate) down: Option<String>,
    /// Propagation delay, one way; the same on the way back
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true, help_heading = "Link")]
    pub(crate) delay: Option<Duration>,
    /// Part of the packets that is lost, either way
    #[arg(long, value_name = "P", value_parser = loss_rate, allow_hyphen_values = true, help_heading = "Link",
        conflicts_with_all = ["up_loss", "down_loss"])]
    pub(crate) loss: Option<Probability>,
    /// Part of the packets from CMD that is lost
    #[arg(long, value_name = "P", value_parser = loss_rate, allow_hyphen_values = true, help_heading = "Link")]
    pub(crate) up_loss: Option<Probability>,
    /// Part of the packets to CMD that is lost
    #[arg(long, value_name = "P", value_parser = loss_rate, allow_hyphen_values = true, help_heading = "Link")]
    pub(crate) down_loss: Option<Probability>,
    /// Queue before the link, either way: `infinite`, `droptail:packets=100`, `droptail:bytes=150000`,
    /// `codel:packets=1000,target=5,interval=100`, `fq-codel`, `pie:packets=1000,qdelay_ref=15,max_burst=150`
    /// (times in ms); infinite if absent, as mahimahi's
    #[arg(long, value_name = "KIND[:ARGS]", value_parser = queue, help_heading = "Link",
        conflicts_with_all = ["up_queue", "down_queue"])]
    pub(crate) queue: Option<QueueModel>,
    /// Queue before the link from CMD
    #[arg(long, value_name = "KIND[:ARGS]", value_parser = queue, help_heading = "Link")]
    pub(crate) up_queue: Option<QueueModel>,
    /// Queue before the link to CMD
    #[arg(long, value_name = "KIND[:ARGS]", value_parser = queue, help_heading = "Link")]
    pub(crate) down_queue: Option<QueueModel>,
    /// Seed of the link's random numbers; the scenario's, or 1
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true, help_heading = "Link")]
    pub(crate) seed: Option<u64>,
    /// Largest packet, IP header included
    #[arg(long, value_name = "BYTES", value_parser = count::<65_535>, default_value = "1500",
        allow_hyphen_values = true, help_heading = "Link")]
    pub(crate) mtu: u32,
    /// Run this at the far end too, by `sh -c`, until CMD has ended
    #[arg(long, value_name = "CMD")]
    pub(crate) serve: Option<OsString>,
    /// The far end is this machine's own network, which gets one device more (needs CAP_NET_ADMIN)
    #[arg(long, conflicts_with = "serve")]
    pub(crate) on_host: bool,
    /// Write every packet of both ends to this file (pcapng, headers only)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Write what happened on the way from CMD to this file, as mm-link's --uplink-log does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) up_log: Option<PathBuf>,
    /// Write what happened on the way to CMD to this file, as mm-link's --downlink-log does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) down_log: Option<PathBuf>,
    /// Write the report at the end to this file too (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Replace files that exist already
    #[arg(long)]
    pub(crate) force: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Shell {
    /// Whether an option describes the link.
    pub(crate) fn describes_a_link(&self) -> bool {
        self.up.is_some()
            || self.down.is_some()
            || self.delay.is_some()
            || self.loss.or(self.up_loss).or(self.down_loss).is_some()
            || self.queue.or(self.up_queue).or(self.down_queue).is_some()
    }
}

const QUEUES: &str = "there are `infinite`, `droptail`, `codel`, `fq-codel` and `pie`, with arguments behind a colon \
                      as in `droptail:packets=100`";

/// A queue as mahimahi names it, with its arguments behind a colon.
fn queue(text: &str) -> Result<QueueModel, String> {
    let (kind, arguments) = text.split_once(':').unwrap_or((text, ""));
    let mut capacity = Capacity::Unlimited;
    let (mut target, mut interval, mut burst) = (None, None, None);
    for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let wrong = |allowed: &str| format!("`{name}` is `{value}`; {allowed}");
        let whole = || {
            let n = value.trim().parse::<u64>().ok().filter(|n| *n > 0);
            n.ok_or_else(|| wrong("write a whole number above 0"))
        };
        let time = || {
            let bare = value.trim().bytes().all(|b| b.is_ascii_digit());
            let time = parse_duration(&if bare { format!("{value} ms") } else { value.to_owned() });
            time.ok().filter(|t| !t.is_zero()).map(Some).ok_or_else(|| wrong("write milliseconds, as in `target=5`"))
        };
        match (kind, name.trim()) {
            ("droptail" | "codel" | "fq-codel" | "pie", "packets") => {
                capacity = Capacity::Packets(Packets::new(whole()?));
            }
            ("droptail" | "codel" | "fq-codel" | "pie", "bytes") => capacity = Capacity::Bytes(Bytes::new(whole()?)),
            ("codel" | "fq-codel", "target") | ("pie", "qdelay_ref") => target = time()?,
            ("codel" | "fq-codel", "interval") => interval = time()?,
            ("pie", "max_burst") => burst = time()?,
            _ => return Err(format!("`{kind}` has no argument `{name}`; {QUEUES}")),
        }
    }
    let mut codel = CoDelParams::new(capacity);
    codel.target = target.unwrap_or(codel.target);
    codel.interval = interval.unwrap_or(codel.interval);
    Ok(match kind {
        "infinite" => QueueModel::default(),
        "droptail" if capacity == Capacity::Unlimited => {
            return Err("`droptail` needs its room; write `droptail:packets=100` or `droptail:bytes=150000`".to_owned());
        }
        "droptail" => QueueModel::DropTail { capacity },
        "codel" => QueueModel::CoDel(codel),
        "fq-codel" => QueueModel::FqCoDel(FqCoDelParams {
            codel: CoDelParams { ecn: true, ..codel },
            ..FqCoDelParams::new(capacity)
        }),
        "pie" => {
            let mut pie = PieParams::new(capacity, Bytes::new(1_500));
            pie.target = target.unwrap_or(pie.target);
            pie.max_burst = burst.unwrap_or(pie.max_burst);
            QueueModel::Pie(pie)
        }
        _ => return Err(format!("there is no queue `{kind}`; {QUEUES}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_as_mahimahi_writes_them() {
        let packets = |n| Capacity::Packets(Packets::new(n));
        assert_eq!(queue("infinite"), Ok(QueueModel::default()));
        assert_eq!(queue("droptail:packets=100"), Ok(QueueModel::DropTail { capacity: packets(100) }));
        assert_eq!(
            queue("droptail:bytes=150000"),
            Ok(QueueModel::DropTail { capacity: Capacity::Bytes(Bytes::new(150_000)) })
        );
        let Ok(QueueModel::CoDel(codel)) = queue("codel:packets=50, target=7, interval=140") else { panic!() };
        assert_eq!(
            (codel.capacity, codel.target, codel.interval),
            (packets(50), Duration::from_millis(7), Duration::from_millis(140))
        );
        let Ok(QueueModel::Pie(pie)) = queue("pie:packets=50,qdelay_ref=20,max_burst=75") else { panic!() };
        assert_eq!((pie.target, pie.max_burst), (Duration::from_millis(20), Duration::from_millis(75)));
        for (wrong, says) in [
            ("droptail", "needs its room"),
            ("droptail:packets=0", "`packets` is `0`"),
            ("droptail:target=5", "has no argument `target`"),
            ("drophead:packets=5", "no argument `packets`"),
            ("drophead", "there is no queue `drophead`"),
            ("codel:target=-1", "`target` is `-1`"),
        ] {
            let error = queue(wrong).unwrap_err();
            assert!(error.contains(says) && error.contains("; "), "{error}");
        }
    }
}
