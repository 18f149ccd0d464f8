//! `fairpace man`: made from the command line's own description.

use crate::args::{Cli, Man};
use crate::error::{Failure, Outcome};
use clap::CommandFactory as _;
use std::io::Write as _;

pub(crate) fn run(args: &Man) -> Outcome {
    // `help` has no page for each page.
    let mut command = Cli::command().disable_help_subcommand(true);
    match &args.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Ok(std::io::stdout().write_all(&page)?)
        }
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|e| Failure::file("make", dir, &e))?;
            command.build();
            clap_mangen::generate_to(command, dir).map_err(|e| Failure::file("write to", dir, &e))
        }
    }
}
