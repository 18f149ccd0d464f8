//! A sender and a receiver on loopback.

#![allow(dead_code, unreachable_pub)] // each test file uses its part

use fairpace_net::receive::{ReceiveConfig, ReceiveReport, Receiver};
use fairpace_net::send::{SendConfig, SendEnd, SendReport};
use fairpace_net::{Buffers, Clock, NetError, UdpSocket};
use nix::sched::{CloneFlags, unshare};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A network of this thread's own, with a loopback device; `None`, and why, where that is not allowed.
pub fn network() -> Option<()> {
    if let Err(e) = unshare(CloneFlags::CLONE_NEWNET) {
        println!("skipped: a network of its own needs root: {e}");
        return None;
    }
    ip("link set lo up");
    Some(())
}

/// `ip` of iproute2 in this thread's network.
pub fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).status().expect("`ip` of iproute2");
    assert!(done.success(), "ip {words}");
}

/// A receiver that is open, and the configuration of a sender to it.
pub fn loopback() -> (Receiver, SendConfig, Clock) {
    loopback_to(ReceiveConfig::new(0))
}

/// As [`loopback`], to a receiver that is set up so.
pub fn loopback_to(receive: ReceiveConfig) -> (Receiver, SendConfig, Clock) {
    let clock = Clock::start();
    let receiver = Receiver::open(receive, clock).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, receiver.address().unwrap().port()));
    (receiver, SendConfig::new(to), clock)
}

/// The sender's socket, for a test that puts something around it.
pub fn connect(config: &SendConfig, clock: Clock) -> UdpSocket {
    UdpSocket::connect(config.peer, Buffers::default(), clock).unwrap()
}

/// Sends while `receiver` runs: what both came to. A sender that finishes says goodbye, which ends the receiver in order;
/// after any other end the receiver is stopped.
pub fn run_beside(
    receiver: Receiver,
    send: impl FnOnce(&AtomicBool) -> Result<SendReport, NetError>,
) -> Result<(SendReport, ReceiveReport), NetError> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.run(&mut (), &mut (), &over));
        let sent = send(&stop);
        if !matches!(&sent, Ok(report) if matches!(report.end, SendEnd::Finished)) {
            over.store(true, Ordering::Relaxed);
        }
        let received = receiving.join().unwrap();
        Ok((sent?, received?))
    })
}
