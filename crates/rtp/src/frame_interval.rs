//! The time between two pictures of the sender's source, told to the receiver: by it the receiver counts the pictures that were
//! never encoded, or never sent.
//!
//! ```text
//!  V=2|P| subtype 8 | PT=204 | length = 3
//!  SSRC of the media
//!  "FPCE"
//!  interval, µs (32), 1 ms to 10 s
//! ```
//!
//! The message is behind each of the sender's reports.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::WireError;
use crate::rtcp::{self, App, NAME};
use crate::wire::{Put, Reader, micros};
use fairpace_units::Duration;

const SUBTYPE: u8 = 8;
/// Intervals that are believed: 1,000 pictures a second to one in 10 s.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(10);

/// Whether the packet is such a message.
pub(crate) fn is_interval(app: &App<'_>) -> bool {
    app.name == NAME && app.subtype == SUBTYPE
}

/// Reads the message: the time between two pictures.
///
/// # Errors
/// [`WireError`] if it is too short, or the interval is not from 1 ms to 10 s.
pub fn parse(app: &App<'_>) -> Result<Duration, WireError> {
    let us = Reader::new("frame interval", app.data).u32()?;
    let interval = Duration::from_micros(us.into());
    if !(LEAST..=MOST).contains(&interval) {
        return Err(WireError::Field { what: "frame interval, µs", found: us, allowed: "1,000 to 10,000,000" });
    }
    Ok(interval)
}

/// Appends the message to `out`; an interval out of range is told as the nearest in range.
pub fn emit(media: u32, interval: Duration, out: &mut Vec<u8>) {
    rtcp::emit_packet(out, rtcp::packet_type::APP, SUBTYPE.into(), |out| {
        out.put_u32(media);
        out.put(&NAME);
        out.put_u32(micros(interval.clamp(LEAST, MOST)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Option<Result<Duration, WireError>> {
        match Compound::parse(bytes).ok()?.next()? {
            Rtcp::App(app) if is_interval(&app) => Some(parse(&app)),
            _ => None,
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_picture() {
        let mut out = Vec::new();
        emit(0x0102_0304, Duration::from_millis(40), &mut out);
        // 40,000 us = 0x9c40
        assert_eq!(out, [0x88, 204, 0, 3, 1, 2, 3, 4, b'F', b'P', b'C', b'E', 0, 0, 0x9c, 0x40]);
        assert_eq!(read(&out), Some(Ok(Duration::from_millis(40))));
    }

    proptest! {
        #[test]
        fn any_interval_is_read_back_within_its_range(us: u32, ssrc: u32) {
            let mut out = Vec::new();
            emit(ssrc, Duration::from_micros(us.into()), &mut out);
            prop_assert_eq!(read(&out), Some(Ok(Duration::from_micros(us.into()).clamp(LEAST, MOST))));
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..20)) {
            let read = parse(&App { ssrc: 1, subtype: SUBTYPE, name: NAME, data: &data });
            prop_assert!(read.is_err() || read.is_ok_and(|interval| (LEAST..=MOST).contains(&interval)));
        }
    }
}
