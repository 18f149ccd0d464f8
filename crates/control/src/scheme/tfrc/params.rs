//! The parameters of TFRC and TFRC-SP: which RFC, which equation, who measures, and the options
//! that the RFCs leave open.

use super::history::Discounting;
use super::sender::Rfc;
use crate::equation::Equation;
use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::quick_start::Until;
use crate::registry::Settings;
use fairpace_units::{Bounds, Duration};

const EQUATION: ParamInfo = ParamInfo {
    name: "equation",
    symbol: "X_Bps",
    default: "rfc5348",
    allowed: &[Allowed::Words(&["rfc5348", "complex", "modified", "simple"])],
    doc: "which of TCP's throughput equations; all with b = 1",
};

const T_RTO: ParamInfo = ParamInfo {
    name: "t_rto",
    symbol: "t_RTO",
    default: "4r",
    allowed: &[Allowed::Words(&["4r", "tcp"])],
    doc: "the timeout in the equation: 4R, or TCP's on a clock of 100 ms as in ns-2: SRTT + max(100 ms, 4 RTTVAR)",
};

const RFC: ParamInfo = ParamInfo {
    name: "rfc",
    symbol: "",
    default: "5348",
    allowed: &[Allowed::Words(&["5348", "3448"])],
    doc: "`3448`: the initial rate, the limit by X_recv and the no-feedback timer of the older document",
};

const MEASURED_BY: ParamInfo = ParamInfo {
    name: "measured_by",
    symbol: "",
    default: "sender",
    allowed: &[Allowed::Words(&["sender", "receiver"])],
    doc: "who computes p and X_recv: the sender from an ACK of every packet, or the receiver, whose word is taken",
};

const OUTAGE: ParamInfo = ParamInfo {
    name: "outage",
    symbol: "",
    default: "one",
    allowed: &[Allowed::Words(&["one", "rfc"])],
    doc: "packets lost while the no-feedback timer expired: one loss event, or one per RTT; only if the sender measures",
};

const LOSSES: ParamInfo = ParamInfo {
    name: "losses",
    symbol: "NDUPACK",
    default: "rfc",
    allowed: &[Allowed::Words(&["rfc", "ns2"])],
    doc: "`ns2`: a gap is a loss at once, not after three later packets, and one loss event at most; \
          only if the receiver measures",
};

const DISCOUNTING: ParamInfo = ParamInfo {
    name: "discounting",
    symbol: "DF",
    default: "off",
    allowed: &[Allowed::Words(&["on", "off", "ns2"])],
    doc: "older loss intervals count less while the current one is long; `on`: down to a quarter, `ns2`: to half",
};

const SMOOTHING: ParamInfo = ParamInfo {
    name: "smoothing",
    symbol: "X_inst",
    default: "on",
    allowed: FLAG,
    doc: "oscillation reduction: packets are paced at X R_sqmean/sqrt(R_sample), slower while the RTT grows",
};

const ECN: ParamInfo = ParamInfo {
    name: "ecn",
    symbol: "",
    default: "off",
    allowed: FLAG,
    doc: "send ECN-capable packets; a mark counts as a loss",
};

const T_GRAN: ParamInfo = ParamInfo {
    name: "t_gran",
    symbol: "t_gran",
    default: "0 ms",
    allowed: &[Allowed::Duration(Bounds::of(Duration::ZERO, Duration::from_millis(100)))],
    doc: "the grain of the driver's timer: a packet may leave min(t_ipi, t_gran, R)/2 early",
};

const FIRST_TIMER: ParamInfo = ParamInfo {
    name: "first_timer",
    symbol: "",
    default: "2 s",
    allowed: &[Allowed::Duration(Bounds::of(Duration::from_secs(1), Duration::from_secs(60)))],
    doc: "the no-feedback timer before the first RTT; `3 s` is what TCP had (RFC 2988)",
};

const W_INIT: ParamInfo = ParamInfo {
    name: "w_init",
    symbol: "W_init",
    default: "rfc",
    allowed: &[Allowed::Words(&["rfc", "rfc3390"])],
    doc: "`rfc3390`: with `rfc = 3448` too the first RTT has the window of RFC 3390, as in ns-2, not one packet",
};

const INCREASE: ParamInfo = ParamInfo {
    name: "increase",
    symbol: "X",
    default: "rfc",
    allowed: &[Allowed::Words(&["rfc", "ns2"])],
    doc: "X rises to the equation's rate at once, or, `ns2`, by one packet per RTT in each RTT",
};

const PACING: ParamInfo = ParamInfo {
    name: "pacing",
    symbol: "t_ipi",
    default: "rfc",
    allowed: &[Allowed::Words(&["rfc", "ns2"])],
    doc: "a report moves the packet that waits to leave, or, `ns2`, only those behind it; then each report of slow start and \
          each expiry of the no-feedback timer lets one leave at once, and slow start comes up to X packet by packet",
};

const REPORTS: ParamInfo = ParamInfo {
    name: "reports",
    symbol: "X_recv",
    default: "rfc",
    allowed: &[Allowed::Words(&["rfc", "ns2"])],
    doc: "`ns2`: a report for each loss event, and another 1.5 R after the last; the no-feedback timer of 2R; X_recv limits X to one packet \
          per R or more; slow start as in ns-2; only if the receiver measures",
};

const QS_WAIT: ParamInfo = ParamInfo {
    name: "qs_wait",
    symbol: "",
    default: "off",
    allowed: FLAG,
    doc: "after a Quick-Start request send nothing more before feedback; else at the rate allowed without it",
};

const QS_VALIDATION: ParamInfo = ParamInfo {
    name: "qs_validation",
    symbol: "",
    default: "all",
    allowed: &[Allowed::Words(&["all", "next"])],
    doc: "a Quick-Start rate is kept until all packets of its first RTT are acknowledged, or only until the \
          next feedback after the first on one of them; never for more than three RTTs",
};

const QS_LIMIT: ParamInfo = ParamInfo {
    name: "qs_limit",
    symbol: "X_recv",
    default: "twice",
    allowed: &[Allowed::Words(&["twice", "received"])],
    doc: "the first report after a Quick-Start rate lowers X to twice what was received, as the RFC's step 4 does, or to \
          what was received",
};

/// The parameters of TFRC.
pub(in crate::scheme) const PARAMS: &[ParamInfo] = &[
    EQUATION,
    T_RTO,
    RFC,
    MEASURED_BY,
    OUTAGE,
    LOSSES,
    DISCOUNTING,
    SMOOTHING,
    ECN,
    T_GRAN,
    FIRST_TIMER,
    W_INIT,
    INCREASE,
    PACING,
    REPORTS,
    QS_WAIT,
    QS_VALIDATION,
    QS_LIMIT,
];

/// The parameters of TFRC-SP.
pub(super) const PARAMS_SP: &[ParamInfo] = &[
    EQUATION,
    T_RTO,
    RFC,
    MEASURED_BY,
    OUTAGE,
    LOSSES,
    DISCOUNTING,
    SMOOTHING,
    ECN,
    ParamInfo {
        doc: "as for `tfrc`; from 10 ms on, three packets may leave within 30 ms instead of one every 10 ms",
        ..T_GRAN
    },
    ParamInfo {
        name: "header",
        symbol: "H",
        default: "40",
        allowed: &[Allowed::Whole("", 0, 200)],
        doc: "bytes of each packet's headers that packet sizes do not count; 0 where they do",
    },
    FIRST_TIMER,
    W_INIT,
    INCREASE,
    PACING,
    REPORTS,
    QS_WAIT,
    QS_VALIDATION,
    QS_LIMIT,
    ParamInfo {
        name: "first_rate",
        symbol: "s",
        default: "segment",
        allowed: &[Allowed::Words(&["segment", "packet"])],
        doc: "before the first RTT 1,460 bytes may leave per second, or one packet, as with `tfrc`",
    },
];

/// TFRC's parameters; see `PARAMS` and `PARAMS_SP` for what each does.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TfrcParams {
    pub equation: Equation,
    /// t_RTO is TCP's, not 4R.
    pub tcp_timeout: bool,
    pub rfc: Rfc,
    pub receiver_measures: bool,
    pub outage_is_one_event: bool,
    /// Losses are found as ns-2 finds them.
    pub losses_as_ns2: bool,
    pub discounting: Discounting,
    pub smoothing: bool,
    pub ecn: bool,
    pub t_gran: Duration,
    /// The no-feedback timer before the first RTT.
    pub first_timer: Duration,
    /// With RFC 3448 too the first rate is W_init/R.
    pub rfc3390_window: bool,
    /// X comes up to the equation as in ns-2.
    pub ns2_increase: bool,
    /// When a packet leaves, so is decided when the next one does, as in ns-2.
    pub ns2_pacing: bool,
    /// When reports come, and what they and the lack of them do to X, as in ns-2.
    pub ns2_reports: bool,
    pub qs_wait: bool,
    pub qs_validation: Until,
    /// The first report after a Quick-Start rate lowers X to X_recv.
    pub qs_received: bool,
    /// TFRC-SP begins with one packet per second.
    pub first_packet: bool,
    /// H in bytes, for TFRC-SP; `None` is TFRC.
    pub small_packets: Option<f64>,
}

impl TfrcParams {
    /// Reads the settings of either entry.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(s: &Settings<'_>) -> Result<TfrcParams, ParamError> {
        let discounting = [
            ("off", Discounting::Off),
            ("false", Discounting::Off),
            ("on", Discounting::ToQuarter),
            ("true", Discounting::ToQuarter),
            ("ns2", Discounting::ToHalf),
        ];
        let receiver_measures = s.choice("measured_by", &[("sender", false), ("receiver", true)])?;
        // Words that only a receiver that measures heeds.
        let receivers = |name: &'static str| match s.choice(name, &[("rfc", false), ("ns2", true)])? {
            true if !receiver_measures => Err(ParamError::BadValue {
                scheme: s.scheme(),
                name,
                found: "ns2".to_owned(),
                allowed: "`rfc`, or `ns2` with `measured_by = \"receiver\"`".to_owned(),
            }),
            as_ns2 => Ok(as_ns2),
        };
        Ok(TfrcParams {
            equation: s.choice("equation", &Equation::NAMES)?,
            tcp_timeout: s.choice("t_rto", &[("4r", false), ("tcp", true)])?,
            rfc: s.choice("rfc", &[("5348", Rfc::Rfc5348), ("3448", Rfc::Rfc3448)])?,
            receiver_measures,
            outage_is_one_event: s.choice("outage", &[("one", true), ("rfc", false)])?,
            losses_as_ns2: receivers("losses")?,
            discounting: s.choice("discounting", &discounting)?,
            smoothing: s.flag("smoothing")?,
            ecn: s.flag("ecn")?,
            t_gran: s.duration("t_gran")?,
            first_timer: s.duration("first_timer")?,
            rfc3390_window: s.choice("w_init", &[("rfc", false), ("rfc3390", true)])?,
            ns2_increase: s.choice("increase", &[("rfc", false), ("ns2", true)])?,
            ns2_pacing: s.choice("pacing", &[("rfc", false), ("ns2", true)])?,
            ns2_reports: receivers("reports")?,
            qs_wait: s.flag("qs_wait")?,
            qs_validation: s.choice("qs_validation", &[("all", Until::All), ("next", Until::Next)])?,
            qs_received: s.choice("qs_limit", &[("twice", false), ("received", true)])?,
            first_packet: s.scheme() == "tfrc-sp" && s.choice("first_rate", &[("segment", false), ("packet", true)])?,
            small_packets: match s.scheme() {
                "tfrc-sp" => Some(s.whole("header")? as f64),
                _ => None,
            },
        })
    }
}
