//! The example in C, built with the system's compiler against header and library, sends to itself; and what a program in C
//! hears when something is wrong.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

fn build(source: &Path, to: &Path, statically: bool) {
    let (root, dir) = (Path::new(env!("CARGO_MANIFEST_DIR")), libraries());
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
    int fd = f_socket(&a);
    if (fd < 0 || a.sin_port == 0) { printf("f_socket: %s\n", f_strerror()); return 1; }
    struct sockaddr_in taken = a;
    CHECK(f_socket(&taken), EADDRINUSE);
    CHECK(f_send(fd, &byte, 1, 1), ENOTCONN);
    CHECK(f_send(fd, NULL, 1, 1), EFAULT);
    CHECK(f_recv(fd, NULL, 1), EINVAL);
    CHECK(f_dst(fd, NULL), EFAULT);
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
