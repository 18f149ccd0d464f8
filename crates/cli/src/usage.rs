//! A wrong command line, in the same form as every other error: what was found, and what is allowed.

use crate::args::Cli;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fairpace_scenario::nearest;
use std::error::Error as _;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Shows help and version as they are; everything else becomes `error: …` and `hint: …`.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // To stdout; a reader that has gone away is no error.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(crate::error::code::USAGE)
        }
        _ => {
            let (message, hint) = explain(error);
            let _ = writeln!(std::io::stderr(), "error: {message}\n\nhint: {hint}");
            ExitCode::from(crate::error::code::USAGE)
        }
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(s) => Some(s.clone()),
        ContextValue::Strings(list) => list.first().cloned(),
        _ => None,
    }
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(list)) => list.clone(),
        Some(ContextValue::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

/// The name of an argument without its value: `--seed <N>` is `--seed`.
fn bare(argument: &str) -> &str {
    argument.split(" <").next().unwrap_or(argument)
}

/// The command that was being read, as far as the line names one, and how to write it.
fn command() -> (clap::Command, String) {
    let (mut command, mut name) = (Cli::command(), "fairpace".to_owned());
    for word in std::env::args().skip(1) {
        let Some(next) = command.find_subcommand(&word).cloned() else { break };
        name = format!("{name} {}", next.get_name());
        command = next;
    }
    (command, name)
}

fn explain(error: &clap::Error) -> (String, String) {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let usage = usage.trim().trim_start_matches("Usage:").trim();
    let (command, name) = command();
    let help = format!("{name} --help");
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let valid = texts(error, ContextKind::ValidValue);
    let one_of = || valid.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ");
    let mean = |kind| text(error, kind).map(|s| format!("did you mean `{s}`? "));
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let near = mean(ContextKind::SuggestedArg).unwrap_or_default();
            (format!("`{argument}` is not an option of this command"), format!("{near}`{help}` shows all"))
        }
        ErrorKind::InvalidSubcommand => {
            let found = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let near = nearest(&found, command.get_subcommands().map(clap::Command::get_name))
                .map(|n| format!("did you mean `{n}`? "))
                .unwrap_or_default();
            let of = if name == "fairpace" { "Fairpace".to_owned() } else { format!("`{name}`") };
            (format!("`{found}` is not a command of {of}"), format!("{near}`{help}` shows all"))
        }
        ErrorKind::InvalidValue if value.is_empty() => (
            format!("`{}` needs a value", bare(&argument)),
            if valid.is_empty() { format!("`{help}` says which") } else { one_of() },
        ),
        ErrorKind::InvalidValue => {
            let near = mean(ContextKind::SuggestedValue).unwrap_or_default();
            (
                format!("`{}` is `{value}`, which is not one of its values", bare(&argument)),
                format!("{near}there are {}", one_of()),
            )
        }
        ErrorKind::ValueValidation => {
            let reason = error.source().map(ToString::to_string).unwrap_or_default();
            // Our own parsers say "reason; what is allowed".
            match reason.split_once("; ") {
                Some((reason, allowed)) => {
                    (format!("`{}` is `{value}`: {reason}", bare(&argument)), allowed.to_owned())
                }
                None => {
                    (format!("`{}` is `{value}`: {reason}", bare(&argument)), format!("`{help}` says what is allowed"))
                }
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(error, ContextKind::InvalidArg).iter().fold(String::new(), |mut all, m| {
                let _ = write!(all, "{}`{m}`", if all.is_empty() { "" } else { " and " });
                all
            });
            let are = if missing.contains(" and ") { "are" } else { "is" };
            (format!("{missing} {are} missing"), format!("usage: {usage}"))
        }
        ErrorKind::ArgumentConflict => {
            let prior = texts(error, ContextKind::PriorArg);
            let against = prior.first().map_or("itself", |p| bare(p));
            (format!("`{}` cannot be used with `{against}`", bare(&argument)), "leave one of them out".into())
        }
        _ => {
            let all = error.to_string();
            let first = all.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            (first, format!("`{help}` shows what is allowed"))
        }
    }
}
