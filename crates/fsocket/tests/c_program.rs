//! The example in C, built with the system's compiler against header and library, sends to itself; and what a program in C
//! hears when something is wrong.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where cargo puts the libraries that belong to this test.
fn libraries() -> PathBuf {
    let mut dir = std::env::current_exe().unwrap();
    while dir.pop() {
        if dir.join("libfairpace_fsocket.so").exists() {
            return dir;
        }
    }
    panic!("libfairpace_fsocket.so is not beside this test");
}

/// Installs the libraries of this test below a folder of its own; where that is.
fn installed() -> PathBuf {
    static ONCE: OnceLock<PathBuf> = OnceLock::new();
    let install = || {
        let to = program("installed");
        let _ = std::fs::remove_dir_all(&to);
        let mut make = Command::new("make");
        make.args(["-s", "-C", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), "install-fsocket", "PREFIX=/usr"]);
        make.arg(format!("DESTDIR={}", to.display())).arg(format!("FSOCKET_FROM={}", libraries().display()));
        let out = make.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        to
    };
    ONCE.get_or_init(install).clone()
}

fn build(source: &Path, to: &Path, statically: bool) {
    let (root, dir) = (Path::new(env!("CARGO_MANIFEST_DIR")), installed().join("usr/lib"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_DEFAULT_SOURCE", "-o"]).arg(to).arg(source);
    cc.arg("-I").arg(root.join("include"));
    if statically {
        cc.arg(dir.join("libfairpace_fsocket.a")).args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
    } else {
        cc.arg("-L").arg(&dir).arg("-lfairpace_fsocket").arg(format!("-Wl,-rpath,{}", dir.display()));
    }
    let out = cc.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/c/adus.c")
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs the example's two halves; what each wrote.
fn run(program: &Path, adus: u32) -> (Output, String) {
    let mut receiving =
        Command::new(program).args(["receive", "0"]).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut said = BufReader::new(receiving.stdout.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    let port = first.strip_prefix("port ").unwrap();
    let sent = Command::new(program).args(["send", "127.0.0.1", port, &adus.to_string()]).output().unwrap();
    let last = said.next().unwrap().unwrap();
    assert!(receiving.wait().unwrap().success(), "{last}");
    (sent, last)
}

#[test]
fn the_example_in_c_sends_and_receives_with_the_shared_and_with_the_static_library() {
    for (name, statically) in [("adus-shared", false), ("adus-static", true)] {
        let program = program(name);
        build(&example(), &program, statically);
        let (sent, received) = run(&program, 400);
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        assert_eq!(sent.stdout, b"sent 400 units\n");
        assert_eq!(received, "received 400 units, 0 wrong");
    }
}

/// Everything is where a distribution would look for it, and says where it will be.
#[test]
fn make_installs_libraries_header_pkg_config_file_and_manual() {
    let usr = installed().join("usr");
    let link = |name: &str| std::fs::read_link(usr.join(name)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(link("lib/libfairpace_fsocket.so"), Path::new("libfairpace_fsocket.so.0"));
    assert_eq!(link("lib/libfairpace_fsocket.so.0"), Path::new(&format!("libfairpace_fsocket.so.{version}")));
    let dynamic = Command::new("readelf").arg("-d").arg(usr.join("lib/libfairpace_fsocket.so")).output().unwrap();
    assert!(String::from_utf8_lossy(&dynamic.stdout).contains("Library soname: [libfairpace_fsocket.so.0]"));
    let config = std::fs::read_to_string(usr.join("lib/pkgconfig/fairpace_fsocket.pc")).unwrap();
    for line in
        ["prefix=/usr", "libdir=/usr/lib", "Libs: -L${libdir} -lfairpace_fsocket", &format!("Version: {version}")]
    {
        assert!(config.lines().any(|found| found == line), "{line}: {config}");
    }
    // Each call of the header has its page, and stands in it.
    let header = std::fs::read_to_string(usr.join("include/fairpace_fsocket.h")).unwrap();
    let calls = header.lines().filter(|line| line.ends_with(");") && !line.starts_with(' '));
    let calls: Vec<&str> = calls.filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back()).collect();
    assert_eq!(calls.len(), 10, "{calls:?}");
    for call in calls {
        let page = std::fs::read_to_string(usr.join(format!("share/man/man3/{call}.3"))).unwrap();
        assert!(page.contains(&format!(".Nm {call}")) && page.contains(&format!(".Fn {call}")), "{call}");
    }
}

/// Two network namespaces with a veth between, in one that is nobody else's: what the programs in both said; `None`, and why, without root.
fn over_two_namespaces(first: &str, second: &str) -> Option<(String, String)> {
    let script = format!(
        r#"
set -e
unshare --net sleep 100 & other=$! pid=
trap 'kill $other $pid 2> /dev/null || true' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add here type veth peer name there netns $other
in_other() {{ nsenter --target $other --net "$@"; }}
ip address add 10.7.0.1/24 dev here; ip address add fd07::1/64 dev here nodad; ip link set here up
in_other ip address add 10.7.0.2/24 dev there; in_other ip address add fd07::2/64 dev there nodad; in_other ip link set there up
in_other {second} > "$OUT" & pid=$!
sleep 0.5
{first}
wait $pid
"#
    );
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let out = program(&format!("second-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]).env("OUT", &out).env("LD_LIBRARY_PATH", installed().join("usr/lib"));
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    if said.contains("unshare failed: Operation not permitted") {
        println!("skipped: namespaces need root: {said}");
        return None;
    }
    assert!(done.status.success(), "{said}");
    let said = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Some((said(&done.stdout), said(&std::fs::read(out).unwrap())))
}

#[test]
fn the_example_in_c_sends_from_one_namespace_to_another_over_ipv4_and_ipv6() {
    let adus = program("adus-namespaces");
    build(&example(), &adus, false);
    for address in ["10.7.0.2", "fd07::2"] {
        let adus = adus.display();
        let send = format!("{adus} send {address} 5004 400");
        let Some(said) = over_two_namespaces(&send, &format!("{adus} receive {address} 5004")) else { return };
        assert_eq!(said, ("sent 400 units\n".to_owned(), "port 5004\nreceived 400 units, 0 wrong\n".to_owned()));
    }
}

#[test]
fn the_example_in_python_sends_and_receives_on_one_socket_over_ipv4_and_ipv6() {
    let adus = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/python/adus.py");
    for [a, b] in [["10.7.0.1", "10.7.0.2"], ["fd07::1", "fd07::2"]] {
        let end = |local: &str, remote: &str| format!("python3 {} {local} 5004 {remote} 5004 200", adus.display());
        let Some(said) = over_two_namespaces(&end(a, b), &end(b, a)) else { return };
        let each = "sent 200 units, received 200, 0 wrong\n".to_owned();
        assert_eq!(said, (each.clone(), each));
    }
}

/// The library's rates are on the wire, as everywhere else. TCP measures a bottleneck of 400 kbit/s, counted in IP packets; the bottleneck is
/// taken away when UDP has gone on, whose units of 64 B are packets of their own. Segments count as full ones, and some are not: 389 kbit/s
/// come out. Were TCP's stream the rate, it would be 364 kbit/s at most, 524 of 576 B, and were it UDP's payload, more than 600 kbit/s would leave.
#[test]
fn a_rate_of_the_c_library_is_on_the_wire() {
    let script = program("rate.py");
    std::fs::write(&script, RATE).unwrap();
    let end = |rest: &str| format!("python3 {} {rest}", script.display());
    let Some((sent, _)) = over_two_namespaces(&end("send"), &end("receive")) else { return };
    let kbps: f64 = sent.trim().parse().unwrap_or_else(|e| panic!("{e}: {sent}"));
    println!("{kbps} kbit/s");
    assert!((375.0..=408.0).contains(&kbps), "{kbps} kbit/s on the wire, where TCP had 400");
}

/// Sends, and measures what IP packets the device has sent over three seconds of UDP; or receives all there is.
const RATE: &str = r#"
import ctypes, json, socket, subprocess, sys, threading, time
lib = ctypes.CDLL("libfairpace_fsocket.so.0", use_errno=True)
lib.f_strerror.restype = ctypes.c_char_p
lib.f_send.restype = lib.f_recv.restype = ctypes.c_ssize_t
lib.f_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
lib.f_recv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]

class In(ctypes.Structure):
    _fields_ = [("family", ctypes.c_ushort), ("port", ctypes.c_uint16), ("ip", ctypes.c_ubyte * 4), ("zero", ctypes.c_ubyte * 8)]

def address(ip):
    return In(socket.AF_INET, socket.htons(5004), (ctypes.c_ubyte * 4)(*map(int, ip.split("."))))

def check(value):
    if value < 0:
        sys.exit(lib.f_strerror().decode())
    return value

def ip_bits():
    [link] = json.loads(subprocess.run(["ip", "-s", "-j", "link", "show", "here"], check=True, capture_output=True).stdout)
    sent = link["stats64"]["tx"]
    return 8 * (sent["bytes"] - 14 * sent["packets"])

sending = sys.argv[1] == "send"
local = address("10.7.0.1" if sending else "10.7.0.2")
fd = check(lib.f_socket(ctypes.byref(local)))
if not sending:
    buffer = ctypes.create_string_buffer(2048)
    while check(lib.f_recv(fd, buffer, len(buffer))) > 0:
        pass
    check(lib.f_close(fd))
    sys.exit()
def tc(*words):
    subprocess.run(["tc", "qdisc", *words], check=True)

tc("add", "dev", "here", "root", "stab", "overhead", "-14", "tbf", "rate", "400kbit", "burst", "2000", "limit", "200000")
for name, value in {"packet_size": "576 B", "t_tcp": "1s", "epsilon": "1Gbps", "t_running": "1min"}.items():
    check(lib.f_option(fd, name.encode(), value.encode()))
remote = address("10.7.0.2")
check(lib.f_dst(fd, ctypes.byref(remote)))
over = time.monotonic() + 9.0

def send():
    while time.monotonic() < over:
        check(lib.f_send(fd, bytes(64), 64, 1))

def send_or_say():
    try:
        send()
    except SystemExit as trouble:
        print(trouble, file=sys.stderr)

sender = threading.Thread(target=send_or_say)
sender.start()
time.sleep(4.5)
tc("del", "dev", "here", "root")
time.sleep(0.5)
before, begun = ip_bits(), time.monotonic()
time.sleep(3.0)
print((ip_bits() - before) / (time.monotonic() - begun) / 1e3)
sender.join()
check(lib.f_close(fd))
"#;

#[test]
fn misuse_from_c_is_an_errno_and_a_text() {
    let source = program("misuse.c");
    std::fs::write(
        &source,
        r#"
#include <errno.h>
#include <fairpace_fsocket.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>

#define CHECK(call, number) do { errno = 0; if ((call) != -1 || errno != (number) || !*f_strerror()) { \
    printf("%s: errno %d, %s\n", #call, errno, f_strerror()); return 1; } } while (0)

int main(void)
{
    char byte = 0;
    struct sockaddr_in a = {.sin_family = AF_INET}, six = {.sin_family = AF_INET6};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(f_send(-1, &byte, 1, 1), EBADF);
    CHECK(f_recv(12345, &byte, 1), EBADF);
    CHECK(f_close(0), EBADF);
    CHECK(f_socket(&six), EAFNOSUPPORT);
    struct sockaddr_in6 four = {.sin6_family = AF_INET};
    CHECK(f_socket6(&four), EAFNOSUPPORT);
    int fd = f_socket(&a);
    if (fd < 0 || a.sin_port == 0) { printf("f_socket: %s\n", f_strerror()); return 1; }
    struct sockaddr_in taken = a;
    CHECK(f_socket(&taken), EADDRINUSE);
    CHECK(f_send(fd, &byte, 1, 1), ENOTCONN);
    CHECK(f_send(fd, NULL, 1, 1), EFAULT);
    CHECK(f_recv(fd, NULL, 1), EINVAL);
    CHECK(f_dst(fd, NULL), EFAULT);
    CHECK(f_dst6(fd, NULL), EFAULT);
    CHECK(f_option(fd, "directions", "3"), EINVAL);
    CHECK(f_option(fd, "t_running", "soon"), EINVAL);
    CHECK(f_option(fd, "no_such", "1"), EINVAL);
    CHECK(f_option(fd, NULL, "1"), EFAULT);
    if (f_option(fd, "t_running", "1s") != 0) { printf("f_option: %s\n", f_strerror()); return 1; }
    /* Nothing to read, and select says so. */
    fd_set set; FD_ZERO(&set); FD_SET(fd, &set);
    struct timeval soon = {0, 1000};
    if (select(fd + 1, &set, NULL, NULL, &soon) != 0) { printf("readable\n"); return 1; }
    if (f_close(fd) != 0) { printf("f_close: %s\n", f_strerror()); return 1; }
    CHECK(f_close(fd), EBADF);
    return 0;
}
"#,
    )
    .unwrap();
    let program = program("misuse");
    build(&source, &program, false);
    let out = Command::new(&program).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
