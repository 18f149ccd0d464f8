//! The RTP profile for TFRC: a receiver that measures, as another tool's may be [draft-ietf-avt-tfrc-profile-10].
//!
//! The draft expired in 2008; Farstream ships it. Every media packet carries the sender's RTT and the time it
//! was sent, in a header extension; about once per RTT the receiver reports what it measured, in an RTCP packet.
//!
//! ```text
//!  urn:ietf:params:rtp-hdrext:rtt-sendts, 7 bytes:      transport feedback [RFC 4585 §6.2]: PT=205, FMT=2
//!                 RTT, µs (24)                          V=2|P| FMT | PT=205 | length = 6
//!  time sent, µs (32)                                   SSRC of the reporter
//!                                                       SSRC of the media stream
//!                                                       time sent of the last packet received, echoed (32)
//!                                                       time since its arrival, µs (32)
//!                                                       X_recv, bytes per second (32)
//!                                                       loss event rate p × (2^32 − 1) (32)
//! ```
//!
//! The time sent wraps every 71.6 min ([`unwrap`]); the RTT saturates at 16.7 s, and zero means that none is
//! known. FMT 2 was never registered, and the extension's number is the session description's to say: see
//! [`Profile`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub use crate::stamp::{STAMP_LEN, Stamp};
use crate::wire::{Put, Reader, micros};
use crate::{WireError, rtcp};
use fairpace_control::RateReport;
use fairpace_units::{Duration, Instant, Rate};

/// The header extension's name in a session description.
pub const URI: &str = "urn:ietf:params:rtp-hdrext:rtt-sendts";

/// The numbers that two ends must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Number of the header extension, 1 to 14.
    pub extension: u8,
    /// Feedback message type of the reports, 0 to 31.
    pub fmt: u8,
}

impl Default for Profile {
    /// Extension 3 (1 and 2 are in use: [`crate::header_ext`]), and the draft's FMT.
    fn default() -> Self {
        Profile { extension: 3, fmt: 2 }
    }
}

impl Profile {
    /// Whether these numbers can be told apart from all others in use here.
    ///
    /// # Errors
    /// [`WireError::Field`] with what is allowed.
    pub fn check(self) -> Result<Self, WireError> {
        if !(1..=14).contains(&self.extension) || crate::header_ext::OURS.contains(&self.extension) {
            return Err(WireError::Field {
                what: "header extension rtt-sendts",
                found: self.extension.into(),
                allowed: "3 to 14",
            });
        }
        if !(1..=31).contains(&self.fmt) || matches!(self.fmt, rtcp::fmt::NACK | rtcp::fmt::CCFB) {
            return Err(WireError::Field { what: "FMT", found: self.fmt.into(), allowed: "2 to 31, but not 11" });
        }
        Ok(self)
    }
}

/// A report, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Who reports.
    pub reporter: u32,
    /// About which stream.
    pub media: u32,
    /// [`Stamp::sent`] of the last packet received.
    pub echoed: u32,
    /// From its arrival to this report, µs; 71.6 min at most.
    pub delay: u32,
    /// X_recv, bytes per second.
    pub received_rate: u32,
    /// p × (2^32 − 1).
    pub loss_event_rate: u32,
}

/// Bytes of the packet.
pub const REPORT_LEN: usize = 28;

impl Report {
    /// The report of a receiver's measurements; `echoed` is the last stamp's time as it came.
    pub fn new(reporter: u32, media: u32, echoed: u32, r: &RateReport) -> Self {
        // `as` saturates, and takes NaN for zero.
        Report {
            reporter,
            media,
            echoed,
            delay: micros(r.delay),
            received_rate: (r.received_rate.as_bps() / 8.0).round() as u32,
            loss_event_rate: (r.loss_event_rate * f64::from(u32::MAX)).round() as u32,
        }
    }

    /// From the packet's SSRCs and its FCI. Whatever follows the four words is left alone.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer than four.
    pub fn parse(reporter: u32, media: u32, fci: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new("TFRC feedback", fci);
        Ok(Report {
            reporter,
            media,
            echoed: r.u32()?,
            delay: r.u32()?,
            received_rate: r.u32()?,
            loss_event_rate: r.u32()?,
        })
    }

    /// Appends the packet to `out`.
    pub fn emit(&self, fmt: u8, out: &mut Vec<u8>) {
        rtcp::emit_packet(out, rtcp::packet_type::TRANSPORT_FEEDBACK, fmt.into(), |out| {
            out.put_u32(self.reporter);
            out.put_u32(self.media);
            out.put_u32(self.echoed);
            out.put_u32(self.delay);
            out.put_u32(self.received_rate);
            out.put_u32(self.loss_event_rate);
        });
    }

    /// In the controller's terms; `echoed` is what [`Report::echoed`] stands for.
    pub fn measured(&self, echoed: Instant) -> RateReport {
        RateReport {
            echoed,
            delay: Duration::from_micros(self.delay.into()),
            received_rate: Rate::bps(f64::from(self.received_rate) * 8.0),
            loss_event_rate: f64::from(self.loss_event_rate) / f64::from(u32::MAX),
        }
    }
}

/// The 64-bit time nearest to `near` whose low 32 bits are `time`: undoes the wrap every 71.6 min, as long as
/// the two are less than 35.8 min apart.
pub const fn unwrap(near: u64, time: u32) -> u64 {
    let step = time.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(step as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header_ext::Extensions;
    use crate::packet::Packet;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Option<(u8, Report)> {
        match Compound::parse(bytes).ok()?.next()? {
            Rtcp::TransportFeedback { fmt, sender, media, fci } => Some((fmt, Report::parse(sender, media, fci).ok()?)),
            _ => None,
        }
    }

    /// Written by hand from the draft's figures.
    #[rustfmt::skip]
    const FEEDBACK: [u8; REPORT_LEN] = [
        0x82, 205, 0x00, 0x06,  // V=2, FMT 2; RTPFB; 7 words
        0x11, 0x22, 0x33, 0x44, // the reporter
        0x55, 0x66, 0x77, 0x88, // the media stream
        0xff, 0xff, 0xff, 0xfe, // sent 2 µs before the wrap
        0x00, 0x00, 0x27, 0x10, // 10 ms ago
        0x00, 0x01, 0x86, 0xa0, // 100,000 B/s = 800 kbit/s
        0x02, 0x8f, 0x5c, 0x29, // 42,949,673 / 4,294,967,295 = 0.01
    ];

    #[test]
    fn a_report_written_by_hand_is_read_field_by_field_and_written_the_same() {
        let (fmt, report) = parse(&FEEDBACK).unwrap();
        assert_eq!((fmt, report.reporter, report.media), (2, 0x1122_3344, 0x5566_7788));
        assert_eq!((report.echoed, report.delay), (u32::MAX - 1, 10_000));
        let measured = report.measured(Instant::from_secs_f64(7.0));
        assert_eq!(measured.echoed, Instant::from_secs_f64(7.0));
        assert_eq!(measured.delay, Duration::from_millis(10));
        assert_eq!(measured.received_rate, Rate::kbps(800.0));
        assert!((measured.loss_event_rate - 0.01).abs() < 1e-9, "{}", measured.loss_event_rate);
        let mut out = Vec::new();
        Report::new(report.reporter, report.media, report.echoed, &measured).emit(2, &mut out);
        assert_eq!(out, FEEDBACK);
    }

    #[test]
    fn a_packet_written_by_hand_gives_its_stamp() {
        #[rustfmt::skip]
        let packet = [
            0x90, 0x60, 0x00, 0x01,                         // V=2, X; PT 96; sequence 1
            0, 0, 0, 0, 0, 0, 0, 9,                         // timestamp; SSRC 9
            0xbe, 0xde, 0x00, 0x02,                         // one-byte form, two words
            0x56, 0x01, 0x86, 0xa0, 0x12, 0x34, 0x56, 0x78, // id 5, 7 bytes: 100,000 µs, 0x12345678
            0xaa,
        ];
        let read = Packet::parse_with(&packet, 5).unwrap().extensions;
        assert_eq!(read.stamp, Some((5, Stamp { rtt: 100_000, sent: 0x1234_5678 })));
        assert_eq!(read.stamp.unwrap().1.rtt(), Some(Duration::from_millis(100)));
        assert_eq!(Packet::parse_with(&packet, 6).unwrap().extensions, Extensions::default(), "another's number");
        // Six bytes are something else.
        let mut short = packet;
        short[16] = 0x55;
        assert_eq!(Packet::parse_with(&short, 5).unwrap().extensions, Extensions::default());
    }

    #[test]
    fn what_farstream_sends_is_read() {
        // Captured from Farstream 0.2.9 (Debian 12): a media packet, cut behind its VP8 descriptor, 56 ms after the
        // first and before any report; then the feedback packet of a compound, when one packet in 50 was lost.
        #[rustfmt::skip]
        let media = [
            0x90, 0xe0, 0x00, 0x18, 0xc7, 0xeb, 0x68, 0x3e, 0x3e, 0xef, 0xb7, 0xb7,
            0xbe, 0xde, 0x00, 0x02, 0x36, 0x00, 0x00, 0x00, 0x00, 0x00, 0xdb, 0x3a, 0x10,
        ];
        let packet = Packet::parse(&media).unwrap();
        assert_eq!(packet.extensions.stamp, Some((3, Stamp { rtt: 0, sent: 56_122 })));
        assert_eq!((packet.sequence, packet.ssrc, packet.payload), (24, 0x3eef_b7b7, &[0x10][..]));
        #[rustfmt::skip]
        let feedback = [
            0x82, 0xcd, 0x00, 0x06, 0xa1, 0x23, 0x9b, 0x24, 0x01, 0x23, 0x45, 0x67,
            0x00, 0x1f, 0x94, 0xb9, 0x00, 0x00, 0x00, 0x5f, 0x00, 0x00, 0x3f, 0xf6, 0x1c, 0x71, 0xc7, 0x1c,
        ];
        let (fmt, report) = parse(&feedback).unwrap();
        assert_eq!((fmt, report.media, report.echoed, report.delay), (2, 0x0123_4567, 2_069_689, 95));
        let measured = report.measured(Instant::ZERO);
        assert_eq!(measured.received_rate, Rate::bps(16_374.0 * 8.0));
        // One loss event in nine packets: its first loss interval is still short.
        assert!((measured.loss_event_rate - 1.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn an_rtt_saturates_at_16_7_s_and_a_known_one_is_never_zero() {
        let rtt = |d| Stamp::new(Some(d), 0).rtt;
        assert_eq!(rtt(Duration::from_secs(16)), 16_000_000);
        assert_eq!(rtt(Duration::from_secs(17)), 16_777_215);
        assert_eq!(rtt(Duration::MAX), 16_777_215);
        assert_eq!(rtt(Duration::from_nanos(10)), 1);
        assert_eq!((Stamp::new(None, 0).rtt, Stamp::new(None, 0).rtt()), (0, None));
    }

    #[test]
    fn what_cannot_be_said_saturates() {
        let r = |bps, p| {
            let measured = RateReport {
                echoed: Instant::ZERO,
                delay: Duration::MAX,
                received_rate: Rate::bps(bps),
                loss_event_rate: p,
            };
            let r = Report::new(1, 2, 3, &measured);
            (r.delay, r.received_rate, r.loss_event_rate)
        };
        assert_eq!(r(1e12, 2.0), (u32::MAX, u32::MAX, u32::MAX));
        assert_eq!(r(0.0, -1.0), (u32::MAX, 0, 0));
        assert_eq!(r(0.0, f64::NAN), (u32::MAX, 0, 0));
    }

    #[test]
    fn a_report_that_is_cut_anywhere_is_refused() {
        for n in 0..REPORT_LEN {
            assert_eq!(parse(&FEEDBACK[..n]), None, "{n} bytes");
            // The same with a length field that admits to it: fewer than four words of FCI.
            let mut cut = FEEDBACK[..n].to_vec();
            if let (Some(words), 0) = ((n / 4).checked_sub(1), n % 4) {
                cut[3] = words as u8;
                assert_eq!(parse(&cut), None, "{n} bytes");
            }
        }
    }

    #[test]
    fn numbers_that_mean_something_else_are_no_profile() {
        assert_eq!(Profile::default().check(), Ok(Profile { extension: 3, fmt: 2 }));
        for extension in [0, 1, 2, 15, 255] {
            assert!(Profile { extension, fmt: 2 }.check().is_err(), "{extension}");
        }
        for fmt in [0, 1, 11, 32] {
            assert!(Profile { extension: 3, fmt }.check().is_err(), "{fmt}");
        }
    }

    #[test]
    fn two_hours_of_stamps_count_on_across_the_wraps() {
        // 7,200 s hold one wrap after 4,295 s; each stamp is read with the one before as the nearest.
        let mut near = 1_u64 << 32;
        for second in 0..7_200_u64 {
            let truth = (1 << 32) + second * 1_000_000;
            assert_eq!(unwrap(near, truth as u32), truth, "{second} s");
            near = truth;
        }
        // A packet that was overtaken across the wrap.
        assert_eq!(unwrap((2 << 32) + 5, u32::MAX), (2 << 32) - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn reports_are_read_back(words: [u32; 6], fmt in 2_u8..32) {
            prop_assume!(fmt != rtcp::fmt::CCFB);
            let [reporter, media, echoed, delay, received_rate, loss_event_rate] = words;
            let report = Report { reporter, media, echoed, delay, received_rate, loss_event_rate };
            let mut out = Vec::new();
            report.emit(fmt, &mut out);
            prop_assert_eq!(out.len(), REPORT_LEN);
            prop_assert_eq!(parse(&out), Some((fmt, report)));
            // The measurements and the controller's view of them agree: the conversion loses nothing.
            prop_assert_eq!(Report::new(reporter, media, echoed, &report.measured(Instant::ZERO)), report);
        }

        #[test]
        fn stamps_are_read_back(rtt in 0_u32..1 << 24, sent: u32) {
            let stamp = Stamp { rtt, sent };
            prop_assert_eq!(Stamp::from_wire(stamp.to_wire()), stamp);
        }

        #[test]
        fn any_fci_is_read_or_refused(fci in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Report::parse(1, 2, &fci).is_ok(), fci.len() >= 16);
        }

        #[test]
        fn unwrapping_gives_the_nearest_time_with_those_low_bits(near in 1_u64 << 32..1 << 40, time: u32) {
            let t = unwrap(near, time);
            prop_assert_eq!(t as u32, time);
            prop_assert!(t.abs_diff(near) <= 1 << 31);
        }
    }
}
