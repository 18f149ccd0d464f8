//! Numbers that nobody can guess.

use crate::NetError;
use fairpace_rtp::Secret;
use std::io::Read;

/// The session's secret: SSRCs, tokens and nonces come from it, so it must not be guessable.
pub(crate) fn secret() -> Result<Secret, NetError> {
    Ok(Secret::from_bytes(random()?))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NetError> {
    let mut bytes = [0; N];
    let mut file = std::fs::File::open("/dev/urandom").map_err(|e| NetError::io("open /dev/urandom", e))?;
    file.read_exact(&mut bytes).map_err(|e| NetError::io("read /dev/urandom", e))?;
    Ok(bytes)
}
