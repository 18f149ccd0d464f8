//! The laboratory: scenario files, runs on all cores, statistics, results on disk, and the papers'
//! experiments with their claims.

pub mod pool;
pub mod stats;
