//! The schemes, one file each, and the list of them.
//!
//! A new scheme is a file in this folder that `fixed.rs` shows the shape of, its module here, and its entry in
//! [`SCHEMES`]. Nothing else in the repository names schemes one by one: the command, scenarios, `fairpace list` and
//! the property tests read the list.

use crate::controller::Controller;
use crate::param::{ParamError, nearest};
use crate::registry::{Env, SchemeInfo, Settings};
use std::collections::BTreeMap;

pub mod aimd;
pub mod auto;
pub mod fixed;
pub mod lda;
pub mod rap;
pub mod rbp;
pub mod rcs;
pub mod tfrc;
pub mod tpba;

/// All schemes, in the order in which `fairpace list` shows them. A file may hold several.
static SCHEMES: &[SchemeInfo] = &[
    auto::INFO,
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

/// All schemes with their parameters.
pub fn schemes() -> &'static [SchemeInfo] {
    SCHEMES
}

/// Makes a controller.
///
/// # Errors
/// [`ParamError`]: the scheme or a parameter is unknown, a value is out of range, or the limits in
/// `env` contradict each other.
///
/// ```
/// use fairpace_control::{Env, build};
/// use std::collections::BTreeMap;
/// let settings = BTreeMap::from([("rate".to_owned(), "1.5 Mbit/s".to_owned())]);
/// assert!(build("fixed", &settings, &Env::default()).is_ok());
/// let error = build("fixd", &settings, &Env::default()).unwrap_err();
/// assert_eq!(error.hint().as_deref(), Some("did you mean `fixed`?"));
/// ```
pub fn build(scheme: &str, settings: &BTreeMap<String, String>, env: &Env) -> Result<Box<dyn Controller>, ParamError> {
    env.check()?;
    let names = || SCHEMES.iter().map(|s| s.name);
    match SCHEMES.iter().find(|s| s.name == scheme) {
        Some(info) => (info.make)(&Settings::new(info, settings)?, env),
        None => Err(ParamError::UnknownScheme {
            found: scheme.to_owned(),
            allowed: names().collect(),
            nearest: nearest(scheme, names()),
        }),
    }
}

/// The controller of the tutorial, compiled and tried where a reader would put the file.
#[cfg(test)]
#[path = "../../../docs/tutorial/sawtooth.rs"]
pub mod sawtooth;

#[cfg(test)]
mod tests;
