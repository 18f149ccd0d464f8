//! Commands that hear the network give up what they do not need once their sockets and files are open.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod wire;
}

use common::program::folder;
use common::wire::listening;

/// Run as root this shows that root's capabilities are gone; as another user, that none can be had by a program.
#[test]
fn receive_and_relay_have_no_capability_once_they_listen() {
    let link = folder("privileges").join("link.toml");
    std::fs::write(&link, "duration = \"60 s\"\n[path]\nrate = \"4 Mbit/s\"\nrtt = \"40 ms\"\n").unwrap();
    let relay = ["relay", link.to_str().unwrap(), "--listen", "0", "--to", "127.0.0.1:9", "-4"];
    for args in [&["receive", "0", "-4", "--tcp"][..], &relay] {
        let (mut child, _) = listening(args);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let tasks: Vec<_> =
            tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        for status in tasks {
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
                assert_eq!(field(set), "0000000000000000", "{args:?}: {set}");
            }
            assert_eq!(field("NoNewPrivs:"), "1", "{args:?}");
        }
    }
}
