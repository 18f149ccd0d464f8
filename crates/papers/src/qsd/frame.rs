//! The two frames of the satellite [qsd §3.2], and the starts that figures compare over them.

use super::setup::Strategy;
use fairpace_scenario::{FrameSpec, RawScenario};

/// The frames, as scenarios, claims and readers name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Large,
    Small,
}

pub(super) const FRAMES: [Frame; 2] = [Frame::Large, Frame::Small];

impl Frame {
    pub(super) fn key(self) -> &'static str {
        match self {
            Frame::Large => "large",
            Frame::Small => "small",
        }
    }

    pub(super) fn set(self, s: &mut RawScenario) {
        if let Some(satellite) = &mut s.satellite {
            satellite.frame = match self {
                Frame::Large => FrameSpec::Large,
                Frame::Small => FrameSpec::Small,
            };
        }
    }

    /// Slots of a multi-frame.
    pub(super) fn slots(self) -> f64 {
        match self {
            Frame::Large => 144.0,
            Frame::Small => 24.0,
        }
    }

    /// T_q,opt of the text and T_q,max of Table I, in ms [qsd §3.5].
    pub(super) fn t_q(self) -> (f64, f64) {
        match self {
            Frame::Large => (520.0, 1_273.0),
            Frame::Small => (55.0, 339.0),
        }
    }

    /// The five of Fig. 5, with the keys of their colours.
    pub(super) fn strategies(self) -> [(Strategy, &'static str); 5] {
        let (opt, max) = self.t_q();
        [
            (Strategy::None, "no-qs"),
            (Strategy::Qs, "qs"),
            (Strategy::Qsd(0.0), "qsd-0"),
            (Strategy::Qsd(opt), "qsd-opt"),
            (Strategy::Qsd(max), "qsd-max"),
        ]
    }
}
