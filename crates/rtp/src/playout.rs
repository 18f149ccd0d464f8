//! The receiver's play-out delay, told to the sender: by it the sender knows which lost packet is worth sending again, and
//! how long a frame may wait.
//!
//! ```text
//!  V=2|P| subtype 5 | PT=204 | length = 3
//!  SSRC of the receiver
//!  "FPCE"
//!  delay, µs (32), at most 10 s
//! ```
//!
//! The receiver sends the message when the delay changes, and again with each of its reports.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::rtcp::{self, App, NAME};
use crate::wire::{Put, Reader, micros};
use fairpace_units::Duration;

const SUBTYPE: u8 = 5;
/// A longer delay is not believed: nobody watches a live stream so late, and so long would frames wait.
pub const MOST: Duration = Duration::from_secs(10);

/// Whether the packet is such a message.
pub(crate) fn is_delay(app: &App<'_>) -> bool {
    app.name == NAME && app.subtype == SUBTYPE
}

/// Reads the message: the play-out delay.
///
/// # Errors
/// [`WireError`] if it is too short, or the delay is longer than [`MOST`].
pub fn parse(app: &App<'_>) -> Result<Duration, WireError> {
    let us = Reader::new("play-out delay", app.data).u32()?;
    let delay = Duration::from_micros(us.into());
    if delay > MOST {
        return Err(WireError::Field { what: "play-out delay, µs", found: us, allowed: "at most 10,000,000" });
    }
    Ok(delay)
}

/// Appends the message to `out`.
pub fn emit(receiver: u32, delay: Duration, out: &mut Vec<u8>) {
    rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
        out.put_u32(receiver);
        out.put(&NAME);
        out.put_u32(micros(delay.min(MOST)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Option<Result<Duration, WireError>> {
        match Compound::parse(bytes).ok()?.next()? {
            Rtcp::App(app) if is_delay(&app) => Some(parse(&app)),
            _ => None,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_picture() {
        let mut out = Vec::new();
        emit(0x0102_0304, Duration::from_millis(700), &mut out);
        // 700,000 us = 0x000aae60
        assert_eq!(out, [0x85, 204, 0, 3, 1, 2, 3, 4, b'F', b'P', b'C', b'E', 0x00, 0x0a, 0xae, 0x60]);
        assert_eq!(read(&out), Some(Ok(Duration::from_millis(700))));
    }

    proptest! {
        #[test]
        fn any_delay_is_read_back_up_to_ten_seconds(us: u32, ssrc: u32) {
            let mut out = Vec::new();
            emit(ssrc, Duration::from_micros(us.into()), &mut out);
            prop_assert_eq!(read(&out), Some(Ok(Duration::from_micros(us.into()).min(MOST))));
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..20)) {
            let read = parse(&App { ssrc: 1, subtype: SUBTYPE, name: NAME, data: &data });
            prop_assert!(read.is_err() || read.is_ok_and(|delay| delay <= MOST));
        }
    }
}
