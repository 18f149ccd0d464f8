//! The rows of the tables in `reference/ns2`: the scenario that repeats a row, and the row's numbers.

use super::super::compare::Theirs;
use super::seen::{Seen, Tcp};
use crate::builtin::with;
use fairpace_scenario::{
    Capacity, Count, FlowSpec, LossSpec, Parameter, QueueSpec, RawScenario, Room, Scenario, Size, Speed, TcpSpec, Time,
};
use std::collections::BTreeMap;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    RapSatellite,
    TcpSatellite,
    Mixed,
    MixedJitter,
    Channel,
    Lossy,
    Variants,
    Clean,
    CleanJitter,
    Aimd,
}

/// A number of the rates is what flows got; the others explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rate,
    Other,
}

/// A column of a table, and the same number of ours.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) of: fn(&Seen) -> Option<f64>,
}

const fn rate(name: &'static str, of: fn(&Seen) -> Option<f64>) -> Column {
    Column { name, kind: Kind::Rate, of }
}

const fn other(name: &'static str, of: fn(&Seen) -> Option<f64>) -> Column {
    Column { name, kind: Kind::Other, of }
}

const DROPPED: Column = other("queue_drop_frac", |s| Some(s.dropped));
const TCP_NORM: Column = rate("tcp_norm", |s| Some(s.y.norm));

const SATELLITE: &[Column] = &[
    rate("perflow_pps", |s| Some(s.x.pps)),
    rate("perflow_pps_0_200s", |s| Some(s.early_pps)),
    other("jain", |s| Some(s.jain)),
    DROPPED,
];

const MIXED: &[Column] = &[
    rate("x_perflow_pps", |s| Some(s.x.pps)),
    rate("y_perflow_pps", |s| Some(s.y.pps)),
    other("jain_all_flows", |s| Some(s.jain)),
    DROPPED,
];

const CHANNEL: &[Column] = &[
    rate("sent_bps", |s| Some(s.y.sent_bps)),
    rate("goodput_bps", |s| Some(s.y.goodput_bps)),
    other("p_ind", |s| Some(s.y.tcp?.indications())),
    other("p_cuts", |s| Some(s.y.tcp?.cuts())),
    other("timeout_frac", |s| s.y.tcp.map(|t: Tcp| t.timeout_sequences / (t.fast_retransmits + t.timeout_sequences))),
    other("rtt_s", |s| Some(s.y.tcp?.rtt_s)),
    other("rto_s", |s| Some(s.y.tcp?.rto_s)),
    other("cwnd_pkts", |s| Some(s.y.tcp?.cwnd)),
];

const LOSSY: &[Column] = &[
    TCP_NORM,
    rate("tfrc_norm", |s| Some(s.x.norm)),
    rate("tcp_goodput_norm", |s| Some(s.y.goodput_norm)),
    other("queue_drop_frac", |s| Some(s.dropped_or_lost)),
    TIMEOUTS,
];

const VARIANTS: &[Column] = &[
    TCP_NORM,
    rate("tfrc_norm", |s| Some(s.x.norm)),
    rate("tcp_goodput_norm", |s| Some(s.y.goodput_norm)),
    other("queue_drop_frac", |s| Some(s.dropped_or_lost)),
];

const TIMEOUTS: Column = other("tcp_timeout_share_of_cuts", timeout_share);

/// Over the whole run, as ns-2's counters have it.
fn timeout_share(s: &Seen) -> Option<f64> {
    Some(s.y.tcp?.timeout_share)
}

const CLEAN: &[Column] = &[
    TCP_NORM,
    rate("tfrc_norm", |s| Some(s.x.norm)),
    other("utilisation", |s| Some(s.utilisation)),
    DROPPED,
    other("jain", |s| Some(s.jain)),
];

const AIMD: &[Column] = &[
    TCP_NORM,
    rate("aimd_norm", |s| Some(s.x.norm)),
    rate("ratio_aimd_over_tcp", |s| Some(s.x.norm / s.y.norm)),
    other("utilisation", |s| Some(s.utilisation)),
    DROPPED,
    other("tcp_timeout_share", timeout_share),
];

impl Table {
    /// The file's name.
    pub(super) fn name(self) -> &'static str {
        self.file().0
    }

    fn file(self) -> (&'static str, &'static str) {
        macro_rules! file {
            ($name:literal) => {
                ($name, include_str!(concat!("../../../../../reference/ns2/", $name, ".csv")))
            };
        }
        match self {
            Table::RapSatellite => file!("rap_satellite"),
            Table::TcpSatellite => file!("tcp_satellite"),
            Table::Mixed => file!("mixed_fairness"),
            Table::MixedJitter => file!("mixed_fairness_jitter"),
            Table::Channel => file!("reno_baseline"),
            Table::Lossy => file!("tfrc_dumbbell_lossy"),
            Table::Variants => file!("tfrc_dumbbell_variants"),
            Table::Clean => file!("clean_dumbbell"),
            Table::CleanJitter => file!("clean_dumbbell_jitter"),
            Table::Aimd => file!("aimd"),
        }
    }

    /// The numbers that both simulators have.
    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Table::RapSatellite | Table::TcpSatellite => SATELLITE,
            Table::Mixed | Table::MixedJitter => MIXED,
            Table::Channel => CHANNEL,
            Table::Lossy => LOSSY,
            Table::Variants => VARIANTS,
            Table::Clean | Table::CleanJitter => CLEAN,
            Table::Aimd => AIMD,
        }
    }

    /// Every row.
    pub(super) fn rows(self) -> Vec<Row> {
        let mut lines = self.file().1.lines().map(|line| line.split(','));
        let names: Vec<&str> = lines.next().into_iter().flatten().collect();
        let row = |(index, values): (usize, std::str::Split<'static, char>)| {
            let values = names.iter().map(|n| (*n).to_owned()).zip(values.map(str::to_owned)).collect();
            Row { table: self, line: index + 2, values }
        };
        lines.enumerate().map(row).collect()
    }
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) table: Table,
    /// Of the file.
    line: usize,
    values: BTreeMap<String, String>,
}

impl Row {
    fn text(&self, column: &str) -> &str {
        self.values.get(column).map_or("", String::as_str)
    }

    /// A number; not a number where the table has none.
    fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }

    fn count(&self, column: &str) -> u64 {
        self.number(column) as u64
    }

    /// The name in points: the file and the line.
    pub(super) fn key(&self) -> String {
        format!("{}:{}", self.table.name(), self.line)
    }

    /// ns-2's number.
    pub(super) fn theirs(&self, column: &Column) -> Theirs {
        let sd = self.number(&format!("{}_std", column.name));
        let sd = Some(sd).filter(|sd| sd.is_finite());
        Theirs { mean: self.number(column.name), sd, seeds: self.number("seeds") as usize }
    }

    /// The row in words.
    pub(super) fn label(&self) -> String {
        let t = |column: &str| self.text(column);
        match self.table {
            Table::RapSatellite | Table::TcpSatellite => {
                let fine = if t("fine_grain") == "1" { " fine" } else { "" };
                format!("{}{fine} p={} RTT={} K={}", t("protocol"), t("p_loss"), t("rtt_s"), t("k_pkts"))
            }
            Table::Mixed | Table::MixedJitter => {
                let jitter = if self.table == Table::MixedJitter { ", jitter" } else { "" };
                format!("{} | {} p={} K={}{jitter}", t("x_protocol"), t("y_protocol"), t("p_loss_x"), t("k_pkts"))
            }
            Table::Channel => {
                let place = [t("error_position"), t("packet_B"), t("bandwidth_bps"), t("delay_s")];
                format!("{} {} B {} bit/s {} s e={}", place[0], place[1], place[2], place[3], t("error"))
            }
            Table::Lossy => format!("{} {} {} %", t("queue"), t("error_position"), t("error_pct")),
            Table::Variants => format!("{} {} {} {} %", t("variant"), t("queue"), t("error_position"), t("error_pct")),
            Table::Clean | Table::CleanJitter => {
                let jitter = if self.table == Table::CleanJitter { ", jitter" } else { "" };
                format!("{} {} {}+{2}{jitter}", t("queue"), t("tcp"), t("n_each"))
            }
            Table::Aimd => {
                format!("TCP({}, {}) {} {} {}+{4}", t("alpha"), t("beta"), t("tcp"), t("scenario"), t("n_each"))
            }
        }
    }

    /// The protocol whose number a column has.
    pub(super) fn protocol(&self, column: &Column) -> String {
        let name = match self.table {
            Table::RapSatellite | Table::TcpSatellite => self.text("protocol"),
            Table::Mixed | Table::MixedJitter if column.name.starts_with('x') => self.text("x_protocol"),
            Table::Mixed | Table::MixedJitter => self.text("y_protocol"),
            Table::Channel => "Reno",
            Table::Lossy | Table::Variants => "20+20",
            Table::Clean | Table::CleanJitter | Table::Aimd => self.text("tcp"),
        };
        name.to_owned()
    }

    /// The row's place on the charts' abscissae.
    pub(super) fn places(&self) -> Vec<(&'static str, f64)> {
        let n = |column: &str| self.number(column);
        let (p, rtt, buffer, flows) = match self.table {
            Table::RapSatellite | Table::TcpSatellite => (n("p_loss"), n("rtt_s"), n("k_pkts"), 10.0),
            Table::Mixed | Table::MixedJitter => (n("p_loss_x"), n("rtt_x_s"), n("k_pkts"), 10.0),
            Table::Channel => (n("error"), 2.0 * n("delay_s"), 50.0, 1.0),
            Table::Lossy => (n("error_pct") / 100.0, 0.106, 54.0, 40.0),
            Table::Variants => {
                (n("error_pct") / 100.0, 0.106, if self.text("variant") == "packet512" { 27.0 } else { 54.0 }, 40.0)
            }
            Table::Clean | Table::CleanJitter => (0.0, 0.102, 250.0, 2.0 * n("n_each")),
            Table::Aimd => (0.0, 0.085, n("buffer_pkts"), 2.0 * n("n_each")),
        };
        vec![("p", p), ("rtt_s", rtt), ("buffer_pkts", buffer), ("flows", flows)]
    }

    /// The scenario that repeats the row.
    pub(super) fn scenario(&self, base: &Scenario) -> Scenario {
        with(base, |s| match self.table {
            Table::RapSatellite | Table::TcpSatellite => self.set_satellite(s),
            Table::Mixed | Table::MixedJitter => self.set_mixed(s),
            Table::Channel => self.set_channel(s),
            Table::Lossy | Table::Variants => self.set_lossy(s),
            Table::Clean | Table::CleanJitter => self.set_clean(s),
            Table::Aimd => self.set_aimd(s),
        })
    }

    fn set_satellite(&self, s: &mut RawScenario) {
        s.path.rtt = Time::ms(1e3 * self.number("rtt_s") - 2.0);
        s.path.queue.set_capacity(Room::packets(self.count("k_pkts")));
        s.path.loss = LossSpec::random(self.number("p_loss"));
        put(&mut s.flows[0], self.text("protocol"), Time::ms(0.0));
        if self.text("fine_grain") == "1" {
            s.flows[0].parameters.insert("fine_grain".to_owned(), Parameter::Text("on".to_owned()));
        }
        // A RAP acknowledgement of ns-2.
        if self.text("protocol") == "RAP" {
            s.ack_size = Size::bytes(44);
        }
    }

    fn set_mixed(&self, s: &mut RawScenario) {
        // A service time.
        let jitter = Time::ms(if self.table == Table::MixedJitter { 0.77 } else { 0.0 });
        s.path.queue.set_capacity(Room::packets(self.count("k_pkts")));
        for (flow, protocol) in s.flows.iter_mut().zip(["x_protocol", "y_protocol"]) {
            put(flow, self.text(protocol), jitter.clone());
        }
        if let Some(access) = &mut s.flows[0].access {
            access.loss = LossSpec::random(self.number("p_loss_x"));
        }
    }

    fn set_channel(&self, s: &mut RawScenario) {
        let rate = Capacity::Fixed(Speed::bps(self.number("bandwidth_bps")));
        (s.path.rate, s.path.reverse.rate) = (Some(rate.clone()), rate);
        s.path.rtt = Time::ms(2e3 * self.number("delay_s"));
        s.packet_size = Size::bytes(self.count("packet_B"));
        self.set_error(s, self.number("error"), self.text("error_position"));
    }

    /// Errors behind the transmitter, or of each flow's own link before the queue.
    fn set_error(&self, s: &mut RawScenario, error: f64, position: &str) {
        let (before, after) = if position == "before" { (error, 0.0) } else { (0.0, error) };
        s.path.loss = LossSpec::random(after);
        for flow in &mut s.flows {
            if before > 0.0 {
                flow.access.get_or_insert_default().loss = LossSpec::random(before);
            }
        }
    }

    /// ns-2's RED has room for `limit_` packets behind the one in transmission, its drop-tail for one fewer.
    fn set_queue(&self, s: &mut RawScenario, buffer: u64, red: (u64, u64)) {
        if self.text("queue") == "DropTail" {
            s.path.queue = QueueSpec::of("drop-tail").with("capacity", Room::packets(buffer));
        } else {
            s.path.queue.set_capacity(Room::packets(buffer + 1));
            s.path.queue.set("min_threshold", Room::packets(red.0));
            s.path.queue.set("max_threshold", Room::packets(red.1));
        }
    }

    fn set_lossy(&self, s: &mut RawScenario) {
        let mut red = (5, 27);
        let mut buffer = 54;
        let tcp = s.flows[0].tcp.get_or_insert_default();
        match self.text("variant") {
            "send_jitter_10ms" => tcp.send_jitter = Some(Time::ms(10.0)),
            "minrto1s_tick100ms" => (tcp.min_rto, tcp.tick) = (Some(Time::seconds(1.0)), Some(Time::ms(100.0))),
            "packet512" => {
                (buffer, red) = (27, (5, 14));
                s.packet_size = Size::bytes(512);
            }
            _ => {}
        }
        self.set_queue(s, buffer, red);
        self.set_error(s, self.number("error_pct") / 100.0, self.text("error_position"));
    }

    /// `n_each` of each, 1,000-B packets, a bottleneck, links at both sides whose round trips differ by so much each, no errors, from 20 s to the end.
    fn set_wide(&self, s: &mut RawScenario, one_way_ms: f64, spread_ms: f64, end: f64) {
        let rate = Capacity::Fixed(Speed::bps(self.number("bottleneck_bps")));
        (s.path.rate, s.path.reverse.rate) = (Some(rate.clone()), rate);
        s.path.rtt = Time::ms(2.0 * one_way_ms);
        s.path.loss = LossSpec::default();
        s.packet_size = Size::bytes(1_000);
        (s.warmup, s.duration) = (Time::seconds(20.0), Time::seconds(end));
        for flow in &mut s.flows {
            flow.count = Count::new(self.count("n_each"));
            for side in [&mut flow.access, &mut flow.far_access].into_iter().flatten() {
                side.rtt_spread = Time::ms(spread_ms);
                side.rate = Capacity::Fixed(Speed::kbps(100e3));
            }
        }
        s.flows[0].tcp = Some(TcpSpec::default());
        put(&mut s.flows[0], self.text("tcp"), Time::ms(0.0));
    }

    fn set_clean(&self, s: &mut RawScenario) {
        self.set_wide(s, 50.0, 2.0, 140.0);
        self.set_queue(s, 250, (25, 125));
        if self.table == Table::CleanJitter {
            put(&mut s.flows[0], self.text("tcp"), Time::ms(0.53));
        }
    }

    fn set_aimd(&self, s: &mut RawScenario) {
        self.set_wide(s, 40.0, 5.0, 320.0);
        self.set_queue(s, self.count("buffer_pkts"), (self.count("red_min"), self.count("red_max")));
        let media = &mut s.flows[1];
        "aimd".clone_into(&mut media.controller);
        media.parameters.clear();
        for key in ["alpha", "beta"] {
            media.parameters.insert(key.to_owned(), Parameter::Number(self.number(key)));
        }
    }
}

/// Puts a protocol of ns-2 in.
fn put(flow: &mut FlowSpec, protocol: &str, jitter: Time) {
    let name = match protocol {
        "Reno" => "tcp-reno",
        "Newreno" => "tcp-newreno",
        "Sack1" => "tcp-sack",
        _ => "rap",
    };
    name.clone_into(&mut flow.controller);
    if name == "tcp-sack" {
        flow.tcp.get_or_insert_default().ns2 = Some(true);
    }
    if name.starts_with("tcp-") {
        flow.tcp.get_or_insert_default().handshake = Some(true);
    }
    if name.starts_with("tcp-") && jitter.get() > Time::ms(0.0).get() {
        flow.tcp.get_or_insert_default().send_jitter = Some(jitter);
    }
}
