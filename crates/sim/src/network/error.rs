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
        /// What is wrong with it.
        source: LinkError,
    },
    /// The satellite cannot be built.
    #[error("satellite: {0}")]
    Satellite(#[from] DamaError),
    /// A flow through a satellite that is not there.
    #[error("flow `{flow}`: `terminals` is given, and there is no satellite; give `dama`, or leave `terminals` out")]
    NoSatellite {
        /// The flow's name.
        flow: String,
    },
    /// A terminal that is not there.
    #[error("flow `{flow}`: `terminals` has {found}; the satellite has {terminals} terminals, numbered from 0")]
    NoTerminal {
        /// The flow's name.
        flow: String,
        /// The terminal given.
        found: u32,
        /// How many there are.
        terminals: u32,
    },
    /// A flow that would not need the satellite.
    #[error("flow `{flow}`: `terminals` has {terminal} twice; sender and receiver must be at different ones")]
    SameTerminal {
        /// The flow's name.
        flow: String,
        /// The terminal.
        terminal: u32,
    },
    /// The radio's downlink cannot be built.
    #[error("radio.downlink: {0}")]
    Radio(#[from] ArqError),
    /// A flow over a radio that is not there.
    #[error("flow `{flow}`: `user` is given, and there is no radio; give `radio`, or leave `user` out")]
    NoRadio {
        /// The flow's name.
        flow: String,
    },
    /// A user that is not there.
    #[error("flow `{flow}`: `user` is {found}; the radio has {users} users, numbered from 0")]
    NoUser {
        /// The flow's name.
        flow: String,
        /// The user given.
        found: u32,
        /// How many there are.
        users: u32,
    },
    /// Two hops in one place.
    #[error("flow `{flow}`: `user` and `access.{side}` are given; the user's link is that hop, leave one of them out")]
    TwoHops {
        /// The flow's name.
        flow: String,
        /// `forward_out` or `back_in`.
        side: &'static str,
    },
    /// A controller cannot be built.
    #[error("flow `{flow}`: {source}")]
    Controller {
        /// The flow's name.
        flow: String,
        /// What is wrong with its settings.
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
        /// What it is.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
}
