//! One file per subcommand.

pub(crate) mod cell;
pub(crate) mod compare_worlds;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod receive;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod shell;
pub(crate) mod sweep;
