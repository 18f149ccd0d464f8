//! `fairpace`: the command.
//!
//! This crate reads the command line, shows what comes out, and ends with a code that means
//! something; everything else is in the other crates. Data goes to stdout, all else to stderr.
//!
//! Read first: `args.rs` (every flag), `error.rs` (messages and codes), then `cmd/` (one file per
//! subcommand) and `demo.rs` (the main job).

#![forbid(unsafe_code)]

mod alone;
mod args;
mod capture;
mod cmd;
mod confine;
mod demo;
mod error;
mod opener;
mod outputs;
mod profile;
mod provenance;
mod stats;
mod stop;
mod term;
mod usage;

use args::{Cli, Command};
use clap::Parser as _;
use error::Outcome;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(arguments) = fairpace_emu::process::arguments() {
        return ExitCode::from(fairpace_emu::process::init(&arguments));
    }
    if let Some(arguments) = opener::arguments() {
        return end(opener::run(&arguments));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    end(run(cli.command))
}

fn end(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "{failure}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Run(args) => cmd::run::run_one(&args),
        Command::Compare(args) => cmd::run::run_several(&args),
        Command::CompareWorlds(args) => cmd::compare_worlds::run(&args),
        Command::Sweep(args) => cmd::sweep::run(&args),
        Command::SweepTask(args) => cmd::sweep::task(&args),
        Command::Reproduce(args) => cmd::reproduce::run(&args),
        Command::Plan(args) => cmd::plan::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Send(args) => cmd::send::run(&args),
        Command::Receive(args) => cmd::receive::run(&args),
        Command::Relay(args) => cmd::relay::run(&args),
        Command::Cell(args) => cmd::cell::run(&args),
        Command::Shell(args) => cmd::shell::run(&args),
        Command::List(args) => cmd::list::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Key(args) => cmd::key::run(&args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
    }
}
