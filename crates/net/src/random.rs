//! Numbers that nobody can guess.

use crate::NetError;
use fairpace_rtp::Secret;
use nix::errno::Errno;
use ring::rand::{SecureRandom as _, SystemRandom};

/// The session's secret: SSRCs, tokens and nonces come from it, so it must not be guessable.
pub(crate) fn secret() -> Result<Secret, NetError> {
    Ok(Secret::from_bytes(random()?))
}

/// Bytes that nobody can guess: the kernel's, by a call that opens no file.
///
/// # Errors
/// [`NetError::Io`] if the kernel has none.
pub fn random<const N: usize>() -> Result<[u8; N], NetError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NetError::io("get random bits of the kernel", Errno::EIO))?;
    Ok(bytes)
}
