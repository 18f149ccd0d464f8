//! Several streams of one file, and a receiver of several senders.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    pub(crate) mod program;
    pub(crate) mod wire;
}

use common::program::{command, folder, text};
use common::wire::{json, listening, listening_with_messages};
use serde_json::Value;
use std::path::PathBuf;

/// An empty folder of that test.
fn fresh(name: &str) -> PathBuf {
    let dir = folder("streams").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn streams_of_a_file_arrive_each_with_files_of_its_own_and_one_that_fails_ends_alone() {
    let dir = fresh("three");
    let (out, sent, stats) = (dir.join("a.ivf"), dir.join("streams.toml"), dir.join("s.jsonl"));
    let receive = ["receive", "0", "--senders", "3", "--json", "--out", out.to_str().unwrap()];
    let (receiver, port) = listening(&receive);
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = format!(
        "[defaults]\nto = \"127.0.0.1:{port}\"\nsource = \"model\"\nmax_rate = \"500 kbit/s\"\nseconds = \"3 s\"\n\
         [[streams]]\nname = \"one\"\n[[streams]]\nname = \"two\"\ncontrol = \"rap\"\n\
         [[streams]]\nname = \"nobody\"\nto = \"{closed}\"\n\
         [[streams]]\nname = \"three\"\ncontrol = \"fixed\"\nset = {{ rate = \"300 kbit/s\" }}\n"
    );
    std::fs::write(&sent, file).unwrap();
    let send = ["send", "--streams", sent.to_str().unwrap(), "--json", "--stats", stats.to_str().unwrap()];
    let sent = command(&send).output().unwrap();
    let received = receiver.wait_with_output().unwrap();
    let said = text(&sent.stderr);
    assert_eq!(sent.status.code(), Some(5), "{said}");
    assert!(said.contains("1 of 4 streams failed; `nobody`: ") && said.contains("one: the receiver answers"), "{said}");
    assert_eq!(received.status.code(), Some(0), "{}", text(&received.stderr));
    let sent = json(&sent);
    let codes = ["one", "two", "nobody", "three"].map(|name| sent["streams"][name]["exit_code"].as_u64());
    assert_eq!((codes, sent["exit_code"].as_u64()), ([Some(0), Some(0), Some(5), Some(0)], Some(5)), "{sent}");
    let mut told: Vec<Value> = text(&received.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = told.pop().unwrap();
    assert!(refused["session"].is_null() && refused["refused_challenges"] == 0, "{refused}");
    assert_eq!(told.len(), 3, "{told:?}");
    let count = |name: &str| sent["streams"][name]["data"]["sent_packets"].as_u64().unwrap();
    let mut left = ["one", "two", "three"].map(count);
    let mut came: Vec<u64> = told.iter().map(|t| t["media"]["expected_packets"].as_u64().unwrap()).collect();
    left.sort_unstable();
    came.sort_unstable();
    assert_eq!(came, left);
    for session in 1..=3 {
        let bytes = std::fs::read(dir.join(format!("a-{session}.ivf"))).unwrap();
        assert!(bytes.len() > 100 && bytes.starts_with(b"DKIF"), "{session}");
    }
    assert!(!dir.join("a-4.ivf").exists(), "of no session");
    let stats = std::fs::read_to_string(&stats).unwrap();
    for name in ["one", "two", "three"] {
        let of = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["stream"] == name;
        assert!(stats.lines().filter(of).count() >= 2, "{name}: {stats}");
    }
}

#[test]
fn each_stream_has_its_own_architecture_between_encoder_and_controller() {
    let dir = fresh("adaptation");
    let (receiver, port) = listening(&["receive", "0", "--senders", "3", "--json"]);
    // The controller gives 285 kbit/s to media: an encoder of 600 fills 20 kB within a second.
    let file = format!(
        "[defaults]\nto = \"127.0.0.1:{port}\"\nsource = \"model\"\nseconds = \"4 s\"\ncontrol = \"fixed\"\nset = {{ rate = \"300 kbit/s\" }}\n\
         adaptation = \"buffer\"\nencoder_rate = \"600 kbit/s\"\nbuffer = \"20 kB\"\n\
         [[streams]]\nname = \"buffered\"\n\
         [[streams]]\nname = \"coded\"\nsource = \"constant:200 kbit/s\"\n\
         [[streams]]\nname = \"unbuffered\"\nadaptation = \"unbuffered\"\n"
    );
    let path = dir.join("s.toml");
    std::fs::write(&path, file).unwrap();
    let sent = command(&["send", "--streams", path.to_str().unwrap(), "--json"]).output().unwrap();
    receiver.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let sent = json(&sent);
    let of = |name: &str| &sent["streams"][name]["adaptation"];
    let (buffered, coded, unbuffered) = (of("buffered"), of("coded"), of("unbuffered"));
    assert_eq!((&buffered["who"], &buffered["encoder_rate_bps"]), (&"buffer".into(), &6e5.into()), "{buffered}");
    assert_eq!((&buffered["buffer_bytes"], &coded["who"]), (&20_000.into(), &"buffer".into()), "{buffered} {coded}");
    assert_eq!((&unbuffered["who"], &unbuffered["buffer_bytes"]), (&"unbuffered".into(), &Value::Null), "{unbuffered}");
    // Of 300 kB half finds no room; the source of 200 kbit/s, which has its own rate, fills nothing.
    assert!((60_000..=260_000).contains(&buffered["dropped_bytes"].as_u64().unwrap()), "{buffered}");
    assert_eq!((&coded["dropped_bytes"], &unbuffered["dropped_bytes"]), (&0.into(), &0.into()), "{coded} {unbuffered}");
}

#[test]
fn a_file_of_streams_is_refused_as_a_scenario_is_before_anything_is_sent() {
    let dir = fresh("refused");
    let path = dir.join("s.toml");
    nix::unistd::mkfifo(&dir.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let cases = [
        (
            "[[streams]]\nname = \"a\"\nsouce = \"model\"\nto = \"127.0.0.1:9\"\n",
            ":3: `streams[0].souce` is not a field",
            "did you mean `source`",
        ),
        ("[defaults]\nto = \"127.0.0.1:9\"\n", ": `streams` is missing", "at least one `[[streams]]`"),
        (
            "[[streams]]\nname = \"a\"\nsource = \"model\"\nto = \"127.0.0.1\"\n",
            ":4: `streams[0].to` is `127.0.0.1`, which cannot be used",
            "no port",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"absent.ivf\"\nto = \"127.0.0.1:9\"\n",
            ":3: `streams[0].source` is `absent.ivf`, which cannot be",
            "",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"pipe\"\nto = \"127.0.0.1:9\"\n",
            ":3: `streams[0].source` is `pipe`, which is a pipe",
            "fairpace send -",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"model\"\nto = \"127.0.0.1:9\"\nkey_file = \"absent\"\n",
            ":5: `streams[0].key_file`",
            "fairpace key",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"model\"\nto = \"127.0.0.1:9\"\nbuffer = \"1 MB\"\nencoder_rate = \"9 kbit/s\"\n",
            ":5: `streams[0].buffer` is `1 MB`, which is of no effect under the adaptation `encoder`",
            "adaptation = \"buffer\"",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"model\"\nto = \"127.0.0.1:9\"\nadaptation = \"unbuffered\"\ncontrol = \"tfrc-sp\"\n",
            ":5: `streams[0].adaptation` is `unbuffered`, which cannot be used",
            "least distance of two packets",
        ),
        (
            "[[streams]]\nname = \"a\"\nsource = \"constant:1 Mbit/s\"\nto = \"127.0.0.1:9\"\nadaptation = \"buffer\"\n\
             encoder_rate = \"1 Mbit/s\"\n",
            ":6: `streams[0].encoder_rate` is `1 Mbit/s`, which is of no effect on a source that is encoded already",
            "leave it out",
        ),
    ];
    for (file, said, more) in cases {
        std::fs::write(&path, file).unwrap();
        let refused = command(&["send", "--streams", path.to_str().unwrap()]).output().unwrap();
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{told}");
        assert!(told.contains(said) && told.contains(more), "{told}\nis not\n{said} … {more}");
    }
    for (arguments, said) in [
        (&["send", "--streams", "s.toml", "--control", "rcs"][..], "cannot be used with"),
        (&["send", "model"], "HOST:PORT"),
        (&["receive", "0", "--senders", "2", "--tcp"], "`--tcp` does not go with `--senders`"),
        (&["receive", "0", "--senders", "0"], "from 1 to 1000"),
    ] {
        let refused = command(arguments).output().unwrap();
        let told = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && told.contains(said), "{told}");
    }
}

#[test]
fn who_is_refused_is_told_of_while_the_receiver_runs_and_in_json() {
    let dir = fresh("told");
    let (key, other, file) = (dir.join("a.key"), dir.join("b.key"), dir.join("s.toml"));
    for key in [&key, &other] {
        assert!(command(&["key", key.to_str().unwrap()]).status().unwrap().success());
    }
    let receive = ["receive", "0", "--senders", "2", "--json", "--key-file", key.to_str().unwrap()];
    let (receiver, port, said) = listening_with_messages(&receive);
    let stream = |name: &str, key: &str| format!("[[streams]]\nname = \"{name}\"\nkey_file = \"{key}\"\n");
    let streams = ["one", "two", "three"].map(|name| stream(name, "a.key")).concat() + &stream("wrong", "b.key");
    let defaults = "source = \"constant:200 kbit/s\"\nseconds = \"3 s\"\n";
    std::fs::write(&file, format!("[defaults]\nto = \"127.0.0.1:{port}\"\n{defaults}{streams}")).unwrap();
    let sent = command(&["send", "--streams", file.to_str().unwrap(), "--json"]).output().unwrap();
    let codes = ["one", "two", "three", "wrong"].map(|name| json(&sent)["streams"][name]["exit_code"].as_u64());
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 2, "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    let said: Vec<String> = said.join().unwrap().lines().map(str::to_owned).collect();
    let at =
        |what: &str| said.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {said:?}"));
    let end = at("datagrams that belonged to no session: ");
    assert!(at("note: datagrams come that the key does not open") < end, "{said:?}");
    assert!(at("note: datagrams come that asked while all places were taken") < end, "{said:?}");
    let refused: Value = serde_json::from_str(text(&received.stdout).lines().last().unwrap()).unwrap();
    let counts = ["unsealed_datagrams", "refused_challenges"].map(|name| refused[name].as_u64());
    assert!(counts.iter().all(|count| *count > Some(0)), "{refused}");
}
