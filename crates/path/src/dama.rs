//! DAMA: the return link of a satellite, shared by terminals that ask for capacity.

mod event;
mod spec;

pub use event::{BurstTimePlan, DamaEvent, DamaEventKind, TerminalCounters};
pub use spec::{DamaError, DamaSpec, SlotLayout};
