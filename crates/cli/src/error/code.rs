//! The exit codes, all of them: what a script goes by. The help lists the same.

use fairpace_emu::EmuError;
use fairpace_media::MediaError;
use fairpace_net::NetError;

/// Something failed that has no code of its own: a disk that is full.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong, or names what cannot be used.
pub(crate) const USAGE: u8 = 2;
/// A scenario is wrong, or asks for what cannot be built.
pub(crate) const SCENARIO: u8 = 3;
/// A privilege is missing, or the system lacks what it would be for.
pub(crate) const PRIVILEGE: u8 = 4;
/// The peer: unreachable, busy with another sender, silent, gone, or lying.
pub(crate) const PEER: u8 = 5;
/// The circuit breaker stopped the flow.
pub(crate) const BREAKER: u8 = 6;
/// With `--strict`: a claim fails.
pub(crate) const CLAIM: u8 = 7;
/// The needs cannot be met; the nearest that can be met have been printed.
pub(crate) const UNMET: u8 = 8;
/// Another run in real time has the machine.
pub(crate) const BUSY: u8 = 9;
/// Ctrl-C; what was measured until then is kept.
pub(crate) const INTERRUPTED: u8 = 130;

/// The code of an error on the wire.
pub(crate) fn of_net(error: &NetError) -> u8 {
    match error {
        NetError::BadAddress { .. }
        | NetError::PortInUse { .. }
        | NetError::TcpPortInUse { .. }
        | NetError::NoSuchLocalAddress { .. }
        | NetError::KeyFile { .. }
        | NetError::Control(_)
        | NetError::Config { .. } => USAGE,
        NetError::Denied { .. } => PRIVILEGE,
        NetError::Resolve { .. }
        | NetError::PeerUnreachable { .. }
        | NetError::NoCommonKey { .. }
        | NetError::PeerBusy { .. }
        | NetError::PeerEnded { .. }
        | NetError::NoSender { .. }
        | NetError::NoTcpHalf { .. }
        | NetError::PeerVanished { .. }
        | NetError::NothingArrived { .. }
        | NetError::Untold { .. }
        | NetError::PeerLies { .. } => PEER,
        NetError::NotSent { .. } => FAILED,
        NetError::Breaker { .. } => BREAKER,
        NetError::Media(error) => of_media(error),
        NetError::Io { .. } => FAILED,
    }
}

/// The code of an error of the emulator.
pub(crate) fn of_emu(error: &EmuError) -> u8 {
    match error {
        EmuError::MtuTooSmall { .. } | EmuError::Config { .. } => USAGE,
        EmuError::Sim(_) => SCENARIO,
        EmuError::NoNamespaces { .. } | EmuError::NoTun(_) | EmuError::NoCallFilter(_) | EmuError::Denied { .. } => {
            PRIVILEGE
        }
        EmuError::Busy { .. } => BUSY,
        EmuError::DeviceTaken { .. } | EmuError::Io { .. } => FAILED,
        EmuError::Net(error) => of_net(error),
    }
}

/// The code of an error of a source or sink of media: what was named on the command line and cannot be used is
/// [`USAGE`].
pub(crate) fn of_media(error: &MediaError) -> u8 {
    match error {
        MediaError::File { doing: "write", .. } | MediaError::Ffmpeg { .. } => FAILED,
        MediaError::File { .. }
        | MediaError::SizeList { .. }
        | MediaError::Ivf { .. }
        | MediaError::Parameter { .. }
        | MediaError::Gst { .. }
        | MediaError::NoVideo { .. }
        | MediaError::Url { .. }
        | MediaError::NeedsGst { .. } => USAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;
    use fairpace_control::ParamError;
    use fairpace_emu::Holder;
    use fairpace_lab::RunError;
    use fairpace_units::Duration;
    use std::io;

    const DISK_FULL: io::ErrorKind = io::ErrorKind::StorageFull;

    fn file(doing: &'static str) -> MediaError {
        MediaError::File { path: "x".into(), doing, source: DISK_FULL.into() }
    }

    fn breaker() -> NetError {
        NetError::Breaker { peer: "192.0.2.1:5004".parse().unwrap(), reason: String::new() }
    }

    #[test]
    fn errors_end_the_command_with_the_codes_that_the_help_lists() {
        let (peer, text) = ("192.0.2.1:5004".parse().unwrap(), String::new);
        let net: [(NetError, u8); 22] = [
            (NetError::Media(file("write")), 1),
            (NetError::Io { what: "wait", source: DISK_FULL.into() }, 1),
            (NetError::BadAddress { found: text(), reason: text() }, 2),
            (NetError::PortInUse { address: peer }, 2),
            (NetError::TcpPortInUse { address: peer }, 2),
            (NetError::NoSuchLocalAddress { address: peer }, 2),
            (NetError::Control(ParamError::BadEnv { name: "x", found: text(), allowed: text() }), 2),
            (NetError::Config { field: "x", found: text(), allowed: text() }, 2),
            (NetError::Denied { what: text() }, 4),
            (NetError::Resolve { host: text(), reason: text() }, 5),
            (NetError::PeerUnreachable { peer, waited: Duration::ZERO, detail: text() }, 5),
            (NetError::NoCommonKey { peer, datagrams: 8, waited: Duration::ZERO }, 5),
            (NetError::PeerBusy { peer }, 5),
            (NetError::PeerEnded { peer }, 5),
            (NetError::NoSender { port: 9, waited: Duration::ZERO }, 5),
            (NetError::NoTcpHalf { peer, detail: text() }, 5),
            (NetError::PeerVanished { peer, detail: text() }, 5),
            (NetError::PeerLies { peer, detail: text() }, 5),
            (NetError::NothingArrived { peer, packets: 3, elapsed: Duration::ZERO }, 5),
            (NetError::Untold { peer, packets: 3, silence: Duration::ZERO }, 5),
            (NetError::NotSent { peer, not_sent: 2, packets: 3, detail: text() }, 1),
            (breaker(), 6),
        ];
        for (error, code) in net {
            let said = error.to_string();
            assert_eq!(of_net(&error), code, "{said}");
            assert_eq!(Failure::from(error).code, code, "{said}");
        }
        let io = || io::Error::from(DISK_FULL);
        let emu: [(EmuError, u8); 10] = [
            (EmuError::DeviceTaken { name: text() }, 1),
            (EmuError::Io { what: text(), source: io() }, 1),
            (EmuError::MtuTooSmall { found: 1, least: 2, why: "x" }, 2),
            (EmuError::Config { field: "x", found: text(), allowed: text() }, 2),
            (EmuError::NoNamespaces { what: "x", source: io() }, 4),
            (EmuError::NoTun(io()), 4),
            (EmuError::NoCallFilter(io()), 4),
            (EmuError::Denied { what: text() }, 4),
            (EmuError::Net(breaker()), 6),
            (EmuError::Busy { holder: Holder { process: None, user: None } }, 9),
        ];
        for (error, code) in emu {
            let said = error.to_string();
            assert_eq!(of_emu(&error), code, "{said}");
            // In the laboratory too, which knows no emulator.
            assert_eq!(Failure::from(RunError::world(error)).code, code, "{said}");
        }
        for (error, code) in [(file("write"), 1), (file("create"), 2), (file("open"), 2)] {
            assert_eq!(Failure::from(error).code, code);
        }
        assert_eq!(Failure::from(RunError::Interrupted).code, 130);
        let no_world = RunError::world(io::Error::from(DISK_FULL));
        assert_eq!(Failure::from(no_world).code, 1, "an error that nobody here knows");
    }
}
