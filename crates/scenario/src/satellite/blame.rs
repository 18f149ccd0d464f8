//! The refusals of the DAMA link, in the words of a scenario.

use super::{FrameSpec, OwnFrame, SatelliteSpec};
use crate::part::PartProblem;
use fairpace_path::DamaError;
use fairpace_path::quick_start::QsError;
use fairpace_units::{Bytes, Rate};

impl SatelliteSpec {
    /// The DAMA link's refusal, in the scenario's words.
    pub(super) fn blame(&self, error: &DamaError) -> PartProblem {
        let (key, wrong, allowed) = match error {
            DamaError::OutOfRange { field, allowed, .. } => {
                let key = match *field {
                    "slot_size" => "frame.slot",
                    "slots_per_multi_frame" => "frame.multi_frame",
                    "slots_per_super_frame" => "frame.super_frame",
                    "release_a" => "release.a",
                    "release_b" => "release.b",
                    "capacity / granularity" => "granularity",
                    other => other,
                };
                (key, "is out of range".to_owned(), allowed.clone())
            }
            DamaError::SlotLength { found_us, .. } => (
                if matches!(self.frame, FrameSpec::Own(_)) { "frame.slot" } else { "capacity" },
                format!("makes a slot of {found_us} us"),
                "what makes a slot of 1 us to 60 s".to_owned(),
            ),
            DamaError::NotWhole { length, below, above, .. } => (
                "frame.super_frame",
                format!("is not a multiple of the {length} slots of a multi-frame"),
                format!("a multiple of `multi_frame`, such as {below} or {above}"),
            ),
            DamaError::GranularityAboveCapacity { .. } => (
                "granularity",
                format!("is above the capacity of `{}`", self.capacity),
                "at most `capacity`".to_owned(),
            ),
            DamaError::GranularityNotWhole { units, below, above, .. } => (
                "granularity",
                format!("does not divide the capacity of `{}`, which holds {units:.2} of it", self.capacity),
                format!("such as {} or {}", exact(*below), exact(*above)),
            ),
            DamaError::TooManyCarriers { terminals, allowed, .. } => (
                "carriers",
                format!("is too many to spread {terminals} terminals over evenly"),
                format!("at most {allowed}"),
            ),
            DamaError::MinimumAboveFrame { terminals, units, .. } => (
                "minimum",
                format!("is more than a carrier has for {terminals} terminals: {units} units"),
                "fewer units, fewer terminals, or more carriers".to_owned(),
            ),
            DamaError::ConstantAboveCapacity { terminals, allowed, .. } => (
                "cra",
                format!("is more than the capacity of `{}` has for {terminals} terminals", self.capacity),
                format!("at most {}, fewer terminals, or more carriers", exact(*allowed)),
            ),
            DamaError::AllocationDelayTooShort { one_way, least, .. } => (
                "allocation_delay",
                format!("is too short: a request takes {one_way} super-frames to the NCC, and its answer as many back"),
                format!("at least {least}"),
            ),
            DamaError::NothingToGrant => (
                "minimum",
                "is all there is: `cra`, `rbdc`, `vbdc` and `fca` are off, and nobody would ever get a slot".to_owned(),
                "at least 1, or switch one of them on".to_owned(),
            ),
            DamaError::QuickStart(QsError { field, found, allowed }) => {
                let (key, found) = (format!("quick_start.{field}"), found.to_string());
                return PartProblem::Bad(key, found, "is out of range".to_owned(), (*allowed).to_owned());
            }
        };
        PartProblem::Bad(key.to_owned(), self.written(key), wrong, allowed)
    }

    /// A field as it stands in the file, or its default.
    fn written(&self, key: &str) -> String {
        let own = |pick: fn(&OwnFrame) -> String| match &self.frame {
            FrameSpec::Own(frame) => pick(frame),
            FrameSpec::Small | FrameSpec::Large => String::new(),
        };
        match key {
            "capacity" => self.capacity.text().to_owned(),
            "terminals" => self.terminals.get().to_string(),
            "carriers" => self.carriers.map_or_else(String::new, |n| n.get().to_string()),
            "propagation" => self.propagation.text().to_owned(),
            "granularity" => self.granularity.text().to_owned(),
            "minimum" => self.minimum.get().to_string(),
            "cra" => self.cra.text().to_owned(),
            "queue" => self.queue.text().to_owned(),
            "release.a" => self.release.a.get().get().to_string(),
            "release.b" => self.release.b.get().get().to_string(),
            "frame.slot" => own(|f| f.slot.text().to_owned()),
            "frame.multi_frame" => own(|f| f.multi_frame.get().to_string()),
            "frame.super_frame" => own(|f| f.super_frame.get().to_string()),
            _ => self.dama(Bytes::ZERO).allocation_delay.to_string(),
        }
    }
}

/// A rate with so many digits that it can be written back into the file.
fn exact(rate: Rate) -> String {
    let text = format!("{:.6}", rate.as_bps() / 1e3);
    format!("{} kbit/s", text.trim_end_matches('0').trim_end_matches('.'))
}
