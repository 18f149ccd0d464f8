//! The emulator: the simulator's network in real time, between the TUN devices of two network
//! namespaces, for programs and for the kernel's own TCP.
//!
//! ```text
//!   namespace `senders`                                     namespace `receivers`
//!   programs ── kernel ── TUN ──▶ path, forward ──▶ TUN ── kernel ── programs
//!                             ◀── path, back    ◀──
//! ```
