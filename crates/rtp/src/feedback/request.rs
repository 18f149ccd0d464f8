//! The form of feedback that a challenge asks for.

use crate::WireError;
use crate::feedback::rtp_tfrc::wire::Profile;
use crate::wire::Reader;
use fairpace_control::feedback::Form;
use fairpace_units::Duration;

/// The feedback that the sender asks for in its challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Request {
    /// Of every packet: [`crate::feedback::ccfb`].
    #[default]
    Ccfb,
    /// `ack_a` and a sack vector: [`crate::feedback::sack_vector`].
    SackVector,
    /// Of every packet, by transport-wide numbers.
    Twcc,
    /// The receiver's own measurements: [`crate::feedback::rtp_tfrc`].
    RtpTfrc(Profile),
    /// Receiver reports, with packet pairs: [`crate::feedback::reports::pairs`].
    Reports {
        /// T_rtcp: one report in so long, 10 ms to 5 s.
        interval: Duration,
        /// A TCP connection follows, and some packets come over it.
        tcp: bool,
    },
}

/// The report intervals that may be asked for.
const REPORT_INTERVALS: core::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(5);

impl Request {
    /// FMT that asks for sack vectors, with EXT 0.
    const SACK_VECTOR: u8 = 1;
    /// FMT that asks for receiver reports, without and with TCP.
    const RECEIVER_REPORTS: u8 = 2;
    const RECEIVER_REPORTS_AND_TCP: u8 = 3;
    /// FMT that asks for transport-wide feedback.
    const TRANSPORT_WIDE: u8 = 4;

    /// Receiver reports each `interval`, which is brought within what may be asked for.
    pub fn reports(interval: Duration, tcp: bool) -> Self {
        let interval = interval.clamp(*REPORT_INTERVALS.start(), *REPORT_INTERVALS.end());
        Request::Reports { interval, tcp }
    }

    /// `rest`: what follows the challenge's fixed part.
    pub(crate) fn from_wire(extension: u8, fmt: u8, rest: &mut Reader<'_>) -> Result<Self, WireError> {
        match (extension, fmt) {
            (0, 0) => Ok(Request::Ccfb),
            (0, Request::SACK_VECTOR) => Ok(Request::SackVector),
            (0, Request::TRANSPORT_WIDE) => Ok(Request::Twcc),
            (0, Request::RECEIVER_REPORTS | Request::RECEIVER_REPORTS_AND_TCP) => {
                let found = rest.u32()?;
                let interval = Duration::from_micros(found.into());
                if !REPORT_INTERVALS.contains(&interval) {
                    let what = "report interval, us";
                    return Err(WireError::Field { what, found, allowed: "10,000 to 5,000,000" });
                }
                Ok(Request::Reports { interval, tcp: fmt == Request::RECEIVER_REPORTS_AND_TCP })
            }
            (0, _) => Err(WireError::Field { what: "form of feedback", found: fmt.into(), allowed: "0 to 4" }),
            _ => Ok(Request::RtpTfrc(Profile { extension, fmt }.check()?)),
        }
    }

    /// The feedback for another tool, which cannot ask: the form that the user named, that of the profile agreed on,
    /// or one about every packet.
    pub(crate) fn agreed(form: Option<Form>, profile: Option<Profile>) -> Self {
        match (form, profile) {
            (Some(Form::Twcc), _) => Request::Twcc,
            (Some(Form::Ccfb), _) => Request::Ccfb,
            (_, Some(profile)) => Request::RtpTfrc(profile),
            (_, None) => Request::Ccfb,
        }
    }

    /// The numbers of the TFRC profile, if the receiver is to measure.
    pub(crate) const fn profile(self) -> Option<Profile> {
        match self {
            Request::RtpTfrc(profile) => Some(profile),
            _ => None,
        }
    }

    /// How often receiver reports are to come, if they are asked for.
    pub(crate) const fn report_interval(self) -> Option<Duration> {
        match self {
            Request::Reports { interval, .. } => Some(interval),
            _ => None,
        }
    }

    pub(crate) const fn to_wire(self) -> [u8; 2] {
        match self {
            Request::Ccfb => [0, 0],
            Request::SackVector => [0, Request::SACK_VECTOR],
            Request::Twcc => [0, Request::TRANSPORT_WIDE],
            Request::RtpTfrc(p) => [p.extension, p.fmt],
            Request::Reports { tcp: false, .. } => [0, Request::RECEIVER_REPORTS],
            Request::Reports { tcp: true, .. } => [0, Request::RECEIVER_REPORTS_AND_TCP],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_a_person_names_goes_before_the_profile_of_the_other_end() {
        let profile = Some(Profile::default());
        let form = |form, profile| Request::agreed(form, profile);
        assert_eq!(form(Some(Form::Ccfb), profile), Request::Ccfb);
        assert_eq!(form(Some(Form::Twcc), profile), Request::Twcc);
        assert!(matches!(form(None, profile), Request::RtpTfrc(_)));
        assert_eq!(form(None, None), Request::Ccfb);
    }
}
