//! `fairpace completions`: made from the command line's own description.

use crate::args::{Cli, Completions};
use crate::error::Outcome;
use clap::CommandFactory as _;
use std::io::Write as _;

pub(crate) fn run(args: &Completions) -> Outcome {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fairpace", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
