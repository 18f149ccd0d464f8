//! The file of a key: 64 hexadecimal digits that only its owner may read.

use super::Key;
use crate::NetError;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// 64 digits, and white space that an editor may have left.
const LONGEST: u64 = 128;
/// The remedy of most faults.
const MAKE: &str = "`fairpace key FILE` makes one";

impl Key {
    /// Reads the key in a file that only its owner may read: this process' user or root.
    ///
    /// # Errors
    /// [`NetError::KeyFile`]: the file cannot be read, is another user's, may be read by others, or holds no key.
    pub fn from_file(path: &Path) -> Result<Key, NetError> {
        let refuse = |found: String, remedy: &str| NetError::KeyFile { found, remedy: remedy.to_owned() };
        let unreadable = |e: io::Error| {
            let remedy = match e.kind() {
                io::ErrorKind::NotFound => MAKE,
                io::ErrorKind::PermissionDenied => "it must be this user's own, and so must the folders that it is in",
                _ => "",
            };
            refuse(format!("cannot read the key in `{}`: {e}", path.display()), remedy)
        };
        // A pipe whose other end nobody has would be waited for, before it is seen whose it is.
        let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).map_err(unreadable)?;
        check(path, &file.metadata().map_err(unreadable)?)?;
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).map_err(|e| unreadable(e.into()))?;
        let mut text = String::new();
        match file.take(LONGEST).read_to_string(&mut text) {
            Err(e) if e.kind() != io::ErrorKind::InvalidData => return Err(unreadable(e)),
            _ => {}
        }
        let key = Key::from_hex(&text)
            .ok_or_else(|| refuse(format!("`{}` holds no key: 64 hexadecimal digits are one", path.display()), MAKE))?;
        let [first, others @ ..] = key.0;
        if others.iter().all(|byte| *byte == first) {
            return Err(refuse(
                format!("anybody can guess the key in `{}`: it is one byte again and again", path.display()),
                MAKE,
            ));
        }
        Ok(key)
    }
}

/// Refuses a file that others may read, or may have written.
fn check(path: &Path, about: &Metadata) -> Result<(), NetError> {
    let name = path.display();
    let refuse = |found: String, remedy: String| Err(NetError::KeyFile { found, remedy });
    if about.is_dir() {
        return refuse(format!("`{name}` is a folder"), MAKE.to_owned());
    }
    if ![0, nix::unistd::geteuid().as_raw()].contains(&about.uid()) {
        return refuse(
            format!("the key in `{name}` is another user's, who may read it"),
            "`fairpace key FILE` makes one of your own".to_owned(),
        );
    }
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        return refuse(format!("others may read the key in `{name}` (mode {mode:03o})"), format!("`chmod 600 {name}`"));
    }
    Ok(())
}
