//! Tests of the repository as a whole, which belong to no crate of it.
//!
//! - `tests/book`: the book's links, drawings and defaults.
//! - `tests/circles`: inside a crate, files name each other in one direction.
//! - `tests/defences.rs`: the patches that take defences out still apply.
//! - `tests/dependencies.rs`: which crate may know which, and which of them run without an operating system.
//! - `tests/figures`: how many lines of Rust a figure takes.
//! - `tests/rfc_coverage.rs`: which requirement of an RFC is tested where.
//! - `tests/words.rs`: what a documentation comment must not be.
//!
//! And [`browser`], which opens the pages of other crates' tests, too.

#![forbid(unsafe_code)]

pub mod browser;

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
