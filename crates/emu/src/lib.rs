//! The emulator: the simulator's network in real time, between the TUN devices of two network
//! namespaces, for programs and for the kernel's own TCP.
//!
//! ```text
//!   namespace `senders`                                     namespace `receivers`
//!   programs ── kernel ── TUN ──▶ path, forward ──▶ TUN ── kernel ── programs
//!                             ◀── path, back    ◀──
//! ```
//!
//! - [`Testbed`]: the path between the namespaces of a [`Sandbox`].
//! - [`relay`]: a path between two UDP ports, without any namespace.

mod address;
mod bridge;
mod call_filter;
mod capture;
mod device;
mod error;
mod ip;
mod lock;
pub mod netlink;
mod priority;
mod privileges;
pub mod process;
pub mod relay;
mod report;
pub mod sandbox;
mod segment;
mod store;
mod testbed;

pub use address::{FlowAddresses, Side};
pub use call_filter::CallFilter;
pub use error::{EmuError, Holder};
pub use lock::RealTimeLock;
pub use priority::spawn_first;
pub use privileges::{Kept, drop_privileges, drop_privileges_but, privileged_threads};
pub use report::{EmuReport, Limits, SideReport};
pub use sandbox::{Door, NetNs, Rights, Sandbox};
pub use testbed::{FarEnd, Running, Testbed, TestbedOptions};
