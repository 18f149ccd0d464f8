//! `fairpace shell`, run for real: namespaces, TUN devices, kernel sockets behind the link. Skips, with the reason, where
//! the system allows none of it. One at a time, as the command itself demands.

#![allow(clippy::disallowed_methods, reason = "the test itself waits, and measures what a user would")]

mod common {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub(crate) mod capture;
    pub(crate) mod turn;
}

use common::capture::{PACKET, blocks};
use common::turn::{BUSY, wait_for};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FAIRPACE: &str = env!("CARGO_BIN_EXE_fairpace");

fn file(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shell");
    fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

/// One after the other: a second run in real time would be refused. Root gives this test, and what it starts, a network
/// of its own for a host, so that runs of others on this machine are not in the way.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if root() {
        let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET);
    }
    turn
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(FAIRPACE);
    command.arg("shell").args(args).env("NO_COLOR", "1").env_remove("FAIRPACE_SHELL").stdin(Stdio::null());
    command
}

fn run(mut command: Command) -> Output {
    wait_for(|| command.output().unwrap())
}

fn shell(args: &[&str]) -> Output {
    run(command(args))
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether this system lets one run a shell at all; says why not.
fn possible() -> bool {
    let tried = shell(&["--delay", "1ms", "-q", "--", "true"]);
    if tried.status.code() == Some(4) {
        println!("skipped: {}", err(&tried).lines().next().unwrap_or_default());
        return false;
    }
    assert!(tried.status.success(), "{tried:?}");
    true
}

/// This test program once more, doing what `helper` does: as a command behind the link.
fn helper(name: &str) -> String {
    format!("{} --ignored --exact {name} --nocapture --quiet", std::env::current_exe().unwrap().display())
}

/// Numbers of the lines `name=…` in what a helper wrote.
fn numbers(text: &str, name: &str) -> Vec<u64> {
    // libtest writes its own words before them on the line.
    text.split_whitespace().filter_map(|w| w.strip_prefix(name)?.strip_prefix('=')?.parse().ok()).collect()
}

/// Round trips of ICMP to the addresses in `$PING`, three each, in microseconds. The far kernel answers.
#[test]
#[ignore = "runs behind a link"]
fn helper_ping() {
    let to = std::env::var("PING").unwrap();
    for address in to.split(',').map(|a| a.parse::<IpAddr>().unwrap()) {
        let (domain, protocol, request) = match address {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128),
        };
        let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect(&SockAddr::from(SocketAddr::new(address, 0))).unwrap();
        let mut socket = socket;
        for n in 0..3 {
            let sent = Instant::now();
            socket.send(&[request, 0, 0, 0, 0, 0, 0, n]).unwrap();
            let mut answer = [0; 64];
            let length = socket.read(&mut answer).unwrap();
            assert_eq!(answer[length - 1], n);
            println!(" rtt={} ", sent.elapsed().as_micros());
        }
    }
}

/// Twenty datagrams to `$FAIRPACE_FAR`, 20 ms apart; then nothing.
#[test]
#[ignore = "runs behind a link"]
fn helper_datagrams() {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    for _ in 0..20 {
        // The far kernel's refusals are no matter.
        let _ = socket.send_to(&[0; 100], (std::env::var("FAIRPACE_FAR").unwrap().as_str(), 5001));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(60));
}

/// Takes one connection on `$PORT`, both families, and gives back all that comes.
#[test]
#[ignore = "runs at the far end"]
fn helper_serve() {
    let listener = TcpListener::bind(("::", 5001)).unwrap();
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&(all.len() as u64).to_be_bytes()).unwrap();
    }
}

/// Sends 100 kB to the far end over each family, and prints how much came.
#[test]
#[ignore = "runs behind a link"]
fn helper_upload() {
    for far in ["FAIRPACE_FAR", "FAIRPACE_FAR_IPV6"] {
        let address = SocketAddr::new(std::env::var(far).unwrap().parse().unwrap(), 5001);
        let until = Instant::now() + Duration::from_secs(10);
        let mut stream = loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(e) => assert!(Instant::now() < until, "{e}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        stream.write_all(&[7; 100_000]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut came = [0; 8];
        stream.read_exact(&mut came).unwrap();
        println!(" came={} ", u64::from_be_bytes(came));
    }
}

#[test]
fn no_round_trip_is_shorter_than_the_link_over_both_versions_of_ip() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let report = file("report.json");
    let ping = format!("PING=$FAIRPACE_FAR,$FAIRPACE_FAR_IPV6 {}", helper("helper_ping"));
    let output = shell(&["--delay", "20ms", "--force", "--report", report.to_str().unwrap(), "--", "sh", "-c", &ping]);
    assert!(output.status.success(), "{output:?}");
    let rtts = numbers(&out(&output), "rtt");
    assert_eq!(rtts.len(), 6, "{output:?}");
    assert!(rtts.iter().all(|us| *us >= 40_000), "{rtts:?}");
    let said = err(&output);
    assert!(said.contains("up: ") && said.contains("down: ") && said.contains("packets late by p50"), "{said}");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    for way in ["up", "down"] {
        assert!(report[way]["delivered_packets"].as_u64().unwrap() >= 6, "{report}");
        assert_eq!(report[way]["drops_packets"]["queue_full"], 0, "{report}");
    }
    assert_eq!(report["exit_code"], 0);
    assert!(report["lateness_us"]["p50"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn a_shell_in_a_shell_puts_one_link_behind_the_other() {
    let _turn = turn();
    if !possible() {
        return;
    }
    // The near link's far end, then the far link's, which packets reach through both.
    let ping =
        format!("PING=$FAIRPACE_FAR,$FAIRPACE_FAR_IPV6 {0} && PING=$OUTER,$OUTER_IPV6 {0}", helper("helper_ping"));
    let inner = format!(
        "export OUTER=$FAIRPACE_FAR OUTER_IPV6=$FAIRPACE_FAR_IPV6; {FAIRPACE} shell --delay 15ms -- sh -c '{ping}'"
    );
    let output = shell(&["--delay", "10ms", "--", "sh", "-c", &inner]);
    assert!(output.status.success(), "{output:?}");
    let rtts = numbers(&out(&output), "rtt");
    assert_eq!(rtts.len(), 12, "{output:?}");
    assert!(rtts[..6].iter().all(|us| *us >= 30_000) && rtts[6..].iter().all(|us| *us >= 50_000), "{rtts:?}");
    // Each tells of its own link.
    assert_eq!(err(&output).lines().filter(|l| l.starts_with("up: ")).count(), 2, "{output:?}");
    // The inner shell does not know what an outer shell serves.
    let output =
        shell(&["--delay", "1ms", "-q", "--", FAIRPACE, "shell", "--delay", "1ms", "--serve", "true", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// Three echoes through the path of a scenario: each round trip, and the report of the run.
fn pings_through(scenario: &str, name: &str) -> (Vec<u64>, serde_json::Value) {
    let report = file(name);
    let ping = format!("PING=$FAIRPACE_FAR {}", helper("helper_ping"));
    let output = shell(&[scenario, "--force", "--report", report.to_str().unwrap(), "--", "sh", "-c", &ping]);
    assert!(output.status.success(), "{output:?}");
    let said = err(&output);
    assert!(said.contains("up: ") && said.contains("down: "), "{said}");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    for way in ["up", "down"] {
        let count = |key: &str| report[way][key].as_u64().unwrap();
        let dropped: u64 = report[way]["drops_packets"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
        assert!(count("delivered_packets") >= 3, "{report}");
        assert_eq!(
            count("offered_packets"),
            count("delivered_packets") + dropped + count("inside_packets"),
            "{report}"
        );
    }
    (numbers(&out(&output), "rtt"), report)
}

#[test]
fn a_command_is_behind_a_satellite_with_demand_assignment() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let scenario = file("satellite-shell.toml");
    fs::write(
        &scenario,
        "duration = \"60 s\"\n[satellite]\nterminals = 3\n[[flows]]\ncontroller = \"tfrc\"\nterminals = [1, 2]\n",
    )
    .unwrap();
    // Up and down by the geostationary orbit; and before that the terminal asks for its slots.
    let (rtts, report) = pings_through(scenario.to_str().unwrap(), "satellite-shell.json");
    assert!(rtts.len() == 3 && rtts.iter().all(|us| *us >= 500_000), "{rtts:?} {report}");
}

#[test]
fn a_command_is_behind_a_wireless_link_in_slots() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let scenario = file("wireless-shell.toml");
    let text = "duration = \"60 s\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n\
                [wireless]\nrate = \"2 Mbit/s\"\nslot = \"5 ms\"\nchannel = { kind = \"two-state\", error_probability = 0.1 }\n\
                [[flows]]\ncontroller = \"aimd\"\nuser = 0\n";
    fs::write(&scenario, text).unwrap();
    // A slot is not over before it ends.
    let (rtts, report) = pings_through(scenario.to_str().unwrap(), "wireless-shell.json");
    assert!(rtts.len() == 3 && rtts.iter().all(|us| *us >= 45_000), "{rtts:?} {report}");
}

#[test]
fn a_command_is_behind_several_hops() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let shipped = |name: &str| format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    // The first flow passes both links, of 20 ms each.
    let (rtts, report) = pings_through(&shipped("parking-lot"), "hops-shell.json");
    assert!(rtts.len() == 3 && rtts.iter().all(|us| *us >= 40_000), "{rtts:?} {report}");
    let (rtts, report) = pings_through(&shipped("wifi-behind-satellite"), "satellite-and-wifi.json");
    assert!(rtts.len() == 3 && rtts.iter().all(|us| *us >= 505_000), "{rtts:?} {report}");
}

#[test]
fn the_host_itself_can_be_the_far_end() {
    let _turn = turn();
    if !possible() {
        return;
    }
    // A host of our own.
    let ping = format!("PING=$FAIRPACE_FAR,$FAIRPACE_FAR_IPV6 {}", helper("helper_ping"));
    let script = format!(
        "{FAIRPACE} shell --on-host --delay 10ms -- sh -c '{ping}; ls /nowhere' ; echo code=$? ; cat /proc/net/dev /proc/net/route"
    );
    let mut host = Command::new("unshare");
    host.args(["--user", "--map-root-user", "--net", "sh", "-c", &script]).stdin(Stdio::null());
    let output = run(host);
    let said = out(&output);
    let rtts = numbers(&said, "rtt");
    assert!(rtts.len() == 6 && rtts.iter().all(|us| *us >= 20_000), "{output:?}");
    assert_eq!(numbers(&said, "code"), [2], "{output:?}");
    assert!(!said.contains("fairpace0"), "{said}");
    // Namespaces and devices of ours have no name that another could have, but for the host's new device.
    let taken = format!("ip tuntap add dev fairpace0 mode tun && {FAIRPACE} shell --on-host --delay 1ms -- true");
    let mut host = Command::new("unshare");
    host.args(["--user", "--map-root-user", "--net", "sh", "-c", &taken]).stdin(Stdio::null());
    let output = run(host);
    if output.status.code() == Some(127) {
        println!("a name that is taken is not tried: {}", err(&output));
    } else {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(err(&output).contains("there is a network device `fairpace0` already\n\nhint: "), "{output:?}");
    }
    // Without the right to change it.
    let mut host = Command::new("unshare");
    host.args(["--user", "--net", FAIRPACE, "shell", "--on-host", "--delay", "1ms", "--", "true"]).stdin(Stdio::null());
    let output = run(host);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(err(&output).contains("hint: "), "{output:?}");
}

#[test]
fn tcp_goes_through_a_recorded_link_to_what_is_served() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let (trace, log, pcap) = (file("up.trace"), file("up.log"), file("both.pcapng"));
    // 1 packet each ms: 12 Mbit/s.
    fs::write(&trace, (1..=100).map(|ms| format!("{ms}\n")).collect::<String>()).unwrap();
    let output = shell(&[
        "--up",
        trace.to_str().unwrap(),
        "--down",
        "10Mbit/s",
        "--delay",
        "5ms",
        "--up-queue",
        "droptail:packets=100",
        "--force",
        "--up-log",
        log.to_str().unwrap(),
        "--pcap",
        pcap.to_str().unwrap(),
        "--serve",
        &helper("helper_serve"),
        "--",
        "sh",
        "-c",
        &helper("helper_upload"),
    ]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(numbers(&out(&output), "came"), [100_000, 100_000], "{output:?}");
    assert!(fs::metadata(&pcap).unwrap().len() > 10_000);
    // mahimahi's log: in order of time, nothing leaves that has not come, and never more than the trace carries.
    let log = fs::read_to_string(&log).unwrap();
    let (mut last, mut came, mut left, mut could) = (0, 0, 0, 0);
    for line in log.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split(' ');
        let at: u64 = words.next().unwrap().parse().unwrap();
        assert!(at >= last, "{line}");
        last = at;
        let (kind, bytes): (&str, u64) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        match kind {
            "+" => came += bytes,
            "-" => left += bytes,
            "#" => could += bytes,
            "d" => {}
            _ => panic!("{line}"),
        }
        assert!(left <= came && left <= could + 1_500, "{line}: {left} of {came} left, {could} could");
    }
    assert!(left > 200_000, "{left}");
}

/// Of a pause, too: whoever flushes with the next packet alone has kept back what came before it.
#[test]
fn a_killed_shell_leaves_its_logs_and_its_capture_though_nothing_comes_any_more() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let files @ [up, down, pcap] = &["killed.up", "killed.down", "killed.pcapng"].map(file);
    let [up_path, down_path, pcap_path] = files.each_ref().map(|f| f.to_str().unwrap());
    let logs = ["--up-log", up_path, "--down-log", down_path, "--pcap", pcap_path, "--force"];
    let script = format!("echo ready; exec {}", helper("helper_datagrams"));
    let command = ["--delay", "10ms", "-q"].into_iter().chain(logs).chain(["--", "sh", "-c", &script]);
    let mut child = start(&command.collect::<Vec<_>>());
    // Lines of datagrams of 128 bytes: those that came, and those that left.
    let lines = |kind: &str| {
        let text = fs::read_to_string(up).unwrap_or_default();
        let of = |line: &&str| line.split(' ').collect::<Vec<_>>().get(1..3) == Some(&[kind, "128"]);
        text.lines().filter(of).count()
    };
    let all = || lines("+") >= 20 && lines("-") >= 20 && blocks(pcap, PACKET) >= 40;
    let until = Instant::now() + Duration::from_secs(15);
    while !all() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let found = (lines("+"), lines("-"), blocks(pcap, PACKET));
    assert!(all(), "datagrams that came and that left, packets of the capture: {found:?}");
    // The far kernel has refused some of them.
    let down = fs::read_to_string(down).unwrap();
    assert!(down.lines().any(|line| line.contains(" + ")) && down.ends_with('\n'), "{down}");
}

/// A scenario that a relay takes.
const RELAYED: &str =
    "duration = \"10 s\"\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"rcs\"\n";

fn root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// The name of a thread, its sets of capabilities one after the other, and 1 if no program can give it any.
fn about(status: &str) -> (String, String) {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let sets = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:", "CapBnd:", "NoNewPrivs:"].map(field);
    (field("Name:"), sets.concat())
}

/// Five sets without a capability.
fn nothing() -> String {
    "0".repeat(5 * 16) + "1"
}

/// All the kernel says of a process' threads.
fn threads(pid: u32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.filter_map(|t| fs::read_to_string(t.ok()?.path().join("status")).ok()).map(|status| about(&status)).collect()
}

/// The same of its children: of the emulator's there is one, the first process of the command's namespace.
fn children(pid: u32) -> Vec<(String, String)> {
    let parent = format!("PPid:\t{pid}");
    let all = fs::read_dir("/proc").unwrap().filter_map(|p| fs::read_to_string(p.ok()?.path().join("status")).ok());
    all.filter(|status| status.lines().any(|line| line == parent)).map(|status| about(&status)).collect()
}

/// Starts it, and waits until the command has written `ready`.
fn start(args: &[&str]) -> Child {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 6];
        if child.stdout.as_mut().unwrap().read_exact(&mut word).is_ok() {
            assert_eq!(&word, b"ready\n");
            return child;
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.code() == Some(BUSY) && Instant::now() < until, "{output:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn privileges_are_gone_while_it_runs_and_a_second_run_is_refused() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let script = "echo ready; grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs):' /proc/self/status; exec sleep 20";
    let mut child = start(&["--delay", "1ms", "--", "sh", "-c", script]);
    // The path's thread is there before the command; the main one drops what it has right after.
    let until = Instant::now() + Duration::from_secs(10);
    let all = || [threads(child.id()), children(child.id())].concat();
    while !all().iter().all(|(_, sets)| *sets == nothing()) {
        assert!(Instant::now() < until, "{:?}", all());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(children(child.id()).len(), 1, "{:?}", all());
    assert!(threads(child.id()).iter().any(|(name, _)| name == "emulator"), "{:?}", threads(child.id()));
    // The command has CAP_NET_ADMIN and CAP_NET_RAW over its namespace (root CAP_SETFCAP, for a shell within), and can
    // get no other.
    let only = if root() { "0000000080003000" } else { "0000000000003000" };
    let expected = format!("CapPrm:\t{only}\nCapEff:\t{only}\nCapBnd:\t{only}\nNoNewPrivs:\t1\n");
    let mut said = vec![0; expected.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), expected);
    // Its report may be the first one's too.
    let report = file("busy.json");
    fs::write(&report, "the first one's").unwrap();
    let second = command(&["--delay", "1ms", "--report", report.to_str().unwrap(), "--", "true"]).output().unwrap();
    assert_eq!(second.status.code(), Some(BUSY), "{second:?}");
    assert_eq!(fs::read_to_string(&report).unwrap(), "the first one's");
    assert!(err(&second).contains(&format!("process {}", child.id())), "{second:?}");
    let link = file("relay.toml");
    fs::write(&link, RELAYED).unwrap();
    let relay = ["relay", link.to_str().unwrap(), "--listen", "0", "--to", "127.0.0.1:9"];
    let third = Command::new(FAIRPACE).args(relay).output().unwrap();
    assert_eq!(third.status.code(), Some(BUSY), "{third:?}");
    // Asked to end, it asks the command, and tells how that ended.
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    assert!(err(&output).contains("up: "), "{output:?}");
}

/// The state of the network, this test's and the machine's.
fn host() -> [String; 8] {
    let look = |net: &str| {
        let read = |name| fs::read_to_string(format!("{net}/{name}")).unwrap_or_default();
        let devices: BTreeSet<String> =
            read("dev").lines().skip(2).filter_map(|l| Some(l.split(':').next()?.trim().to_owned())).collect();
        // Without the routes' use counts.
        let first = |line: &str| format!("{:?}", line.split_whitespace().take(6).collect::<Vec<_>>());
        let six: BTreeSet<String> = read("ipv6_route").lines().map(first).collect();
        [format!("{devices:?}"), read("route"), format!("{six:?}"), read("if_inet6")]
    };
    let ([a, b, c, d], [e, f, g, h]) = (look("/proc/thread-self/net"), look("/proc/self/net"));
    [a, b, c, d, e, f, g, h]
}

/// The namespaces of the processes that `pick` picks by their process number.
fn namespaces(pick: impl Fn(u32) -> bool) -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut found = BTreeSet::new();
    for pid in processes.filter(|pid| pick(*pid)) {
        for kind in ["net", "user", "pid", "mnt"] {
            if let Ok(link) = fs::read_link(format!("/proc/{pid}/ns/{kind}")) {
                found.insert(link.display().to_string());
            }
        }
    }
    found
}

/// The process and all below it.
fn family(of: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::from([of]);
    let processes: Vec<u32> =
        fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    loop {
        let before = all.len();
        for pid in &processes {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            if parent.is_some_and(|p| all.contains(&p)) {
                all.insert(*pid);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

#[test]
fn killed_at_any_moment_it_leaves_the_host_as_it_was() {
    let _turn = turn();
    if !possible() {
        return;
    }
    let before = host();
    let ours = namespaces(|pid| pid == std::process::id());
    let script = "sleep 1000 & setsid sleep 1000 & exec sleep 1000";
    for moment in [0, 2, 5, 10, 15, 20, 30, 50, 100, 300] {
        let mut child = command(&["--delay", "1ms", "--serve", "exec sleep 1000", "--", "sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        let all = family(child.id());
        let made: BTreeSet<String> = namespaces(|pid| all.contains(&pid)).difference(&ours).cloned().collect();
        child.kill().unwrap();
        child.wait().unwrap();
        // The kernel ends the rest by itself; at once, but not in no time.
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let alive: Vec<u32> =
                all.iter().copied().filter(|p| PathBuf::from(format!("/proc/{p}")).exists()).collect();
            // The kernel gives a number again at once: other programs of tests beside this one may have it, each below the same parent.
            let (beside, mine) = (family(std::os::unix::process::parent_id()), family(std::process::id()));
            let orphans = namespaces(|pid| mine.contains(&pid) || !beside.contains(&pid));
            let left: Vec<String> = orphans.intersection(&made).cloned().collect();
            if alive.is_empty() && left.is_empty() && host() == before {
                break;
            }
            assert!(Instant::now() < until, "after {moment} ms: {alive:?} {left:?} {:?} {before:?}", host());
            std::thread::sleep(Duration::from_millis(20));
        }
        if moment >= 300 {
            assert!(made.len() >= 6 || all.len() == 1, "{made:?} {all:?}");
        }
    }
}

#[test]
fn the_exit_code_is_the_commands_and_errors_before_it_have_their_own() {
    let _turn = turn();
    // Found before anything is set up, whatever the system allows.
    let (empty, falling, plain) = (file("empty.trace"), file("falling.trace"), file("plain"));
    fs::write(&empty, "").unwrap();
    fs::write(&falling, "5\n4\n").unwrap();
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let satellite = file("satellite.toml");
    fs::write(&satellite, "duration = \"10 s\"\n[path]\n").unwrap();
    let path = |p: &PathBuf| p.to_str().unwrap().to_owned();
    let shipped = |name: &str| format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let (hops, radio) = (shipped("parking-lot"), shipped("wlan-cell"));
    for (args, code, says) in [
        (vec!["--delay", "1ms", "--", "no-such-command"], 127, "there is no command `no-such-command`"),
        (vec!["--delay", "1ms", "--", &path(&plain)], 126, "may not be run"),
        (vec!["--delay", "1ms", "--", "/"], 126, "may not be run"),
        (vec!["--", "true"], 2, "there is no link"),
        (vec!["--up", &path(&empty), "--", "true"], 3, "empty.trace`: the trace is empty"),
        (vec![&path(&falling), "--", "true"], 3, "falling.trace`:2: `4` is earlier than the `5` before it"),
        (vec!["--up", "no-such.trace", "--", "true"], 2, "cannot read `no-such.trace`"),
        (vec!["--up", "0Mbit/s", "--", "true"], 2, "no link carries `0Mbit/s`"),
        (vec!["no-such.toml", "--", "true"], 3, "no-such.toml"),
        (vec![&path(&satellite), "--delay", "5ms", "--", "true"], 2, "says what the link is"),
        (vec![&radio, "--", "true"], 3, "`wireless.plan` is given, and here no base station tells senders"),
        (vec![&path(&falling), "--up", "1Mbit/s", "--", "true"], 2, "is for both ways"),
        (vec!["--delay", "1ms", "--loss", "2", "--", "true"], 2, "is not a loss rate"),
        (vec!["--queue", "droptail", "--", "true"], 2, "needs its room"),
        (vec!["--delay", "1ms", "--pcap", "/no/such/folder/x", "--", "true"], 2, "cannot write"),
    ] {
        let output = shell(&args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(err(&output).contains(says) && err(&output).contains("\n\nhint: "), "{args:?}: {output:?}");
    }
    if !possible() {
        return;
    }
    let files = ["mtu.json", "mtu.pcapng", "mtu.up"].map(file);
    let [report, pcap, log] = files.each_ref().map(path);
    let logged = shell(&[&hops, "--up-log", &log, "--", "true"]);
    assert_eq!(logged.status.code(), Some(2), "{logged:?}");
    assert!(err(&logged).contains("this path has several hops or another medium"), "{logged:?}");
    assert!(!files.iter().any(|f| f.exists()));
    let files_of = ["--report", &report, "--pcap", &pcap, "--up-log", &log];
    let mtu = shell(&[&["--delay", "1ms", "--mtu", "576"], &files_of[..], &["--", "true"]].concat());
    assert_eq!(mtu.status.code(), Some(2), "{mtu:?}");
    assert!(err(&mtu).contains("the MTU 576 is too small: 1280 is the least"), "{mtu:?}");
    assert!(!files.iter().any(|f| f.exists()), "nothing is left of what did not run");
    for (script, code) in
        [("exit 7", 7), ("kill -KILL $$", 128 + 9), ("exec /no/such/command", 127), ("(sleep 9 &)", 0)]
    {
        let output = shell(&["--delay", "1ms", "-q", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
        assert!(output.status.signal().is_none());
    }
    // A run in real time inside a shell is part of the shell's run.
    let link = file("inside.toml");
    fs::write(&link, RELAYED).unwrap();
    let relay = format!("timeout 1 {FAIRPACE} relay {} --listen 0 --to 127.0.0.1:9; echo code=$?", path(&link));
    let output = shell(&["--delay", "1ms", "-q", "--", "sh", "-c", &relay]);
    assert_eq!(numbers(&out(&output), "code"), [124], "it ran until its time was over: {output:?}");
    // The far end's command that failed is not the run's failure, but is said.
    let output = shell(&["--delay", "1ms", "--serve", "exit 3", "--", "sleep", "0.5"]);
    assert!(output.status.success() && err(&output).contains("ended before, with code 3"), "{output:?}");
}

#[test]
fn ctrl_c_is_the_commands_to_answer() {
    let _turn = turn();
    if !possible() {
        return;
    }
    // With a terminal, as `script` makes one, keys go to all; the shell waits for what the command makes of it.
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let args = ["--delay", "1ms", "--", "sh", "-c", script];
    let child = {
        let mut command = command(&args);
        // A group of its own, as a terminal's foreground job.
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut word = [0; 6];
        if child.stdout.as_mut().unwrap().read_exact(&mut word).is_err() {
            println!("skipped: {:?}", child.wait_with_output().unwrap());
            return;
        }
        child
    };
    // To all of the group, and no signal to end: without a terminal the shell asks the command to end as well.
    Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(5 | 143)), "{output:?}");
    assert!(err(&output).contains("up: "), "{output:?}");
}

/// An interactive shell takes the terminal for itself; who comes after it must be able to read from it.
#[test]
fn the_terminal_is_given_back() {
    let _turn = turn();
    if !possible() {
        return;
    }
    for (environment, command) in [("", "-- bash --norc -i"), ("SHELL=/bin/sh ", "")] {
        given_back(&format!("{environment}{FAIRPACE} shell --delay 1ms {command}"));
    }
}

/// `shell` is ended by a key, and what follows it reads one.
fn given_back(shell: &str) {
    let script = format!("{shell}; echo code=$?; read word; echo word=$word");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &script, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut terminal = match terminal.spawn() {
        Ok(child) => child,
        Err(e) => return println!("skipped: `script` makes the terminal: {e}"),
    };
    let mut keys = terminal.stdin.take().unwrap();
    let (mut said, mut answered) = (String::new(), false);
    let mut screen = terminal.stdout.take().unwrap();
    let mut bytes = [0; 1_024];
    keys.write_all(b"exit 3\n").unwrap();
    while let Ok(n @ 1..) = screen.read(&mut bytes) {
        said.push_str(&String::from_utf8_lossy(&bytes[..n]));
        if said.contains("code=") && !answered {
            answered = true;
            keys.write_all(b"7\n").unwrap();
        }
    }
    drop(keys);
    terminal.wait().unwrap();
    assert_eq!((numbers(&said, "code"), numbers(&said, "word")), (vec![3], vec![7]), "{shell}: {said}");
}

/// The output of a program run as another user, with a /dev/net of its own in which everybody may make devices, or
/// with the system's.
fn as_nobody(device: bool, args: &[&str]) -> Output {
    // Copies that the other user can read.
    let folder = std::env::temp_dir().join(format!("fairpace-shell-test-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (from, name) in [(PathBuf::from(FAIRPACE), "fairpace"), (std::env::current_exe().unwrap(), "helper")] {
        fs::copy(from, folder.join(name)).unwrap();
    }
    let make = if device { "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 &&" } else { "" };
    let script = format!("{make} exec setpriv --reuid 65534 --regid 65534 --clear-groups ./fairpace shell \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]).args(args).current_dir(&folder).stdin(Stdio::null());
    let output = run(command);
    fs::remove_dir_all(&folder).unwrap();
    output
}

#[test]
fn a_user_without_rights_runs_it_or_gets_a_remedy() {
    let _turn = turn();
    if !root() {
        println!("skipped: only root can become another user");
        return;
    }
    // Root neither, where there is no device.
    let mut without = Command::new("unshare");
    let script = format!("mount -t tmpfs none /dev/net && exec {FAIRPACE} shell --delay 1ms -- true");
    without.args(["--mount", "sh", "-c", &script]).stdin(Stdio::null());
    let output = run(without);
    if possible() {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(
            err(&output).contains("no TUN device: /dev/net/tun") && err(&output).contains("modprobe"),
            "{output:?}"
        );
    }
    let ping = "PING=$FAIRPACE_FAR,$FAIRPACE_FAR_IPV6 ./helper --ignored --exact helper_ping --nocapture --quiet";
    let args = ["--delay", "10ms", "--", "sh", "-c", ping];
    for device in [false, true] {
        let output = as_nobody(device, &args);
        match output.status.code() {
            Some(0) => {
                let rtts = numbers(&out(&output), "rtt");
                assert!(rtts.len() == 6 && rtts.iter().all(|us| *us >= 20_000), "{output:?}");
            }
            // The system may keep devices or namespaces from users.
            Some(4) => assert!(err(&output).contains("\n\nhint: `sudo "), "{output:?}"),
            _ => panic!("{output:?}"),
        }
    }
}
