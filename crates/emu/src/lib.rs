//! The emulator: the simulator's network in real time, between the TUN devices of two network
//! namespaces, for programs and for the kernel's own TCP.
//!
//! ```text
//!   namespace `senders`                                     namespace `receivers`
//!   programs ── kernel ── TUN ──▶ path, forward ──▶ TUN ── kernel ── programs
//!                             ◀── path, back    ◀──
//! ```

mod error;
mod lock;
pub mod netlink;
pub mod sandbox;

pub use error::EmuError;
pub use lock::RealTimeLock;
pub use sandbox::{NetNs, Rights, Sandbox, drop_privileges, privileged_threads};
