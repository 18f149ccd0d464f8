//! The calls of C with bad arguments, in any order, under fuzzing: each answers -1 with an `errno` and a text, or does what it
//! says, and no panic leaves the library. Calls that would wait for a peer are left out (`c_program` has these).

// The calls are those of C.
#![allow(unsafe_code)]

use fairpace_fsocket::c_api::{f_close, f_dst, f_option, f_recv, f_recv_adu, f_send, f_socket, f_strerror};
use fairpace_fuzz::{Script, Target, put_piece};
use nix::libc::{self, sockaddr_in};
use std::ffi::{CStr, CString};
use std::ptr;

/// Sockets that a script may have open.
const MOST: usize = 4;

fn address(script: &mut Script<'_>) -> sockaddr_in {
    let family = script.byte();
    sockaddr_in {
        sin_family: if family & 1 == 0 { libc::AF_INET as u16 } else { family.into() },
        sin_port: 0,
        // An address of this machine, or of a network for documentation.
        sin_addr: libc::in_addr { s_addr: [0x7f00_0001_u32, 0, 0xc000_0201][usize::from(family >> 1) % 3].to_be() },
        sin_zero: [0; 8],
    }
}

/// A text as C has texts: its bytes up to the first zero.
fn text(bytes: &[u8]) -> CString {
    CString::new(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).expect("no zero")
}

/// Each option with a value that is allowed, then misuse of each call.
fn scripts() -> Vec<Vec<u8>> {
    let mut options = vec![0, 0, 0];
    let pairs = [
        ("max_rate", "2 Mbit/s"),
        ("min_rate", "20 pkt/s"),
        ("packet_size", "1000 B"),
        ("algorithm", "reno"),
        ("linger", "2 s"),
        ("sigma", "0.5"),
        ("no such", "1"),
    ];
    for (name, value) in pairs {
        options.extend([1, 0]);
        put_piece(name.as_bytes(), &mut options);
        put_piece(value.as_bytes(), &mut options);
    }
    options.extend([6, 0]);
    let misuse = vec![0, 0, 4, 2, 0, 1, 3, 0, 4, 4, 0, 5, 0, 6, 0, 6, 0, 3, 0, 9, 0, 1, 3];
    vec![options, misuse]
}

#[test]
fn any_calls_of_c_are_done_or_refused_with_an_errno_and_a_text() {
    let target = Target::new("c_api", env!("CARGO_MANIFEST_DIR")).seeds(scripts()).text().memory(1 << 20).cases(4_000);
    let words = ["max_rate", "min_rate", "packet_size", "algorithm", "linger", " Mbit/s", " B", "1e308", "-1", "inf"];
    target.words(words).run(|bytes| {
        let (mut script, mut open) = (Script::new(bytes), Vec::new());
        for _ in 0..40 {
            if script.is_over() {
                break;
            }
            let (call, which) = (script.byte() % 7, script.byte());
            let fd = open.get(usize::from(which)).copied().unwrap_or(i32::from(which) - 128);
            // SAFETY: every pointer below is null, or of a value that lives until the call has returned.
            let answer = unsafe {
                match call {
                    0 if open.len() < MOST => {
                        let mut local = address(&mut script);
                        let fd = f_socket(if which & 1 == 0 { &mut local } else { ptr::null_mut() });
                        if fd >= 0 {
                            open.push(fd);
                        }
                        fd as isize
                    }
                    1 => {
                        let (name, value) = (text(script.piece()), text(script.piece()));
                        let value = if which == 77 { ptr::null() } else { value.as_ptr() };
                        f_option(fd, name.as_ptr(), value) as isize
                    }
                    2 => {
                        // Never one that could be reached.
                        let mut to = address(&mut script);
                        to.sin_family = libc::AF_UNIX as u16;
                        f_dst(fd, if which & 1 == 0 { &to } else { ptr::null() }) as isize
                    }
                    3 => {
                        let (data, len) = ([7_u8; 16], usize::from(script.byte()));
                        let is_null = which & 1 == 0;
                        let from = if is_null { ptr::null() } else { data.as_ptr().cast() };
                        let len = if is_null { len << 56 } else { len.min(16) };
                        f_send(fd, from, len, which.into())
                    }
                    4 => {
                        let len = script.number(8) as usize;
                        f_recv(fd, ptr::null_mut(), len)
                    }
                    5 => {
                        // To descriptors that no fsocket has: others would wait for a sender.
                        let (mut data, mut end) = ([0_u8; 16], 0);
                        f_recv_adu(-1 - i32::from(which), data.as_mut_ptr().cast(), 16, &mut end)
                    }
                    6 => {
                        open.retain(|other| *other != fd);
                        f_close(fd) as isize
                    }
                    _ => 0,
                }
            };
            if answer < 0 {
                assert_eq!(answer, -1);
                // SAFETY: the text is this thread's and ends with a zero byte; no call is made while it is read.
                let words = unsafe { CStr::from_ptr(f_strerror()) };
                assert!(!words.is_empty() && nix::errno::Errno::last_raw() != libc::ENOTRECOVERABLE, "{words:?}");
            }
        }
        for fd in open {
            assert_eq!(f_close(fd), 0);
        }
    });
}
