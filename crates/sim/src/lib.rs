//! A deterministic network simulator.

pub mod tcp;
