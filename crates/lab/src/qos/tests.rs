//! The analysis against numbers by hand and against every realisation of the channel.

use super::*;
use fairpace_path::{ArqScheme, Channel};

#[test]
fn without_memory_successes_are_binomial() {
    let process = Process::new(&Channel::memoryless(0.1).unwrap(), ArqScheme::Persistent, 0).unwrap();
    // 3 of 4: 4 x 0.9^3 x 0.1.
    for start in [Start::Stationary, Start::AfterSuccess] {
        let t = process.successes(4, start);
        assert_eq!(t.len(), 5);
        assert!((t[3] - 0.2916).abs() < 1e-15, "{t:?}");
        assert!((process.mean_successes(4, start) - 3.6).abs() < 1e-12);
    }
}
