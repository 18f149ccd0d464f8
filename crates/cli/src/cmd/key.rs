//! `fairpace key`, and the files that it makes.

use crate::args::Key as Args;
use crate::error::{Failure, Outcome};
use fairpace_net::Key;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// 64 digits, and white space that an editor may have left.
const LONGEST: u64 = 128;

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

/// The key in a file that only its owner may read.
pub(crate) fn read(path: &Path) -> Outcome<Key> {
    let cannot = |e: io::Error| Failure::usage(format!("cannot read the key in `{}`: {e}", path.display()));
    // A pipe whose other end nobody has would be waited for, before it is seen whose it is.
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = file.map_err(|e| cannot(e).hint("`fairpace key FILE` makes one"))?;
    let about = file.metadata().map_err(cannot)?;
    if ![0, nix::unistd::geteuid().as_raw()].contains(&about.uid()) {
        let others = format!("the key in `{}` is another user's, who may read it", path.display());
        return Err(Failure::usage(others).hint("`fairpace key FILE` makes one of your own"));
    }
    if about.is_dir() {
        return Err(Failure::usage(format!("`{}` is a folder", path.display())).hint("`fairpace key FILE` makes a key"));
    }
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        let found = format!("others may read the key in `{}` (mode {mode:03o})", path.display());
        return Err(Failure::usage(found).hint(format!("`chmod 600 {}`", path.display())));
    }
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).map_err(|e| cannot(e.into()))?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(cannot)?;
    Key::from_hex(&text).ok_or_else(|| {
        Failure::usage(format!("`{}` holds no key: 64 hexadecimal digits are one", path.display()))
            .hint("`fairpace key FILE` makes one")
    })
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
