//! Reading the stream of either end, and how it ends.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use fairpace_rtp::framing::Deframer;
use socket2::Socket;
use std::io;

/// The kernel's answer when it was asked to read or write.
#[derive(Debug)]
pub(crate) enum TcpEnd {
    /// The peer has closed its side.
    Closed,
    /// An error: reset, time-out, or something that is not framed packets.
    Failed(String),
}

impl TcpEnd {
    pub(crate) fn detail(&self) -> String {
        match self {
            TcpEnd::Closed => "it closed the connection".to_owned(),
            TcpEnd::Failed(what) => what.clone(),
        }
    }
}

/// An error of the kernel's as the end of a connection.
pub(super) fn failed(e: &io::Error) -> TcpEnd {
    TcpEnd::Failed(match e.kind() {
        io::ErrorKind::ConnectionRefused => "it refuses the connection".to_owned(),
        _ => e.to_string(),
    })
}

/// Longest framed packet that is taken in: more than any path's packet that we send, and little memory.
pub(super) const LONGEST: usize = 2_048;

/// Reads what is there into `inbox`; `true` if there may be more.
pub(super) fn fill(socket: &Socket, inbox: &mut Deframer) -> Result<bool, TcpEnd> {
    let space = inbox.space();
    let room = space.len();
    // Not to a growing vector, and without `unsafe`: the standard library's reader.
    loop {
        match io::Read::read(&mut &*socket, space) {
            Ok(0) => return Err(TcpEnd::Closed),
            Ok(n) => {
                inbox.filled(n);
                return Ok(n == room);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(failed(&e)),
        }
    }
}
