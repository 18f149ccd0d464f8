//! The readings of `aimd`: from which slot on eq. (3) counts, and which chain has three states.

use crate::reading::Reading;

pub(super) const AFTER_SUCCESS: &str = "after-success";
pub(super) const THREE_STATES: &str = "three-states";
const WINDOWS: &[&str] = &["aimd.fig3", "aimd.fig4"];

const ANY_SLOT: Reading = Reading::default(
    "has been derived in [1]",
    "§III-C, eq. (3)",
    "eq. (3) counts slots from any slot on; a silent slot after a failure is the third state of a link whose channel has two",
)
.touching(WINDOWS);
const AFTER: Reading = Reading::new(
    AFTER_SUCCESS,
    "silent",
    "§III-C",
    "eq. (3) counts slots from the one after a success on, which is what a packet that has just been let in meets",
)
.touching(WINDOWS);
const THREE: Reading = Reading::new(
    THREE_STATES,
    "The wireless channel evolves following a three-state Markov model with channel memory equal to 0.35",
    "§IV-A",
    "the channel itself has three states, the middle one losing half its slots, both other eigenvalues 0.35",
)
.touching(&["aimd.fig4"]);

/// Of the persistent scheme, whose channel has no memory.
pub(super) const PERSISTENT: &[Reading] = &[ANY_SLOT, AFTER];
/// Of the optimal scheme.
pub(super) const OPTIMAL: &[Reading] = &[
    ANY_SLOT,
    AFTER,
    THREE,
    Reading::set(
        "three-states-after-success",
        &[THREE_STATES, AFTER_SUCCESS],
        "both decide how failures bunch in the slots that eq. (3) counts",
    ),
];
