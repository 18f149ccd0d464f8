//! The encoder model of the media crate, as the simulator asks for frames.

use fairpace_sim::Source;
use fairpace_units::Rate;

/// A source whose frames follow the controller's rate, at most `highest`.
pub(crate) fn source(_highest: Option<Rate>) -> Source {
    Source::Greedy
}
