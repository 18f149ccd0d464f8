//! `fairpace key`, and what the ends of a session say of their protection.

use crate::args::Key as Args;
use crate::error::{Failure, Outcome};
use fairpace_net::Key;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

pub(crate) fn run(args: &Args) -> Outcome {
    let path = &args.file;
    let key = Key::generate()?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("`{}` exists already", path.display()))
            .hint("whoever has that key could not be heard any more: take another name, or remove the file first"),
        _ => Failure::unwritable(path, &e),
    })?;
    writeln!(file, "{}", key.to_hex()).and_then(|()| file.sync_all()).map_err(|e| {
        // Half a key is none, and would be in the way.
        let _ = std::fs::remove_file(path);
        Failure::file("write", path, &e)
    })?;
    Ok(writeln!(io::stdout(), "`{}` holds a new key; both ends need it, and nobody else", path.display())?)
}

/// The words of an end about its protection, before anything is agreed on.
pub(crate) const fn protection(key: Option<&Key>, end: End) -> &'static str {
    match (key, end) {
        (Some(_), End::Sender) => {
            "challenges leave, and nothing else before the receiver has shown that it has the key; then all is encrypted (AES-128-GCM)"
        }
        (Some(_), End::Receiver) => "only senders with the key are heard, encrypted (AES-128-GCM)",
        (None, _) => "unauthenticated, in clear (`--key-file` encrypts)",
    }
}

/// An end of a session.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Sender,
    Receiver,
}
