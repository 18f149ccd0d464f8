//! The messages of the command and its exit codes: whole texts, so that a change of wording is seen.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct CommandOutput {
    out: String,
    err: String,
    code: Option<i32>,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairpace"));
    command.args(args).env("NO_COLOR", "1").env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn texts(output: Output) -> CommandOutput {
    let text = |bytes| String::from_utf8(bytes).expect("what it says is UTF-8");
    CommandOutput { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

fn fairpace(args: &[&str]) -> CommandOutput {
    texts(command(args).output().unwrap())
}

/// A file in a folder of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("command");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Checks that the command fails with `code`, prints nothing on stdout, and exactly this on stderr.
#[track_caller]
fn fails(args: &[&str], code: i32, message: &str) {
    let s = fairpace(args);
    assert_eq!(s.err, format!("{message}\n"), "{args:?}");
    assert_eq!(s.code, Some(code), "{args:?}");
    assert_eq!(s.out, "", "{args:?}");
}

#[test]
fn a_wrong_command_line_is_said_in_two_lines_with_the_nearest_right_one() {
    for (args, message) in [
        (
            &["rnu"][..],
            "error: `rnu` is not a command of Fairpace\n\nhint: did you mean `run`? `fairpace --help` shows all",
        ),
        (
            &["run", "x.toml", "--sed", "1"],
            "error: `--sed` is not an option of this command\n\nhint: did you mean `--seed`? `fairpace run --help` shows all",
        ),
        (&["run"], "error: `<SCENARIO>` is missing\n\nhint: usage: fairpace run <SCENARIO>"),
        (
            &["send", "test-pattern"],
            "error: `<HOST:PORT>` is missing\n\nhint: usage: fairpace send <FILE|test-pattern|-> <HOST:PORT>",
        ),
        (
            &["run", "x.toml", "--seed", "-1"],
            "error: `--seed` is `-1`: it is not a seed\n\nhint: write a whole number from 0 to 9007199254740991",
        ),
        (
            &["run", "x.toml", "--seed=minus"],
            "error: `--seed` is `minus`: it is not a seed\n\nhint: write a whole number from 0 to 9007199254740991",
        ),
        (
            &["run", "x.toml", "--seeds", "0"],
            "error: `--seeds` is `0`: it must be at least 1\n\nhint: write a whole number from 1 to 100000",
        ),
        (
            &["receive", "5004", "--playout", "5"],
            "error: `--playout` is `5`: it has no unit\n\nhint: write a number and ns, us, ms, s, min or h, as in `550 ms`; or `auto`",
        ),
        (
            &["demo", "--control", "rap:fine_grian"],
            "error: `--control` has `fine_grian` where a parameter should be\n\nhint: did you mean `fine_grain`? write parameters as in `rap:fine_grain=on`",
        ),
        (
            &["send", "test-pattern", "localhost:5004", "--control", "tcp-sack"],
            "error: `tcp-sack` runs in the simulator, the emulator and the relay only\n\nhint: as a flow of a scenario: TCP is the kernel's with `fairpace run SCENARIO --world emu`; `fairpace list controllers` shows which send over the network",
        ),
        (
            &["list", "contrlers"],
            "error: `[WHAT]` is `contrlers`, which is not one of its values\n\nhint: did you mean `controllers`? there are `controllers`, `links`, `flows`, `media`, `experiments`",
        ),
        (
            &["demo", "--seconds", "3 parsecs"],
            "error: `--seconds` is `3 parsecs`: the unit is not a time\n\nhint: write a number and ns, us, ms, s, min or h, as in `550 ms`",
        ),
        (
            &["send", "test-pattern", "localhost:5004", "--max-rate", "12"],
            "error: `--max-rate` is `12`: it has no unit\n\nhint: write a number and bit/s, kbit/s, Mbit/s or Gbit/s, as in `2.5 Mbit/s`",
        ),
        (
            &["send", "test-pattern", "localhost:5004", "--set", "rate"],
            "error: `--set` is `rate`: it has no `=`\n\nhint: write a parameter's name and its value, as in `rate=800kbit/s`",
        ),
    ] {
        fails(args, 2, message);
    }
}

#[test]
fn without_arguments_the_help_is_shown_and_it_is_a_usage_error() {
    let s = fairpace(&[]);
    assert_eq!(s.code, Some(2));
    assert!(s.err.contains("Usage: fairpace <COMMAND>"), "{}", s.err);
}

#[test]
fn the_help_names_every_command_the_exit_codes_and_where_to_start() {
    let s = fairpace(&["--help"]);
    assert_eq!(s.code, Some(0));
    for word in [
        "run",
        "compare",
        "compare-worlds",
        "sweep",
        "reproduce",
        "list",
        "plan",
        "report",
        "relay",
        "shell",
        "send",
        "receive",
        "demo",
        "doctor",
        "completions",
        "man",
    ] {
        assert!(
            s.out.lines().any(|l| l.trim_start().starts_with(&format!("{word} "))),
            "{word} is missing:\n{}",
            s.out
        );
    }
    assert!(s.out.contains("Exit codes:") && s.out.contains("fairpace demo"), "{}", s.out);
    // Only the command itself starts it.
    assert!(!s.out.contains("sweep-task"), "sweep-task is offered");
}

#[test]
fn every_command_has_help_with_an_example() {
    for name in [
        "run",
        "compare",
        "compare-worlds",
        "sweep",
        "reproduce",
        "list",
        "plan",
        "report",
        "relay",
        "shell",
        "send",
        "receive",
        "demo",
        "doctor",
        "completions",
        "man",
    ] {
        let s = fairpace(&[name, "--help"]);
        assert_eq!(s.code, Some(0), "{name}");
        assert!(s.out.contains("Examples:") && s.out.contains(&format!("fairpace {name}")), "{name}:\n{}", s.out);
        assert_eq!(s.err, "", "{name}");
        let same = fairpace(&["help", name]);
        assert_eq!((same.code, same.out), (Some(0), s.out), "help {name}");
    }
}

#[test]
fn the_version_says_commit_and_features() {
    let short = fairpace(&["-V"]).out;
    assert!(short.starts_with("fairpace 0.1.0 ("), "{short}");
    let long = fairpace(&["--version"]).out;
    assert!(long.contains("commit:   ") && long.contains("features: "), "{long}");
}

#[test]
fn controllers_are_listed_with_parameters_for_people_and_machines() {
    let text = fairpace(&["list", "controllers"]).out;
    for name in ["rcs", "rap", "srp", "crp", "mrp", "fixed", "tcp-newreno"] {
        assert!(text.lines().any(|l| l.trim_start().starts_with(&format!("{name}  "))), "{name}:\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&fairpace(&["list", "--json"]).out).unwrap();
    for key in
        ["controllers", "links", "satellite", "wireless", "hops", "run", "flows", "media", "streams", "experiments"]
    {
        assert!(json[key].as_array().is_some_and(|a| !a.is_empty()), "{key}");
    }
    let fixed = json["controllers"].as_array().unwrap().iter().find(|c| c["name"] == "fixed").unwrap();
    assert!(fixed["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "rate"), "{fixed}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let s = texts(child.wait_with_output().unwrap());
    assert_eq!((s.code, s.err.as_str()), (Some(0), ""));
}

#[test]
fn colours_never_reach_a_pipe() {
    let s = texts(command(&["list"]).env_remove("NO_COLOR").output().unwrap());
    assert!(!s.out.contains('\x1b'));
}

#[test]
fn completions_and_man_pages_come_for_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let s = fairpace(&["completions", shell]);
        assert!(s.code == Some(0) && s.out.contains("reproduce"), "{shell}");
    }
    assert!(fairpace(&["man"]).out.contains(".TH fairpace 1"));
    let dir = file("x", "").with_file_name("man");
    let s = fairpace(&["man", "--out", dir.to_str().unwrap()]);
    assert_eq!(s.code, Some(0), "{}", s.err);
    assert!(dir.join("fairpace-demo.1").exists());
}
