//! The experiments of `quick-start-dama` (Secchi, Sathiaseelan, Potortì, Gotta, Fairhurst): §3 and §4, Figs. 3 to 9,
//! Tables I and III, Appendix A.
//!
//! One file per set-up: a single flow on an idle satellite [qsd §3], and aggregates of many [qsd §4].

use super::Experiment;

/// Every row, in the paper's order.
pub(super) const EXPERIMENTS: &[Experiment] = &[];
