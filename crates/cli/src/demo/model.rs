//! The measurements of a demo, as written to `demo.json` and read again by `fairpace report`.
//!
//! Times are seconds since the path's time zero (the first packet of each scheme); units are in the
//! names. A value that could not be measured is absent, never NaN.

use serde::{Deserialize, Serialize};

/// The file's name in the results folder.
pub(crate) const FILE: &str = "demo.json";
/// First field of the file: what it is, and its version.
pub(crate) const FORMAT: &str = "fairpace-demo/1";

/// A curve: instants and values.
pub(crate) type Curve = Vec<(f64, f64)>;

/// A whole demo.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DemoResult {
    pub(crate) format: String,
    /// Version and commit.
    pub(crate) fairpace: String,
    /// The clip.
    pub(crate) source: String,
    pub(crate) seed: u64,
    /// How long each scheme was to take.
    pub(crate) seconds: f64,
    /// Ctrl-C ended it early; what is there is valid.
    pub(crate) interrupted: bool,
    pub(crate) path: PathFacts,
    pub(crate) schemes: Vec<SchemeRun>,
}

/// The path that all schemes took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PathFacts {
    /// From when on, how fast.
    pub(crate) capacity_kbps: Curve,
    pub(crate) rtt_ms: f64,
    pub(crate) loss_probability: f64,
    pub(crate) queue_packets: u64,
    /// Start and length.
    pub(crate) outages_s: Vec<(f64, f64)>,
    /// Names of the simulated flows beside.
    pub(crate) beside: Vec<String>,
    /// The throughput of these flows without the video, simulated: all together, second by second.
    pub(crate) alone_kbps: Curve,
    /// Whether lost packets are sent again.
    pub(crate) retransmission: bool,
    /// Frames are shown this long after the fastest way.
    pub(crate) playout_ms: f64,
    pub(crate) frames_per_second: f64,
}

/// How a scheme's turn ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum TurnEnd {
    /// The turn took its full time.
    #[default]
    Completed,
    /// The circuit breaker stopped it.
    Breaker { at_s: f64, reason: String },
    /// Ctrl-C.
    Interrupted { at_s: f64 },
    /// Something else failed.
    Failed { at_s: f64, reason: String },
}

/// One scheme's turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SchemeRun {
    /// The controller's name: `rcs`.
    pub(crate) scheme: String,
    /// The same for people: `RCS`, `Fixed 500 kbit/s`.
    pub(crate) label: String,
    pub(crate) ended: TurnEnd,
    /// How long it sent.
    pub(crate) elapsed_s: f64,
    /// Remarks that make the numbers less trustworthy: the relay was late.
    pub(crate) remarks: Vec<String>,

    /// The rate that the controller asked the encoder for.
    pub(crate) target_kbps: Curve,
    /// Data packets sent, averaged over the sampling interval.
    pub(crate) data_kbps: Curve,
    /// Dummy packets sent.
    pub(crate) dummy_kbps: Curve,
    /// Data packets received.
    pub(crate) received_kbps: Curve,
    /// From, to, state.
    pub(crate) states: Vec<(f64, f64, String)>,
    /// Mean one-way delay of the data packets of each interval.
    pub(crate) delay_ms: Curve,
    /// Data packets lost, of those sent in each second.
    pub(crate) loss_percent: Curve,
    /// Packets in the queue before the link.
    pub(crate) queue_packets: Curve,
    /// The throughput of each flow beside.
    pub(crate) beside_kbps: Vec<Curve>,

    pub(crate) totals: Totals,
    /// The pictures on the screen at some moments.
    pub(crate) stills: Vec<StillFile>,
    /// The received video's file in the folder; absent if no frame could be shown.
    pub(crate) video: Option<String>,
}

/// A picture of the received video.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StillFile {
    /// The moment of the turn.
    pub(crate) at_s: f64,
    /// The picture's file in the folder; absent if nothing was on the screen.
    pub(crate) file: Option<String>,
    /// How long the picture had been standing still by then.
    pub(crate) stood_still_s: f64,
}

/// A scheme's turn in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Frames that the clip has in the scheme's full time.
    pub(crate) frames_offered: u64,
    pub(crate) frames_in_time: u64,
    /// Shown when due, decoded without one that is lost.
    #[serde(default)]
    pub(crate) frames_damaged: u64,
    pub(crate) frames_late: u64,
    pub(crate) frames_lost: u64,
    pub(crate) data_packets_sent: u64,
    pub(crate) data_packets_lost: u64,
    pub(crate) dummy_packets_sent: u64,
    pub(crate) feedback_packets: u64,
    /// Data received, all headers counted, over the scheme's full time.
    pub(crate) received_kbps: f64,
    /// The same for all flows beside together.
    pub(crate) beside_kbps: f64,
    pub(crate) delay_p50_ms: Option<f64>,
    pub(crate) delay_p95_ms: Option<f64>,
    pub(crate) longest_freeze_ms: f64,
}

impl Totals {
    /// Frames that were never sent: the flow was stopped, or the rate allowed none.
    pub(crate) fn frames_not_sent(&self) -> u64 {
        let sent = self.frames_in_time + self.frames_damaged + self.frames_late + self.frames_lost;
        self.frames_offered.saturating_sub(sent)
    }

    /// Share of the frames offered that were shown in time, in percent.
    pub(crate) fn in_time_percent(&self) -> f64 {
        percent(self.frames_in_time, self.frames_offered)
    }

    /// Dummies of all packets sent, in percent.
    pub(crate) fn overhead_percent(&self) -> f64 {
        percent(self.dummy_packets_sent, self.dummy_packets_sent + self.data_packets_sent)
    }

    /// Data packets lost of those sent, in percent.
    pub(crate) fn loss_percent(&self) -> f64 {
        percent(self.data_packets_lost, self.data_packets_sent)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
