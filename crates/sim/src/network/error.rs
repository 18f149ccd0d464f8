//! Why a configuration cannot run.

use fairpace_path::{ArqError, DamaError, LinkError};

/// Why a configuration cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// Nothing to simulate.
    #[error("`flows` is empty; at least one flow is needed")]
    NoFlows,
    /// Two flows of one name would share their random streams.
    #[error("two flows are called `{name}`; names must be unique")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A link cannot be built.
    #[error("{link}: {source}")]
    Link {
        /// `bottleneck`, `reverse` or `flow.<name>.<side>`.
        link: String,
        /// The fault of the link.
        source: LinkError,
    },
    /// A satellite cannot be built.
    #[error("{hop}: {source}")]
    Satellite {
        /// The hop's name.
        hop: String,
        /// The fault of the satellite.
        source: DamaError,
    },
    /// A radio's downlink cannot be built.
    #[error("{hop}.downlink: {source}")]
    Radio {
        /// The hop's name.
        hop: String,
        /// The fault of the radio.
        source: ArqError,
    },
    /// Two hops of one name would share their random streams.
    #[error("two hops are called `{name}`; names must be unique")]
    DuplicateHop {
        /// The name.
        name: String,
    },
    /// A flow through a hop that is not there.
    #[error("flow `{flow}`: `route` has hop {found}; there are {hops} hops, numbered from 0")]
    NoHop {
        /// The flow's name.
        flow: String,
        /// The hop given.
        found: u32,
        /// How many there are.
        hops: usize,
    },
    /// A flow that would pass a hop twice.
    #[error("flow `{flow}`: `route` has `{hop}` twice; a packet passes each hop once at the most")]
    HopTwice {
        /// The flow's name.
        flow: String,
        /// The hop's name.
        hop: String,
    },
    /// A flow at a terminal or user that is not there.
    #[error("flow `{flow}`: `route` has port {found} of `{hop}`; that has {ports} ports, numbered from 0")]
    NoPort {
        /// The flow's name.
        flow: String,
        /// The hop's name.
        hop: String,
        /// The port given.
        found: u32,
        /// How many there are.
        ports: u32,
    },
    /// A flow that would not need the satellite.
    #[error(
        "flow `{flow}`: `route` has terminal {terminal} of `{hop}` twice; sender and receiver must be at different ones"
    )]
    SameTerminal {
        /// The flow's name.
        flow: String,
        /// The hop's name.
        hop: String,
        /// The terminal.
        terminal: u32,
    },
    /// A flow whose feedback would come from another user.
    #[error("flow `{flow}`: `route` has users {users:?} of `{hop}`; its receiver is one user, twice the same number")]
    TwoUsers {
        /// The flow's name.
        flow: String,
        /// The hop's name.
        hop: String,
        /// The users.
        users: [u32; 2],
    },
    /// A controller cannot be built.
    #[error("flow `{flow}`: {source}")]
    Controller {
        /// The flow's name.
        flow: String,
        /// The fault of the settings.
        source: fairpace_control::ParamError,
    },
    /// A flow over TCP and UDP in turn has no TCP.
    #[error("flow `{flow}`: `{controller}` sends over TCP too, and `tcp` is missing; give it one")]
    NoTcpHalf {
        /// The flow's name.
        flow: String,
        /// Its controller.
        controller: String,
    },
    /// A TCP that nothing would be sent over.
    #[error("flow `{flow}`: `tcp` is given, and `{controller}` sends over UDP only; leave it out")]
    UselessTcpHalf {
        /// The flow's name.
        flow: String,
        /// Its controller.
        controller: String,
    },
    /// A value that cannot be.
    #[error("`{field}` is {found}; {allowed}")]
    BadValue {
        /// The field.
        field: String,
        /// The value found.
        found: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
}
