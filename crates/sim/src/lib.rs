//! A deterministic network simulator: link models and rate controllers driven in virtual time,
//! beside TCP.
//!
//! [`run`] takes a [`SimConfig`] (hops, the flows over them, what to record) and returns a
//! [`SimReport`]. The same configuration and seed give the same report, bit for bit, on every
//! machine. Nothing here does I/O or reads a clock.
//!
//! ```
//! use fairpace_path::{Capacity, DelayModel, LinkSpec, QueueModel, RateModel};
//! use fairpace_sim::{FlowConfig, HopConfig, Protocol, SimConfig, run};
//! use fairpace_sim::tcp::{TcpParams, TcpSource};
//! use fairpace_units::{Duration, Packets, Rate};
//!
//! let config = SimConfig {
//!     duration: Duration::from_secs(30),
//!     warmup: Duration::from_secs(10),
//!     hops: vec![HopConfig::path(
//!         LinkSpec {
//!             rate: RateModel::Fixed(Rate::mbps(8.0)), // 1,000 packets/s
//!             delay: DelayModel::constant(Duration::from_millis(25)),
//!             queue: QueueModel::DropTail { capacity: Capacity::Packets(Packets::new(100)) },
//!             ..LinkSpec::default()
//!         },
//!         LinkSpec { delay: DelayModel::constant(Duration::from_millis(25)), ..LinkSpec::default() },
//!     )],
//!     flows: vec![FlowConfig::new("tcp", Protocol::Tcp(TcpParams::default(), TcpSource::Ftp))],
//!     ..SimConfig::default()
//! };
//! let report = run(config)?;
//! // A buffer of two bandwidth-delay products keeps the link full through every halving.
//! assert!(report.flows[0].goodput_pps() > 990.0);
//! assert!(report.engine.events_per_packet_hop() < 1.1);
//! # Ok::<(), fairpace_sim::SimError>(())
//! ```
//!
//! Where to read: [`SimConfig`] (what a run is made of), [`Network`] (the loop, and the interface
//! of the real-time relay), [`engine`] (pending events), [`tcp`], `media` (the driver loop of
//! rate-controlled flows), [`RadioConfig`] and [`BaseStation`], [`pcapng`].

mod base_station;
mod bursts;
mod check;
mod config;
mod constant;
mod counts;
mod delay_histogram;
pub mod engine;
mod flow_state;
mod hop;
mod least_delay;
mod media;
mod network;
mod packet;
pub mod pcapng;
mod prefetch;
mod radio;
mod report;
mod satellite;
pub mod tcp;

pub use base_station::{Allotted, BaseStation, BaseStationSpec, MOST_WINDOWS_NOTED, Member, Promise, WindowRow};
pub use bursts::{Bursts, OnOff};
pub use config::{
    Access, Coming, ConstantConfig, ControllerSpec, DeJitter, DelayBaseline, EncodedSize, FlowConfig, FrameSource,
    MediaConfig, Protocol, ReceiverBehaviour, SimConfig, Source, TcpHalf,
};
pub use constant::ConstantSender;
pub use delay_histogram::DelayHistogram;
pub use flow_state::{MANY_FLOWS, MOST_FLOWS_TRACED};
pub use hop::{CustomSpec, HopConfig, RouteHop};
pub use network::{BOTTLENECK, Delivered, Dropped, Entering, Network, REVERSE, SimError, Ticket, run, run_observed};
pub use packet::{Body, Carries, Direction, FlowId, Packet, QuickStart};
pub use pcapng::{Observer, PacketEvent, PacketFate, PcapWriter};
pub use radio::{MOST_SLOTS_NOTED, MOST_USERS_NOTED, RadioConfig, RadioReport, UserReport, UserRow};
pub use report::{
    EngineStats, FlowCounts, FlowReport, FrameRecord, GroupReport, LinkReport, LinkRow, MediaReport, PacketRecord,
    SeriesRow, SimReport, TcpReport,
};
pub use satellite::{
    CarrierPlan, MOST_SATELLITE_EVENTS, MOST_TERMINALS_NOTED, SatelliteReport, TerminalReport, TerminalRow,
};
