//! The readings of `tpba`: when TCP has given way to UDP.

use super::setup::words;
use crate::reading::Reading;

const SWITCHES: &[&str] = &["tpba.fig10-12", "tpba.fig14-18"];

/// Of the figures that look at switches.
pub(super) const SWITCHING: &[Reading] = &[
    Reading::default(
        "we need to ensure that the data stored in the socket buffer of TCP is evacuated",
        "§4",
        "the socket buffer keeps what is not acknowledged: UDP begins when all of it is",
    )
    .touching(SWITCHES),
    Reading::new(
        "drained-sent",
        "we need to ensure that the data stored in the socket buffer of TCP is evacuated",
        "§4",
        "UDP begins when TCP has sent all, acknowledged or not; data over UDP may overtake the last of it",
    )
    .setting(|s| {
        for flow in s.flows.iter_mut().filter(|f| f.controller == "tpba") {
            flow.parameters.insert("drained".to_owned(), words("sent"));
        }
    })
    .touching(SWITCHES),
];
