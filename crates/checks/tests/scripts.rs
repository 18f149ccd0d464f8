//! Scripts that only `make bench` and `make soak` run are read by their interpreters here, so that none is broken unseen.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Every file of these folders with its first line.
fn scripts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["scripts", "bench", ".ci"].map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"));
    let files = files.into_iter().flatten().map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let first = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a file");
        let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        (path, String::from_utf8_lossy(line).into_owned())
    };
    files.map(first).collect()
}

#[test]
fn every_script_is_a_program_of_its_language() {
    let mut read = 0;
    for (path, first) in scripts() {
        let mut command = match first.rsplit(['/', ' ']).next() {
            Some("python3") => {
                let mut python = Command::new("python3");
                python.args(["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])"]);
                python
            }
            Some(shell @ ("sh" | "bash")) => {
                let mut shell = Command::new(shell);
                shell.arg("-n");
                shell
            }
            _ => continue,
        };
        let output = command.arg(&path).output().expect("its interpreter");
        assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
        read += 1;
    }
    assert!(read >= 15, "only {read} scripts found");
}
