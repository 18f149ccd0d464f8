//! The tutorial is true: its scenarios are read, its commands run, their output is what the pages show, and its Rust is in
//! `docs/tutorial/sawtooth.rs`, which `fairpace-control` compiles and tests.
//!
//! A block of TOML whose first line is `# NAME.toml` becomes that file. In a block marked `console` a line that begins with
//! `$ ` is a command, and what follows is its output. `FAIRPACE_BLESS=1 cargo test -p fairpace --test tutorial` writes the
//! output into the pages.

use fairpace_scenario::Scenario;
use std::path::Path;
use std::process::Command;

/// The pages in reading order; the later ones use files of the earlier ones.
const PAGES: [&str; 4] = ["first-run", "first-scenario", "reading-a-report", "first-controller"];

/// The fenced blocks of `page`: the word or words behind the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = vec![];
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => open = Some((info.into(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn the_tutorial_shows_what_its_commands_print() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(root.join("scenarios"), work.join("scenarios")).unwrap();
    let bless = std::env::var_os("FAIRPACE_BLESS").is_some();
    let controller = std::fs::read_to_string(root.join("docs/tutorial/sawtooth.rs")).unwrap();
    let (mut scenarios, mut commands) = (0, 0);
    for name in PAGES {
        let path = Path::new("docs/tutorial").join(name).with_extension("md");
        let mut text = std::fs::read_to_string(root.join(&path)).unwrap();
        for (info, block) in blocks(&text.clone()) {
            if let Some(kind) = info.strip_prefix("toml") {
                scenarios += 1;
                let file = block.lines().next().and_then(|l| l.strip_prefix("# ")).expect("a scenario has a name");
                std::fs::write(work.join(file), &block).unwrap();
                let read = Scenario::parse(&block, file);
                assert_eq!(read.is_err(), kind == " invalid", "{name}: {file}: {:?}", read.err());
            } else if info == "rust" {
                let code: Vec<&str> = block.lines().map(str::trim).collect();
                let there: Vec<&str> = controller.lines().map(str::trim).collect();
                assert!(there.windows(code.len()).any(|w| w == code), "{name}: not in sawtooth.rs:\n{block}");
            } else if info == "console" {
                let (shown, ran) = (block.trim_end(), run_all(&block, &work));
                commands += ran.matches("$ ").count();
                if bless {
                    text = text.replacen(shown, &ran, 1);
                } else {
                    assert_eq!(shown, ran, "{name}: FAIRPACE_BLESS=1 writes the new output into the page");
                }
            }
        }
        if bless {
            std::fs::write(root.join(&path), text).unwrap();
        }
    }
    assert!(
        scenarios >= 3 && commands >= 5,
        "{scenarios} scenarios and {commands} commands: the reader of blocks is broken"
    );
}

/// The block with the output that its commands have now.
fn run_all(block: &str, work: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_fairpace")).parent().unwrap();
    let search = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shown = String::new();
    for command in block.lines().filter_map(|l| l.strip_prefix("$ ")) {
        let out = Command::new("sh")
            .args(["-c", &format!("{{ {command}; }} 2>&1")])
            .current_dir(work)
            .env("PATH", &search)
            .output()
            .unwrap();
        shown += &format!("$ {command}\n{}\n", String::from_utf8(out.stdout).unwrap().trim_end());
    }
    // Blanks at the ends of lines are not to be seen.
    shown.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
