//! The flags of `fairpace plan wireless`.

use super::{count, duration, number, rate, size};
use clap::{Args, ValueEnum};
use fairpace_units::{Bytes, Duration, Rate};

/// Windows with which flows over a wireless link keep their delays: alpha, beta, rwnd and the base station's buffer
///
/// From what the applications ask for and what the link is like: the largest windows whose delay jitter is above the
/// tolerable one in at most so many of the packets. Several flows share the user's queue; what is given as a list has one
/// entry per flow, or one for all. A need that cannot be met is answered with the nearest that can, and exit code 8.
/// Without options: the paper's link and flow.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace plan wireless --error 5% --max-jitter 60ms
  fairpace plan wireless --rtt 85ms,125ms --share 2,1 --verify        two flows in one queue, simulated too
  fairpace plan wireless --flows 4 --throughput 40kbit/s --json
  fairpace plan wireless --memory 0.35 --scheme optimal --outage 2%
  fairpace plan wireless --snr 20 --threshold 10 --doppler 9.3         Rayleigh fading at walking speed, 2 GHz
  fairpace plan wireless --transition '0.9,0.1; 0.4,0.6' --error 0.01,0.5")]
pub(crate) struct Wireless {
    /// Flows that share the queue; as many as the longest list has entries if absent
    #[arg(long, value_name = "N", value_parser = count::<100>, allow_hyphen_values = true, help_heading = "Needs")]
    pub(crate) flows: Option<u32>,
    /// Minimal RTT: everything but waiting, the packet's own slot included
    #[arg(long, value_name = "TIME,...", value_parser = duration, value_delimiter = ',', allow_hyphen_values = true,
        default_value = "85ms", help_heading = "Needs")]
    pub(crate) rtt: Vec<Duration>,
    /// Tolerable delay jitter: how much longer an RTT may take
    #[arg(long, value_name = "TIME,...", value_parser = duration, value_delimiter = ',', allow_hyphen_values = true,
        default_value = "50ms", help_heading = "Needs")]
    pub(crate) max_jitter: Vec<Duration>,
    /// Delay outage: which part of the packets may have a greater jitter
    #[arg(long, value_name = "P,...", value_parser = part, value_delimiter = ',', allow_hyphen_values = true,
        default_value = "1%", help_heading = "Needs")]
    pub(crate) outage: Vec<f64>,
    /// Part of the packets that may be lost on the link or be late
    #[arg(long, value_name = "P,...", value_parser = part, value_delimiter = ',', allow_hyphen_values = true,
        help_heading = "Needs")]
    pub(crate) loss: Vec<f64>,
    /// The least throughput, headers included
    #[arg(long, value_name = "RATE,...", value_parser = rate, value_delimiter = ',', allow_hyphen_values = true,
        help_heading = "Needs")]
    pub(crate) throughput: Vec<Rate>,
    /// Shares of the link, relative to each other; if absent as the throughputs are, or all the same
    #[arg(long, value_name = "N,...", value_parser = number, value_delimiter = ',', allow_hyphen_values = true,
        help_heading = "Needs")]
    pub(crate) share: Vec<f64>,
    /// Part of a window that remains after a decrease, above 0 and below 1; alpha follows, so that it is fair to TCP
    #[arg(long, value_name = "BETA", value_parser = number, allow_hyphen_values = true, default_value = "0.875",
        help_heading = "Needs")]
    pub(crate) beta: f64,
    /// Windows to judge, instead of the largest that keep the needs, packets
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Needs")]
    pub(crate) rwnd: Vec<u32>,
    /// Rate of the link if every slot succeeds
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true, default_value = "200kbit/s",
        help_heading = "Link")]
    pub(crate) rate: Rate,
    /// Packets on the link, headers included; each takes a slot
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "125B",
        help_heading = "Link")]
    pub(crate) packet_size: Bytes,
    /// Error probability of a slot; with `--transition` one per state [default: 0.1]
    #[arg(long, value_name = "P,...", value_parser = part, value_delimiter = ',', allow_hyphen_values = true,
        conflicts_with = "snr", help_heading = "Link")]
    pub(crate) error: Vec<f64>,
    /// Memory: what of the higher risk right after a failure is left one slot later
    #[arg(long, value_name = "LAMBDA", value_parser = number, allow_hyphen_values = true, default_value = "0",
        conflicts_with_all = ["snr", "transition"], help_heading = "Link")]
    pub(crate) memory: f64,
    /// A Markov channel of several states: the rows of its matrix, one step per slot
    #[arg(long, value_name = "'P,P; P,P'", value_parser = rows, allow_hyphen_values = true, requires = "error",
        conflicts_with = "snr", help_heading = "Link")]
    pub(crate) transition: Option<Rows>,
    /// Rayleigh fading: the mean SNR, dB
    #[arg(long, value_name = "DB", value_parser = number, allow_hyphen_values = true,
        requires_all = ["threshold", "doppler"], help_heading = "Link")]
    pub(crate) snr: Option<f64>,
    /// Rayleigh fading: below this SNR a slot fails, dB
    #[arg(long, value_name = "DB", value_parser = number, allow_hyphen_values = true, requires = "snr",
        help_heading = "Link")]
    pub(crate) threshold: Option<f64>,
    /// Rayleigh fading: the Doppler frequency (speed / wavelength), Hz
    #[arg(long, value_name = "HZ", value_parser = number, allow_hyphen_values = true, requires = "snr",
        help_heading = "Link")]
    pub(crate) doppler: Option<f64>,
    /// Rayleigh fading: states of the channel
    #[arg(long, value_name = "N", value_parser = count::<64>, allow_hyphen_values = true, requires = "snr",
        default_value = "8", help_heading = "Link")]
    pub(crate) states: u32,
    /// The answer to a failed slot
    #[arg(long, value_enum, default_value_t = Scheme::Auto, help_heading = "Link")]
    pub(crate) scheme: Scheme,
    /// `--scheme limited`: tries after the first
    #[arg(long, value_name = "N", value_parser = count::<1_000>, allow_hyphen_values = true,
        required_if_eq("scheme", "limited"), help_heading = "Link")]
    pub(crate) retries: Option<u32>,
    /// Slots between a failure and the next try, beside the silence of `optimal`
    #[arg(long, value_name = "N", value_parser = zero_or_more, allow_hyphen_values = true, default_value = "0",
        help_heading = "Link")]
    pub(crate) retry_delay: u32,
    /// The flows have so many of the slots only, evenly spread
    #[arg(long, value_name = "N/OF", value_parser = slots, allow_hyphen_values = true, default_value = "1/1",
        help_heading = "Link")]
    pub(crate) slots: (u32, u32),
    /// Simulate the plan too, and print what it promises beside what came of it
    #[arg(long)]
    pub(crate) verify: bool,
    /// Runs of `--verify`
    #[arg(long, value_name = "N", value_parser = count::<1_000>, allow_hyphen_values = true, default_value = "10")]
    pub(crate) seeds: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The answer to a failed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheme {
    /// `optimal` where the channel has memory and that is fast enough, `persistent` otherwise
    Auto,
    /// Nothing: the packet is lost
    None,
    /// Again in the next slot, until it succeeds
    Persistent,
    /// Again in the next slot, `--retries` times
    Limited,
    /// One slot of silence, then again, until it succeeds
    Optimal,
}

/// Rows of a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Rows(pub(crate) Vec<Vec<f64>>);

fn rows(text: &str) -> Result<Rows, String> {
    let row = |row: &str| row.split(',').map(part).collect::<Result<Vec<f64>, String>>();
    text.split(';').map(row).collect::<Result<_, _>>().map(Rows)
}

/// A part of a whole: `0.01` or `1%`. The user of the number says what is allowed.
fn part(text: &str) -> Result<f64, String> {
    let (number, unit) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |n| (n.trim_end(), 100.0));
    let part = number.parse().ok().map(|p: f64| p / unit).filter(|p| (0.0..=1.0).contains(p));
    part.ok_or_else(|| {
        "it is no part of a whole; write a number from 0 to 1 or a percentage, as in `0.01` or `1%`".into()
    })
}

fn zero_or_more(text: &str) -> Result<u32, String> {
    let n = text.trim().parse().ok().filter(|n| *n <= 10_000);
    n.ok_or_else(|| "it is no number of slots; write a whole number from 0 to 10000".into())
}

fn slots(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(n, of)| Some((n.trim().parse().ok()?, of.trim().parse().ok()?)));
    let parts = parts.filter(|(n, of): &(u32, u32)| *n >= 1 && n <= of && *of <= 1_000);
    parts.ok_or_else(|| "it is no part of the slots; write two whole numbers, as in `1/4`, up to 1000".into())
}
