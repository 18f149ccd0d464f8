//! The command line: every flag with its name, help, parser and examples in one place. Man pages and
//! completions are made from it.

use crate::error::{Failure, Outcome};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use fairpace_control::{ParamError, aimd, feedback};
use fairpace_net::send::MAX_QUANTUM;
use fairpace_units::{Bytes, Duration, Probability, Rate, RateSpec, parse_duration, parse_rate, parse_size};
use std::collections::BTreeMap;
use std::path::PathBuf;

mod shell;
mod sweep;
mod wire;
mod wireless;
mod worlds;

pub(crate) use shell::Shell;
pub(crate) use sweep::{Design, Sweep, SweepTask};
pub(crate) use wire::{Adaptation, Cell, Key, Receive, Relay, Send};
pub(crate) use wireless::{Scheme, Wireless};
pub(crate) use worlds::{CompareWorlds, Real, World};

macro_rules! long_version {
    ($features:literal) => {
        concat!(
            env!("CARGO_PKG_VERSION"),
            "\ncommit:   ",
            env!("FAIRPACE_COMMIT"),
            "\ntarget:   ",
            env!("FAIRPACE_TARGET"),
            "\nfeatures: ",
            $features
        )
    };
}

const WITH_GST: &str = long_version!("gst (real video through GStreamer)");
const WITHOUT_GST: &str = long_version!("none (real video needs a build with `--features gst`)");

/// `0.1.0 (commit)`.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("FAIRPACE_COMMIT"), ")");
/// The same, over several lines, with what this build can do.
pub(crate) const LONG_VERSION: &str = if cfg!(feature = "gst") { WITH_GST } else { WITHOUT_GST };

/// Live media over bad networks, at a pace that is fair to TCP
#[derive(Debug, Parser)]
#[command(
    name = "fairpace",
    version = VERSION,
    long_version = LONG_VERSION,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Start here:
  fairpace demo                      a real clip over a satellite-like path, one report
  fairpace run scenarios/geo.toml    one scenario in the simulator
  fairpace reproduce rcs             the figures of a paper, each claim checked

Exit codes:
  0 done   1 failed   2 usage   3 scenario   4 privilege   5 peer   6 circuit breaker
  7 a claim fails (only with --strict)   8 a need cannot be met (plan wireless)
  9 another run in real time is under way (cell, demo, relay, shell, --world emu)
  130 interrupted; what was measured until then is kept"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Compare(Compare),
    CompareWorlds(CompareWorlds),
    Sweep(Box<Sweep>),
    #[command(hide = true)]
    SweepTask(SweepTask),
    Reproduce(Reproduce),
    List(List),
    Plan(Plan),
    Report(Report),
    Relay(Relay),
    Cell(Cell),
    Shell(Box<Shell>),
    Send(Send),
    Receive(Receive),
    Key(Key),
    Demo(Demo),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
}

/// Run one scenario, in the simulator or in real time
///
/// The scenario says which flows with which controllers take which path, for how long. In the simulator the same
/// scenario and seed give the same numbers on every machine. In the emulator the same path lies between two network
/// namespaces, with the kernel's TCP and the drivers of the wire at its ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace run scenarios/geo.toml                      results to results/geo, a table to the terminal
  fairpace run scenarios/geo.toml --json               one object to stdout
  fairpace run scenarios/geo.toml --seeds 5            five seeds on all cores, with intervals
  fairpace run scenarios/geo.toml --pcap geo.pcapng    every packet at the bottleneck, for Wireshark
  fairpace run scenarios/geo.toml --series geo.csv     rows to disk as they come, however long the run is
  fairpace run scenarios/geo.toml --world emu          in real time, with the kernel's TCP")]
pub(crate) struct Run {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// Where to run it
    #[arg(long, value_enum, default_value_t)]
    pub(crate) world: World,
    #[command(flatten)]
    pub(crate) real: Real,
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    /// Write the packets at the bottleneck of the first seed to this file (pcapng)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Write the flows' series of the first seed to this file (CSV) as it is sampled, in the place of `series.csv`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Take the same path with each of several controllers in turn, one report
///
/// Every media flow of the scenario gets each controller in turn; all else stays: the path, the other
/// flows, the random numbers of the link.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace compare scenarios/geo.toml
  fairpace compare scenarios/geo.toml --with rcs,rap,rap:fine_grain=on --seeds 5
  fairpace compare scenarios/geo.toml --with rcs,tcp-sack --json")]
pub(crate) struct Compare {
    /// Scenario file (TOML)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// Controllers, in this order; each may bring parameters, as in `rap:fine_grain=on`
    #[arg(
        long = "with",
        alias = "control",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "auto,rcs,fixed"
    )]
    pub(crate) control: Vec<String>,
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Repeat a paper's figures and check each of its claims
///
/// Each claim is printed as holds or fails, with the number measured, its 95 % confidence interval and the
/// bound. A claim that fails is said to fail. Results go to `results/ID`; for several IDs to one folder that is
/// named after all of them, as in `results/rcs.fig12_rcs.fig16`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace reproduce rcs                        all figures of the paper `rcs`
  fairpace reproduce rcs.fig17a rcs.fig22a-b    two of them
  fairpace reproduce rcs --json                 one object per experiment and line
  fairpace reproduce rcs --strict               exit code 7 if any claim fails
  fairpace reproduce lossy --readings all       each claim under every reading of the paper
  fairpace reproduce qsd.fig5 --reading slots-contiguous   under one
  fairpace reproduce tpba.fig3 --world emu --quick   with the kernel's TCP, in real time
  fairpace reproduce worlds --world emu -j 4         every controller beside the kernel's TCP
  fairpace reproduce all                        everything: most of an hour on two cores
  fairpace list experiments                     what there is")]
pub(crate) struct Reproduce {
    /// Papers or experiments; `all`: every one
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Seeds per point; the experiment's own number if absent
    #[arg(long, value_name = "N", value_parser = count::<1000>, allow_hyphen_values = true)]
    pub(crate) seeds: Option<u32>,
    /// Run as much as the paper did where the usual run is smaller
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) full: bool,
    /// Few seeds, and shorter runs where an experiment has them
    #[arg(long, conflicts_with_all = ["seeds", "full"])]
    pub(crate) quick: bool,
    /// Reading of the paper, several together as in `a+b`, or `all` (not with `--quick`); the default one if absent
    #[arg(long = "reading", visible_alias = "readings", value_name = "NAME")]
    pub(crate) readings: Vec<String>,
    /// Where it runs: `emu` is in real time with the kernel's TCP (`tpba`, `worlds`, `agreement.kernel`, `agreement.loss`)
    #[arg(long, value_enum, default_value_t = World::Sim)]
    pub(crate) world: World,
    /// Runs beside each other; one per core if absent, one in real time
    #[arg(long, short, value_name = "N", value_parser = count::<1024>, allow_hyphen_values = true)]
    pub(crate) jobs: Option<u32>,
    /// End with exit code 7 if a claim fails
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// Show controllers, links, flows, media and experiments with their parameters
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace list
  fairpace list controllers
  fairpace list experiments --json")]
pub(crate) struct List {
    /// The list to show; everything if absent
    #[arg(value_enum)]
    pub(crate) what: Option<ListWhat>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The chapters of `fairpace list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListWhat {
    /// Rate controllers and TCP
    Controllers,
    /// Parts of a link
    Links,
    /// Fields of a scenario's flows, and of the run
    Flows,
    /// Media sources
    Media,
    /// Experiments of `fairpace reproduce`
    Experiments,
}

/// Say in advance what a path allows
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  fairpace plan tcp-rate --p 0.01 --rtt 550ms --size 1000B
  fairpace plan quick-start --frame large
  fairpace plan wireless --error 5% --rtt 85ms --max-jitter 50ms --outage 1%"
)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) what: PlanWhat,
}

/// The subcommands of `fairpace plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanWhat {
    TcpRate(TcpRate),
    QuickStart(QuickStart),
    Wireless(Box<Wireless>),
}

/// The rate of a TCP at a loss rate, or the loss rate at which a TCP would send so much
///
/// By each of four equations: the simple one (triple duplicate ACKs only), the complex one (Padhye's: with timeouts,
/// for losses in bursts), the modified one (for independent losses), and RFC 5348's, which TFRC uses. With the time
/// that a packet costs on average, by its two causes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace plan tcp-rate --p 0.01 --rtt 550ms --size 1000B
  fairpace plan tcp-rate --rate 500kbit/s --rtt 100ms --size 1200B    the loss rate that TCP needs for that
  fairpace plan tcp-rate --p 0.05 --rtt 1.6s --rto 2.7s --size 256B --b 2 --json")]
pub(crate) struct TcpRate {
    /// Loss indications per packet sent (rfc5348: loss events), above 0, up to 1
    #[arg(long, value_name = "P", value_parser = loss_rate, allow_hyphen_values = true, required_unless_present = "rate")]
    pub(crate) p: Option<Probability>,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) rtt: Duration,
    /// Packet size, in the same terms as the rate (with or without headers)
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub(crate) size: Bytes,
    /// Retransmission timeout; four round trips, but at least 1 s, if absent
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) rto: Option<Duration>,
    /// Packets acknowledged by one ACK: 1, or 2 with delayed ACKs
    #[arg(long, value_name = "N", value_parser = number, allow_hyphen_values = true, default_value = "1")]
    pub(crate) b: f64,
    /// Say also at which loss rate a TCP sends so much
    #[arg(long, value_name = "RATE", value_parser = rate_or_packets, allow_hyphen_values = true)]
    pub(crate) rate: Option<RateSpec>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a satellite terminal should hold a Quick-Start request, and what delay to expect
///
/// For a stream that starts at an otherwise idle terminal of a DVB-RCS return link: T_q,max and T_q,opt by their
/// formulas, and by the fluid model (docs/fluid.md) the shortest hold without a second hump of the delay and the delays
/// without Quick-Start, with it (qs), and with a terminal that asks for the capacity too and holds the request (qsd).
/// Over all phases: how long after the beginning of a super-frame the stream may start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace plan quick-start --frame large
  fairpace plan quick-start --frame small --propagation 250ms --rate 64kbit/s --packet-size 512B --json
  fairpace plan quick-start --frame large --release in-force --verify    packets simulated beside the model
  fairpace plan quick-start --slots-per-multi-frame 48 --slots-per-super-frame 96 --allocation-delay 4")]
pub(crate) struct QuickStart {
    /// The frame, with all its numbers; what follows changes them one by one
    #[arg(long, value_enum, default_value_t = Frame::Large)]
    pub(crate) frame: Frame,
    /// The stream's rate
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true, default_value = "256kbit/s")]
    pub(crate) rate: Rate,
    /// Its packets
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "1316B")]
    pub(crate) packet_size: Bytes,
    /// T_p: from a terminal over the satellite to a terminal, or to the control centre [default: 252 ms]
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) propagation: Option<Duration>,
    /// Terminals, that of the control centre included [default: 5]
    #[arg(long, value_name = "N", value_parser = count::<10_000_000>, allow_hyphen_values = true)]
    pub(crate) terminals: Option<u32>,
    /// Capacity of one carrier [default: 6.336 Mbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) capacity: Option<Rate>,
    /// Size of a slot [default: 1504 B]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    pub(crate) slot_size: Option<Bytes>,
    /// T_f: slots of a multi-frame, whole frames of six [small: 24, large: 144]
    #[arg(long, value_name = "N", value_parser = count::<10_000_000>, allow_hyphen_values = true)]
    pub(crate) slots_per_multi_frame: Option<u32>,
    /// T_b, T_r: slots of a super-frame, whole multi-frames [small: 72, large: 432]
    #[arg(long, value_name = "N", value_parser = count::<10_000_000>, allow_hyphen_values = true)]
    pub(crate) slots_per_super_frame: Option<u32>,
    /// T_a: super-frames from a request to its slots [small: 6, large: 2]
    #[arg(long, value_name = "N", value_parser = count::<100_000>, allow_hyphen_values = true)]
    pub(crate) allocation_delay: Option<u32>,
    /// The unit in which capacity is given [default: 44 kbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) granularity: Option<Rate>,
    /// Units that each terminal always has [default: 1]
    #[arg(long, value_name = "N", value_parser = count::<10_000_000>, allow_hyphen_values = true)]
    pub(crate) minimum: Option<u32>,
    /// The capacity that falls when a terminal asks for less: the one last decided, or the one in force
    /// (docs/fluid.md)
    #[arg(long, value_enum, default_value_t = Release::Decided)]
    pub(crate) release: Release,
    /// The sender's no-feedback timer before the first round trip: `first_timer` of tfrc
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true, default_value = "2s")]
    pub(crate) first_timer: Duration,
    /// Simulate packets too, in 24 phases, and print both
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The two frames of Skyplex Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Frame {
    /// Multi-frames of 24 slots, 45.6 ms; an answer takes six super-frames of 137 ms
    Small,
    /// Multi-frames of 144 slots, 273 ms; an answer takes two super-frames of 820 ms
    Large,
}

/// The capacity that is taken back from a terminal that asks for less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Release {
    /// The control centre's last decision, by the traffic that the request tells of
    Decided,
    /// The capacity in force, by the traffic until now
    InForce,
}

/// Build the report of a results folder again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace report results/geo
  fairpace report results/geo --out geo.html")]
pub(crate) struct Report {
    /// A folder that `run`, `compare`, `sweep`, `reproduce` or `demo` has written
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Where to write the page; `report.html` in the folder if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

/// The controller and its settings.
#[derive(Debug, Args)]
pub(crate) struct Control {
    /// Controller: `fairpace list controllers` shows all
    #[arg(long = "control", value_name = "NAME", default_value = "auto")]
    pub(crate) name: String,
    /// One of its parameters, as NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Only for `aimd`: what the window grows by per round trip, packets; `friendly` follows from beta
    #[arg(long, value_name = "PACKETS|friendly", allow_hyphen_values = true)]
    pub(crate) alpha: Option<String>,
    /// Only for `aimd`: the share of the outstanding data that remains after a loss, above 0, below 1
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) beta: Option<String>,
    /// Only for `aimd`: the most packets outstanding; the receiver's own `--rwnd` counts if it is less
    #[arg(long, value_name = "PACKETS|none", allow_hyphen_values = true)]
    pub(crate) rwnd: Option<String>,
    /// Never send faster than this, all packets counted
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true, default_value = "10Mbit/s")]
    pub(crate) max_rate: Rate,
}

impl Control {
    /// The settings by name; the last of two `--set` for the same name counts.
    pub(crate) fn settings(&self) -> Outcome<BTreeMap<String, String>> {
        let mut settings: BTreeMap<String, String> = self.set.iter().cloned().collect();
        for (name, value) in [("alpha", &self.alpha), ("beta", &self.beta), ("rwnd", &self.rwnd)] {
            let Some(value) = value else { continue };
            if self.name != aimd::INFO.name {
                let found = &self.name;
                return Err(Failure::usage(format!("`--{name}` is for the controller `aimd`, and this is `{found}`"))
                    .hint("use `--control aimd`, or leave it out"));
            }
            if let Some(set) = settings.insert(name.to_owned(), value.clone()).filter(|set| set != value) {
                return Err(Failure::usage(format!("`--{name} {value}` contradicts `--set {name}={set}`"))
                    .hint("leave out one"));
            }
        }
        Ok(settings)
    }

    /// Whether such a controller can be made: before anything is opened or sent.
    pub(crate) fn check(
        &self,
        settings: &BTreeMap<String, String>,
        packet_size: fairpace_units::Bytes,
        min_rate: Rate,
    ) -> Result<Box<dyn fairpace_control::Controller>, ParamError> {
        let env = fairpace_control::Env { packet_size, min_rate, max_rate: self.max_rate, ..Default::default() };
        fairpace_control::build(&self.name, settings, &env)
    }
}

/// The main job on a real clip: send, relay, receive, compare, report
///
/// Each scheme in turn sends the clip as RTP over real sockets through a satellite-like path: 2 Mbit/s falling to
/// 0.8 Mbit/s from 12 to 20 s, RTT 550 ms, 1 % random loss, a 3-s blackout at 24 s, a queue of 50 packets that honours
/// the packets' class, and two TCP flows beside it. The demo ends with a table, received videos and report.html.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace demo
  fairpace demo holiday.mp4 --control rcs,rap --seconds 20s
  fairpace demo test-pattern --out /tmp/demo")]
pub(crate) struct Demo {
    /// A video file or `test-pattern`; the clip that comes with Fairpace if absent
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) source: Option<String>,
    /// Controllers, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "auto,rcs,fixed")]
    pub(crate) control: Vec<String>,
    /// How long each takes
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true, default_value = "30s")]
    pub(crate) seconds: Duration,
    /// Folder for the report and the received videos
    #[arg(long, value_name = "DIR", default_value = "demo-results", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Replace the results in that folder
    #[arg(long)]
    pub(crate) force: bool,
    /// Lost packets stay lost; frames must come 0.5 s after the fastest way instead of 1 s
    #[arg(long)]
    pub(crate) no_repair: bool,
    /// Seed of the path's random numbers
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true, default_value = "1")]
    pub(crate) seed: u64,
    /// Print one JSON object at the end instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Say what this machine allows, each with the remedy
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace doctor
  fairpace doctor --json")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace completions bash > ~/.local/share/bash-completion/completions/fairpace
  fairpace completions fish > ~/.config/fish/completions/fairpace.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Print the man page, or write all of them to a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fairpace man | man -l -
  fairpace man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for one page per subcommand
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

/// The form of the receiver's feedback.
#[derive(Debug, Args)]
pub(crate) struct Form {
    /// The form of feedback: per packet (RFC 8888), per packet as browsers tell (`twcc`), or the receiver's measurements
    /// (RTP-TFRC, for other tools). `send` asks for the form that its controller needs, or for this one; `receive` tells as
    /// it is asked, and uses this form for a tool that cannot ask
    #[arg(long, value_name = "FORM", value_parser = feedback_form())]
    pub(crate) feedback_form: Option<feedback::Form>,
    /// Session description of the other tool, which says that it knows RTP-TFRC, and its extension's number
    #[arg(long, value_name = "FILE.sdp", value_hint = ValueHint::FilePath)]
    pub(crate) peer: Option<PathBuf>,
}

/// The forms of feedback that a person chooses among; the others follow from the controller.
fn feedback_form() -> impl TypedValueParser<Value = feedback::Form> {
    let chosen = feedback::Form::ALL.into_iter().filter(|form| form.is_chosen());
    PossibleValuesParser::new(chosen.map(|form| PossibleValue::new(form.name()).help(form.about())))
        .try_map(|name| name.parse())
}

/// The version of IP.
#[derive(Debug, Args)]
pub(crate) struct Ip {
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    ipv6: bool,
}

impl Ip {
    pub(crate) fn family(&self) -> fairpace_net::Family {
        match (self.ipv4, self.ipv6) {
            (true, _) => fairpace_net::Family::V4,
            (_, true) => fairpace_net::Family::V6,
            _ => fairpace_net::Family::Any,
        }
    }
}

/// The seeds, and the number of threads.
#[derive(Debug, Args)]
pub(crate) struct Seeds {
    /// First seed; the scenario's if absent
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: Option<u64>,
    /// How many seeds, counting up from the first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<100_000>, allow_hyphen_values = true)]
    pub(crate) seeds: u32,
    /// Threads of the simulator; one per core if absent. (In real time seeds run one after the other)
    #[arg(long, short, value_name = "N", value_parser = count::<1024>, allow_hyphen_values = true)]
    pub(crate) jobs: Option<u32>,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// Folder for the results; one of `results` by the scenario's name if absent
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Replace the results that are in that folder
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON to stdout instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// For `--seconds`, whose name is the unit of a bare number.
fn seconds(text: &str) -> Result<Duration, String> {
    let bare = text.parse::<f64>().is_ok();
    duration(&if bare { format!("{text} s") } else { text.to_owned() })
}

fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(d) if d.is_zero() => Err("it is zero; write a number and ns, us, ms, s, min or h, as in `30 s`".into()),
        Ok(d) => Ok(d),
        Err(e) => Err(format!("{}; {}", e.reason, e.allowed)),
    }
}

/// How early a packet may leave: zero is allowed.
/// The play-out delay of `receive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Playout {
    /// A delay that follows the frames' need.
    Auto,
    /// A delay that stays as it is.
    Fixed(Duration),
}

fn playout(text: &str) -> Result<Playout, String> {
    if text == "auto" {
        return Ok(Playout::Auto);
    }
    let delay = duration(text).map_err(|e| format!("{e}; or `auto`"))?;
    if delay > fairpace_rtp::playout::MOST {
        return Err("it must be at most 10 s: nobody watches a live stream so late".to_owned());
    }
    Ok(Playout::Fixed(delay))
}

/// How many sessions `receive` serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// So many, at least one.
    Number(u64),
    /// Until it is stopped.
    Forever,
}

fn sessions(text: &str) -> Result<Sessions, String> {
    match text.parse() {
        _ if text == "forever" => Ok(Sessions::Forever),
        Ok(0) | Err(_) => Err("it must be a whole number from 1 on, or `forever`".to_owned()),
        Ok(number) => Ok(Sessions::Number(number)),
    }
}

fn quantum(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(d) if d > MAX_QUANTUM => Err("it is more than 5 ms, which would be a burst".into()),
        Ok(d) => Ok(d),
        Err(e) => Err(format!("{}; {}", e.reason, e.allowed)),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    match parse_rate(text) {
        Ok(RateSpec::Bits(rate)) if rate > Rate::ZERO => Ok(rate),
        Ok(RateSpec::Bits(_)) => Err("it is zero; write a rate above it, as in `2.5 Mbit/s`".into()),
        Ok(RateSpec::PacketsPerSecond(_)) => {
            Err("packets have no fixed size here; write bits, as in `2.5 Mbit/s`".into())
        }
        Err(e) => Err(format!("{}; write a number and bit/s, kbit/s, Mbit/s or Gbit/s, as in `2.5 Mbit/s`", e.reason)),
    }
}

/// A rate where the size of packets is known.
fn rate_or_packets(text: &str) -> Result<RateSpec, String> {
    match parse_rate(text) {
        Ok(spec) if spec.with_packets_of(Bytes::new(1)) > Rate::ZERO => Ok(spec),
        Ok(_) => Err("it is zero; write a rate above it, as in `500 kbit/s`".into()),
        Err(e) => Err(format!("{}; {}", e.reason, e.allowed)),
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    parse_size(text).map_err(|e| format!("{}; {}", e.reason, e.allowed))
}

fn loss_rate(text: &str) -> Result<Probability, String> {
    let p = text.trim().parse().ok().and_then(|p| Probability::new(p).ok()).filter(|p| *p > Probability::ZERO);
    p.ok_or_else(|| "it is not a loss rate; write a number above 0, up to 1, as in `0.01`".into())
}

fn number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| "it is not a number; write one as in `1.5`".into())
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "it is not a UDP port; write a number from 0 to 65535".into())
}

/// How many of something: from 1 to `MOST`.
fn count<const MOST: u32>(text: &str) -> Result<u32, String> {
    let wrong = match text.parse::<i64>() {
        Ok(n) if n < 1 => "it must be at least 1".to_owned(),
        Ok(n) => match u32::try_from(n) {
            Ok(n) if n <= MOST => return Ok(n),
            _ => format!("it must be at most {MOST}"),
        },
        Err(_) => "it is not a whole number".to_owned(),
    };
    Err(format!("{wrong}; write a whole number from 1 to {MOST}"))
}

pub(crate) fn picture_size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X']).and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
    let fits = |side: u32| (16..=16_382).contains(&side) && side.is_multiple_of(2);
    match sides {
        Some((w, h)) if fits(w) && fits(h) => Ok((w, h)),
        Some(_) => Err("it must be of even numbers of pixels from 16 to 16382, as in `1280x720`".to_owned()),
        None => Err("it is not a size; write width x height in pixels, as in `1280x720`".to_owned()),
    }
}

/// Seeds stay exact in JSON, whose readers hold numbers as doubles.
fn seed(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if n < 1 << 53 => Ok(n),
        _ => Err("it is not a seed; write a whole number from 0 to 9007199254740991".into()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("it has no `=`; write a parameter's name and its value, as in `rate=800kbit/s`".into()),
    }
}
