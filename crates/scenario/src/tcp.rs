//! TCP's parameters as a scenario writes them, and the simulator's that follow.

use crate::Table;
use crate::param::{Form, Row};
use crate::quantity::{self, Count, Size, Time};
use crate::table::written;
use fairpace_sim::TcpHalf;
use fairpace_sim::tcp::{DelayedAck, TcpParams, TcpVariant};
use fairpace_units::{Bounds, Bytes, Duration, Packets};
use serde::{Deserialize, Serialize};

/// TCP's parameters. An absent field has the simulator's default.
///
/// The rows of [`TCP`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct TcpSpec {
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub variant: Option<TcpKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_size: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_after_idle: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dup_threshold: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linux: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns2: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_jitter: Option<Time>,
}

/// `tcp` of a flow. Defaults are those of a `tcp-` controller.
pub const TCP: Table = Table::of::<TcpSpec>(
    "TcpSpec",
    "TCP's parameters",
    &[
        Row::new(
            "variant",
            "",
            Form::Word(&["reno", "newreno", "sack"]),
            "`tpba`: its loss recovery; the name of a `tcp-` controller says it",
        ),
        Row::new(
            "segment_size",
            "",
            Form::Size(Bounds::of(LEAST_SEGMENT, Bytes::new(65_507))),
            "`tpba`: a full segment on the wire; smaller packets share segments",
        )
        .note("headers of 40 B included")
        .usually("that of the flow's packets"),
        Row::new(
            "restart_after_idle",
            "",
            Form::Flag,
            "the window falls to the initial one after a timeout's time without sending [RFC 5681 §4.1]",
        )
        .usually("true; `tpba`: false"),
        Row::new("initial_window", "", Form::Whole(1, 10), "initial window in packets"),
        Row::new(
            "handshake",
            "",
            Form::Flag,
            "the connection is opened first, by a SYN of 40 B, and data begins a round trip later; not `tpba`",
        ),
        Row::new(
            "initial_ssthresh",
            "",
            Form::Whole(2, 10_000_000),
            "where slow start ends the first time, in packets",
        )
        .usually("the largest window"),
        Row::new("dup_threshold", "", Form::Whole(1, 1_000), "duplicate ACKs that mean a loss"),
        Row::new("max_window", "", Form::Whole(1, 10_000_000), "largest window in packets"),
        Row::new("min_rto", "", FROM_MS, "shortest retransmission timeout"),
        Row::new("max_rto", "", FROM_MS, "longest retransmission timeout"),
        Row::new("initial_rto", "", FROM_MS, "retransmission timeout before the first RTT sample"),
        Row::new("tick", "", FROM_ZERO, "granularity of the RTT clock; `0 s` is an exact one"),
        Row::new(
            "delayed_ack",
            "",
            FROM_MS,
            "the receiver delays ACKs at most so long, and answers every second segment at once",
        )
        .usually("each segment is answered at once"),
        Row::new("limited_transmit", "", Form::Flag, "limited transmit [RFC 3042]"),
        Row::new(
            "linux",
            "",
            Form::Flag,
            "loss recovery as Linux has it: with SACK proportional rate reduction [RFC 6937], losses found by what was sent later and arrived [RFC 8985], a scoreboard that a timeout keeps; NewReno's timer restarted at each partial ACK [RFC 6582 §4]; a timeout of the smoothed RTT and `min_rto` at least; a whole window, which grows by counted ACKs and is halved for each timeout's time of a pause [RFC 2861 §3]",
        ),
        Row::new(
            "ns2",
            "",
            Form::Flag,
            "SACK repairs as ns-2's Sack1: the pipe is a count, and every hole below a SACK is sent again; not with `linux`",
        ),
        Row::new(
            "ecn",
            "",
            Form::Flag,
            "new data goes out as ECT(0), and a queue's mark is answered as a loss [RFC 3168]",
        ),
        Row::new(
            "send_jitter",
            "",
            FROM_ZERO,
            "each packet leaves up to so much later, at random: breaks the phase effects of drop-tail queues",
        ),
    ],
)
.usually(|| {
    let variant = Some(TcpKind::of(TcpHalf::default().params.variant));
    written(&TcpSpec { variant, ..TcpSpec::of(&TcpParams::default()) })
});

/// A header of 40 B, and something to send.
pub(crate) const LEAST_SEGMENT: Bytes = Bytes::new(41);
const HOUR: Duration = Duration::from_secs(3_600);
const FROM_MS: Form = Form::Time(Bounds::of(Duration::from_millis(1), HOUR));
const FROM_ZERO: Form = Form::Time(Bounds::of(Duration::ZERO, HOUR));

impl TcpSpec {
    /// The fields that the simulator has a value for, whatever the scenario.
    fn of(params: &TcpParams) -> TcpSpec {
        TcpSpec {
            initial_window: Some(Count::new(params.initial_window.get())),
            handshake: Some(params.handshake),
            dup_threshold: Some(Count::new(u64::from(params.dup_threshold))),
            max_window: Some(Count::new(params.max_window.get())),
            min_rto: Some(params.min_rto.into()),
            max_rto: Some(params.max_rto.into()),
            initial_rto: Some(params.initial_rto.into()),
            tick: Some(params.tick.into()),
            limited_transmit: Some(params.limited_transmit),
            linux: Some(params.linux),
            ns2: Some(params.ns2),
            ecn: Some(params.ecn),
            send_jitter: Some(params.send_jitter.into()),
            ..TcpSpec::default()
        }
    }
}

/// TCP's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpKind {
    /// [RFC 5681]
    Reno,
    /// [RFC 6582]
    Newreno,
    /// [RFC 6675]
    Sack,
}

impl TcpKind {
    fn of(variant: TcpVariant) -> TcpKind {
        match variant {
            TcpVariant::Reno => TcpKind::Reno,
            TcpVariant::NewReno => TcpKind::Newreno,
            TcpVariant::Sack => TcpKind::Sack,
        }
    }
}

impl std::fmt::Display for TcpKind {
    /// As a scenario writes it: `reno`, `newreno`, `sack`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TcpKind::Reno => "reno",
            TcpKind::Newreno => "newreno",
            TcpKind::Sack => "sack",
        })
    }
}

/// TCP's parameters: the simulator's defaults, and what the scenario says.
pub(crate) fn params(controller: &str, spec: Option<&TcpSpec>) -> TcpParams {
    let variant = match controller {
        "tcp-reno" => TcpVariant::Reno,
        // The kernel's own have selective acknowledgements; nobody simulates them.
        "tcp-sack" | "tcp-cubic" | "tcp-bbr" => TcpVariant::Sack,
        _ => TcpVariant::NewReno,
    };
    set(TcpParams { variant, ..TcpParams::default() }, spec)
}

/// The same for a flow that sends over UDP too.
pub(crate) fn half(spec: Option<&TcpSpec>) -> TcpHalf {
    let TcpHalf { mut params, mut segment_size } = TcpHalf::default();
    if let Some(spec) = spec {
        segment_size = spec.segment_size.as_ref().map(Size::get);
        params.variant = match spec.variant {
            None => params.variant,
            Some(TcpKind::Reno) => TcpVariant::Reno,
            Some(TcpKind::Newreno) => TcpVariant::NewReno,
            Some(TcpKind::Sack) => TcpVariant::Sack,
        };
    }
    TcpHalf { params: set(params, spec), segment_size }
}

fn set(mut p: TcpParams, spec: Option<&TcpSpec>) -> TcpParams {
    let Some(spec) = spec else { return p };
    let duration = |to: &mut Duration, from: &Option<Time>| {
        if let Some(time) = from {
            *to = time.get();
        }
    };
    duration(&mut p.min_rto, &spec.min_rto);
    duration(&mut p.max_rto, &spec.max_rto);
    duration(&mut p.initial_rto, &spec.initial_rto);
    duration(&mut p.tick, &spec.tick);
    duration(&mut p.send_jitter, &spec.send_jitter);
    if let Some(n) = spec.initial_window {
        p.initial_window = Packets::new(n.get());
    }
    if let Some(on) = spec.handshake {
        p.handshake = on;
    }
    if let Some(n) = spec.max_window {
        p.max_window = Packets::new(n.get());
    }
    p.initial_ssthresh = spec.initial_ssthresh.map(|n| Packets::new(n.get()));
    if let Some(n) = spec.dup_threshold {
        p.dup_threshold = n.get() as u32;
    }
    if let Some(on) = spec.limited_transmit {
        p.limited_transmit = on;
    }
    if let Some(on) = spec.linux {
        p.linux = on;
    }
    if let Some(on) = spec.ns2 {
        p.ns2 = on;
    }
    if let Some(on) = spec.ecn {
        p.ecn = on;
    }
    if let Some(on) = spec.restart_after_idle {
        p.restart_after_idle = on;
    }
    p.delayed_ack = spec.delayed_ack.as_ref().map(|t| DelayedAck { timeout: t.get() });
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Usual;

    #[test]
    fn the_default_in_words_is_that_of_both_kinds_of_flow() {
        let [tcp, half] = [TcpParams::default(), TcpHalf::default().params].map(|p| p.restart_after_idle);
        let row = TCP.find("restart_after_idle").unwrap();
        assert_eq!(row.usual, Usual::Words("true; `tpba`: false"));
        assert_eq!((tcp, half), (true, false));
    }
}
