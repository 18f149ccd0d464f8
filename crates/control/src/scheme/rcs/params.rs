//! RCS's parameters: the paper's two, and one for each place where it can be read in two ways.

use crate::param::{Allowed, FLAG, ParamError, ParamInfo};
use crate::registry::{Env, Safety, Settings};
use fairpace_units::{Bounds, Duration, Rate};

/// The parameters of RCS.
pub(super) const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "s_target",
        symbol: "S_Target",
        default: "max",
        allowed: &[Allowed::FlowRate, Allowed::Word("max", "the flow's max_rate")],
        doc: "the rate of the stream at its best quality; Initial probes at it, and S never exceeds it",
    },
    ParamInfo {
        name: "t_b",
        symbol: "T_B",
        default: "10 SRTT",
        allowed: &[
            Allowed::Times("SRTT", Bounds::of(1.0, 1_000.0)),
            Allowed::Duration(Bounds::of(Duration::from_millis(100), Duration::from_secs(3_600))),
            Allowed::Word("none", "without limit"),
        ],
        doc: "how long Backoff waits for an ACK before it starts again with Initial; at most 15 s unless safety is `paper`",
    },
    ParamInfo {
        name: "backoff",
        symbol: "",
        default: "on",
        allowed: FLAG,
        doc: "off: Detected without any ACK goes back to Steady, as the paper's comparison without Backoff()",
    },
    ParamInfo {
        name: "wdsn_rounding",
        symbol: "wdsn",
        default: "nearest",
        allowed: &[Allowed::Words(&["nearest", "up", "down", "exact"])],
        doc: "how SRTT · S becomes a count of dummy ACKs; `exact` keeps the fraction, which a test for zero never meets",
    },
    ParamInfo {
        name: "wdsn_test",
        symbol: "wdsn",
        default: "figure",
        allowed: &[Allowed::Words(&["figure", "text"])],
        doc: "`figure`: only wdsn = 0 raises S, so -1 after Initial is a guard; `text`: wdsn <= 0 raises it, so Initial's late ACKs do",
    },
    ParamInfo {
        name: "loss_in_detected",
        symbol: "",
        default: "ignore",
        allowed: &[Allowed::Words(&["ignore", "restart"])],
        doc: "what a loss noticed in Detected does: nothing, or open another Detected phase",
    },
    ParamInfo {
        name: "old_losses",
        symbol: "",
        default: "ignore",
        allowed: &[Allowed::Words(&["ignore", "count"])],
        doc: "losses of packets sent before the last Detected phase began, noticed after it",
    },
    ParamInfo {
        name: "gap_after_backoff",
        symbol: "",
        default: "ignore",
        allowed: &[Allowed::Words(&["ignore", "count"])],
        doc: "losses of packets sent before the signal came back, noticed afterwards",
    },
    ParamInfo {
        name: "loss_with_queue",
        symbol: "",
        default: "limit",
        allowed: &[Allowed::Words(&["limit", "ignore"])],
        doc: "`limit`: when a loss comes while SRTT shows a queue, dummies are a tenth of S; `ignore`: a loss is a loss, and always so if safety is `paper`",
    },
    ParamInfo {
        name: "increase",
        symbol: "",
        default: "both",
        allowed: &[Allowed::Words(&["both", "timed", "dummy"])],
        doc: "what raises S in Steady: one packet per SRTT each SRTT, each dummy ACK that wdsn lets through, or both",
    },
    ParamInfo {
        name: "dummy_acks_in_detected",
        symbol: "",
        default: "ignore",
        allowed: &[Allowed::Words(&["ignore", "count"])],
        doc: "whether dummy ACKs that arrive in Detected count against wdsn and raise S",
    },
    ParamInfo {
        name: "dup_threshold",
        symbol: "",
        default: "3",
        allowed: &[Allowed::Whole("", 1, 100)],
        doc: "later data packets acknowledged that make a data packet lost",
    },
    ParamInfo {
        name: "min_rto",
        symbol: "",
        default: "200 ms",
        allowed: &[Allowed::Duration(Bounds::of(Duration::from_millis(1), Duration::from_secs(60)))],
        doc: "lower bound of the timeout SRTT + 4 RTTVAR",
    },
    ParamInfo {
        name: "rto_backoff",
        symbol: "",
        default: "off",
        allowed: FLAG,
        doc: "double the timeout at each expiry; nothing is sent twice, so no ACK is ambiguous and it is off",
    },
];

/// T_B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BackoffTimeout {
    /// So many SRTT, measured when Backoff begins.
    Srtts(f64),
    /// A fixed time.
    After(Duration),
    /// Backoff waits for ever.
    None,
}

/// How SRTT · S becomes a count of dummy ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WdsnRounding {
    /// To the nearest whole number, a half up.
    Nearest,
    /// To the next whole number.
    Up,
    /// To the whole number below.
    Down,
    /// Not at all.
    Exact,
}

/// The value of wdsn that lets a dummy ACK raise S.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WdsnTest {
    /// Zero only [rcs Fig. 3].
    Figure,
    /// Zero and below [rcs §III-C, the sentence before Fig. 3].
    Text,
}

/// The event that raises S in Steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// The timer and dummy ACKs.
    Both,
    /// The timer only.
    Timed,
    /// Dummy ACKs only.
    Dummy,
}

/// RCS's parameters and readings; see `PARAMS` for what each does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RcsParams {
    pub s_target: Rate,
    pub t_b: BackoffTimeout,
    pub backoff: bool,
    pub wdsn_rounding: WdsnRounding,
    pub wdsn_test: WdsnTest,
    pub restart_in_detected: bool,
    pub count_old_losses: bool,
    pub count_gap_after_backoff: bool,
    pub heed_queue: bool,
    pub increase: Increase,
    pub count_dummy_acks_in_detected: bool,
    pub dup_threshold: u8,
    pub min_rto: Duration,
    pub rto_backoff: bool,
}

impl RcsParams {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ParamError`] names the field, what was found and what is allowed.
    pub fn new(s: &Settings<'_>, env: &Env) -> Result<RcsParams, ParamError> {
        let ignore_or = |name, other| s.choice(name, &[("ignore", false), (other, true)]);
        let s_target = s.rate_or("s_target", "max", env.max_rate, env)?;
        if s_target >= Rate::MAX {
            // Initial would send dummies without a gap.
            let allowed = "a rate, or a `max_rate` of the flow".to_owned();
            return Err(ParamError::BadValue { scheme: "rcs", name: "s_target", found: "max".to_owned(), allowed });
        }
        Ok(RcsParams {
            s_target,
            t_b: t_b(s)?,
            backoff: s.flag("backoff")?,
            wdsn_rounding: s.choice(
                "wdsn_rounding",
                &[
                    ("nearest", WdsnRounding::Nearest),
                    ("up", WdsnRounding::Up),
                    ("down", WdsnRounding::Down),
                    ("exact", WdsnRounding::Exact),
                ],
            )?,
            wdsn_test: s.choice("wdsn_test", &[("figure", WdsnTest::Figure), ("text", WdsnTest::Text)])?,
            restart_in_detected: ignore_or("loss_in_detected", "restart")?,
            count_old_losses: ignore_or("old_losses", "count")?,
            count_gap_after_backoff: ignore_or("gap_after_backoff", "count")?,
            heed_queue: s.choice("loss_with_queue", &[("limit", true), ("ignore", false)])?
                && env.safety == Safety::Default,
            increase: s.choice(
                "increase",
                &[("both", Increase::Both), ("timed", Increase::Timed), ("dummy", Increase::Dummy)],
            )?,
            count_dummy_acks_in_detected: ignore_or("dummy_acks_in_detected", "count")?,
            dup_threshold: s.whole("dup_threshold")? as u8,
            min_rto: s.duration("min_rto")?,
            rto_backoff: s.flag("rto_backoff")?,
        })
    }
}

fn t_b(s: &Settings<'_>) -> Result<BackoffTimeout, ParamError> {
    let (text, _) = s.text("t_b");
    if text == "none" {
        return Ok(BackoffTimeout::None);
    }
    match s.times("t_b")? {
        Some(number) => Ok(BackoffTimeout::Srtts(number)),
        None => s.duration("t_b").map(BackoffTimeout::After),
    }
}
