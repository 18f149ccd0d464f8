//! The schemes, one file each, and the list of them.
//!
//! A new scheme is a file in this folder that `fixed.rs` shows the shape of, its module here, and its entry in
//! [`SCHEMES`]. Nothing else in the repository names schemes one by one: the command, scenarios, `fairpace list` and
//! the property tests read the list.

use crate::registry::SchemeInfo;

pub mod aimd;
pub mod fixed;
pub mod lda;
pub mod rap;
pub mod rbp;
pub mod rcs;
pub mod tfrc;
pub mod tpba;

/// All schemes, in the order in which `fairpace list` shows them. A file may hold several.
pub(crate) static SCHEMES: &[SchemeInfo] = &[
    rcs::INFO,
    rap::INFO,
    rbp::SRP,
    rbp::CRP,
    rbp::MRP,
    tfrc::INFO,
    tfrc::INFO_SP,
    aimd::INFO,
    lda::LDA,
    lda::LDAF,
    tpba::INFO,
    fixed::INFO,
];

/// The controller of the tutorial, compiled and tried where a reader would put the file.
#[cfg(test)]
#[path = "../../../docs/tutorial/sawtooth.rs"]
pub mod sawtooth;
