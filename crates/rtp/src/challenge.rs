//! "Are you there, and do you want this?": the exchange that must succeed before anything else is
//! sent, so that nobody can aim a sender at a third party.
//!
//! Both messages are RTCP APP packets named `FPCE`, of 36 bytes each (a challenge 4 more if a report interval is asked for, 4
//! more with a proof, and 8 more with repair packets), so that the answer is never larger than the question. The challenge goes out in both classes (normal, LE); the echo says with
//! which marks it arrived, and gives the first round-trip time.
//!
//! ```text
//!  challenge (subtype 0)                      echo (subtype 1)
//!  V=2|P| subtype | PT=204 | length = 8       the same
//!  SSRC of the media stream                   SSRC of the receiver
//!  "FPCE"                                     "FPCE"
//!  token (64)                                 token (64), as received
//!  version | class | media PT | codec         version | DSCP | TAKEN, FEC, BUSY, ENDS, SHOW, ECN | rwnd
//!  FEC (1), dummy PT (7) | RTX PT (0 = none) | EXT | FMT   time from arrival to this echo, µs (32)
//!  SSRC of the dummy stream                   feedback interval, µs (32)
//!  SSRC of the retransmissions (0 = none)     number of the next report (32), see claim
//!  only with FMT 2 and 3:
//!  report interval, µs (32)
//!  only after an echo with TAKEN or SHOW:
//!  proof (32)
//!  only with FEC:
//!  FEC PT | 0 (24)
//!  SSRC of the repair packets
//! ```
//!
//! TAKEN: another sender's stream comes from the address of this one. An address has one owner, so that the other one is gone, or
//! somebody forges the challenge. Who challenges again with the number of the echo as proof sees what goes to that address; the receiver
//! then lets it in, and keeps nothing of a challenge without one.
//!
//! BUSY: another sender has the place, at another address, and the challenge waits for 4 s. Such an echo tells nothing of the receiver: SSRC,
//! FEC, rwnd, interval and number are 0. The token is good for one more answer. BUSY with ENDS: the receiver ends, and lets nobody in any more.
//!
//! SHOW: the sender has the place, and has not shown yet that it sees what goes to its address. Another challenge, with the number of the echo
//! as proof, shows it, at once and beside everything else: who forges addresses can hold a place, and is never taken for a sender that was there. A
//! sender of before there was such a bit reads nothing, and shows nothing.
//!
//! FEC in the challenge: the sender has repair packets ([`crate::fec`]) for a receiver that knows them; FEC in the echo: the receiver does.
//! A receiver of before there were any reads neither the bit nor what stands behind the proof.
//!
//! EXT and FMT say which feedback is wanted ([`Request`]): EXT 0 with FMT 0 of every packet, EXT 0 with FMT 1 sack
//! vectors, EXT 0 with FMT 2 receiver reports, with FMT 3 the same and a TCP connection is to follow; another EXT reports
//! of the TFRC profile, whose two numbers they are. rwnd is in packets, up to 255; 0: nothing is said.
//!
//! The sender opens the TCP connection to the receiver's address and port. The connection begins with the challenge that
//! the receiver has echoed, framed ([`crate::framing`]): so the sender over TCP is the sender over UDP. The receiver
//! answers with its echo, framed; the SSRC in the echo shows that the same receiver has the datagrams.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::codec::Codec;
use crate::feedback::Request;
use crate::rtcp::App;
pub use crate::rtcp::NAME;
use crate::wire::{Put, Reader, micros};
use crate::{WireError, rtcp};
use core::num::NonZeroU8;
use fairpace_units::{Class, Dscp, Duration, Ecn};

/// Version of the formats in this file and in [`crate::feedback::claim`].
pub const VERSION: u8 = 1;
/// Bytes of an echo, and of a challenge that asks for no report interval.
pub const LEN: usize = 36;
/// Bytes of the longest challenge.
pub const MAX_LEN: usize = LEN + 16;

/// Where an echo has its window, behind header, SSRC, name, token, version, DSCP and marks.
pub(crate) const ECHO_RWND: usize = 23;

/// In an echo's ECN byte.
const TAKEN: u8 = 0x80;
const KNOWS_FEC: u8 = 0x40;
const BUSY: u8 = 0x20;
const ENDS: u8 = 0x10;
const SHOW: u8 = 0x08;
/// In front of a challenge's dummy payload type.
const HAS_FEC: u8 = 0x80;
const FEC_LEN: usize = 8;

/// Consent ends after so long without a sign of the peer [RFC 7675 §5.1]; asked for anew from half of it, even if nothing is sent.
pub const CONSENT: Duration = Duration::from_secs(30);

const CHALLENGE: u8 = 0;
const ECHO: u8 = 1;
/// The subtype of padding. Receivers that do not know it pass over it.
const PADDING: u8 = 6;

/// The sender's question, and the description of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Unguessable; another one for each datagram, so that an echo says which was answered.
    pub token: u64,
    /// The class it was sent in.
    pub class: Class,
    /// The encoding of the media stream.
    pub codec: Codec,
    /// Media stream: payload type and SSRC.
    pub media: (u8, u32),
    /// Dummy stream: payload type and SSRC.
    pub dummy: (u8, u32),
    /// Retransmission stream, if there is one.
    pub retransmission: Option<(u8, u32)>,
    /// Repair packets: payload type and SSRC, if the sender has any.
    pub fec: Option<(u8, u32)>,
    /// The feedback that the sender wants.
    pub form: Request,
    /// The number that an echo with `taken` or `show` told; `None` if there was none.
    pub proof: Option<u32>,
}

/// The receiver's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The receiver's SSRC: feedback from another one is not believed.
    pub receiver: u32,
    /// The challenge's token.
    pub token: u64,
    /// The code point that arrived.
    pub dscp: Dscp,
    /// The ECN field that arrived.
    pub ecn: Ecn,
    /// Time between the challenge's arrival and this echo; to be taken off the round trip.
    pub delay: Duration,
    /// The advertised window, packets, 1 to 255, so that it holds before the first ACK; `None`: nothing is said. Only
    /// for senders that ask to be told of each packet.
    pub rwnd: Option<NonZeroU8>,
    /// How often the receiver means to send feedback; zero = at every packet.
    pub feedback_interval: Duration,
    /// The number that the next feedback will carry: nobody else can guess it. With `taken`, the proof that is wanted; with `show`
    /// both.
    pub next_report: u32,
    /// Another sender has the place: challenge again, with the proof.
    pub taken: bool,
    /// The receiver knows repair packets, and wants them.
    pub fec: bool,
    /// A sender of another address has the place: the challenge waits.
    pub busy: bool,
    /// With `busy`: the receiver ends, and the challenge waits in vain.
    pub ends: bool,
    /// The sender is let in: let it challenge once more, with the proof that it hears this.
    pub show: bool,
}

impl Challenge {
    /// Whether a TCP connection is to follow.
    pub const fn announces_tcp(&self) -> bool {
        matches!(self.form, Request::Reports { tcp: true, .. })
    }

    /// Bytes of the packet.
    pub const fn len(form: Request, proof: Option<u32>, fec: bool) -> usize {
        let interval = if matches!(form, Request::Reports { .. }) { 4 } else { 0 };
        let proof = if proof.is_some() { 4 } else { 0 };
        let fec = if fec { FEC_LEN } else { 0 };
        LEN.saturating_add(interval).saturating_add(proof).saturating_add(fec)
    }

    /// Appends the packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        rtcp::emit_packet(out, rtcp::packet_type::APP, CHALLENGE.into(), |out| {
            let (rtx_type, rtx_ssrc) = self.retransmission.unwrap_or((0, 0));
            out.put_u32(self.media.1);
            out.put(&NAME);
            out.put_u64(self.token);
            out.put(&[VERSION, u8::from(self.class == Class::Low), self.media.0, self.codec as u8]);
            let [extension, fmt] = self.form.to_wire();
            let has_fec = if self.fec.is_some() { HAS_FEC } else { 0 };
            out.put(&[has_fec | self.dummy.0, rtx_type, extension, fmt]);
            out.put_u32(self.dummy.1);
            out.put_u32(rtx_ssrc);
            if let Request::Reports { interval, .. } = self.form {
                out.put_u32(micros(interval));
            }
            if let Some(proof) = self.proof {
                out.put_u32(proof);
            }
            if let Some((payload_type, ssrc)) = self.fec {
                out.put(&[payload_type, 0, 0, 0]);
                out.put_u32(ssrc);
            }
        });
    }
}

/// Appends a packet that says nothing, as long as it takes to make `out` `len` bytes, rounded up to whole words; behind a challenge
/// it makes a question of the path's MTU. Nothing is appended where there is no room for its header.
pub fn emit_padding(ssrc: u32, len: usize, out: &mut Vec<u8>) {
    const HEADER: usize = 12;
    let written = out.len().saturating_add(HEADER);
    if let Some(rest) = len.checked_next_multiple_of(4).and_then(|len| len.checked_sub(written)) {
        rtcp::emit_packet(out, rtcp::packet_type::APP, PADDING.into(), |out| {
            out.put_u32(ssrc);
            out.put(&NAME);
            out.resize(out.len().saturating_add(rest), 0);
        });
    }
}

impl Echo {
    /// Appends the packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        rtcp::emit_packet(out, rtcp::packet_type::APP, ECHO.into(), |out| {
            out.put_u32(self.receiver);
            out.put(&NAME);
            out.put_u64(self.token);
            let taken = if self.taken { TAKEN } else { 0 };
            let fec = if self.fec { KNOWS_FEC } else { 0 };
            let busy = if self.busy { BUSY } else { 0 };
            let ends = if self.ends { ENDS } else { 0 };
            let show = if self.show { SHOW } else { 0 };
            let marks = taken | fec | busy | ends | show | self.ecn as u8;
            out.put(&[VERSION, self.dscp.get(), marks, self.rwnd.map_or(0, NonZeroU8::get)]);
            out.put_u32(micros(self.delay));
            out.put_u32(micros(self.feedback_interval));
            out.put_u32(self.next_report);
        });
    }
}

/// Either message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A challenge.
    Challenge(Challenge),
    /// An echo.
    Echo(Echo),
}

impl Message {
    /// From an APP packet; `None` if it is not one of ours.
    ///
    /// # Errors
    /// [`WireError`] if it is ours and too short, or names a version, a codec or a form of feedback that
    /// there is not.
    pub fn parse(app: &App<'_>) -> Result<Option<Self>, WireError> {
        if app.name != NAME || app.subtype > ECHO {
            return Ok(None);
        }
        let mut r = Reader::new("challenge or echo", app.data);
        let token = r.u64()?;
        let version = r.u8()?;
        if version != VERSION {
            return Err(WireError::Field { what: "challenge version", found: version.into(), allowed: "1" });
        }
        if app.subtype == ECHO {
            let dscp = Dscp::new(r.u8()?);
            let marks = r.u8()?;
            let ecn = Ecn::from_bits(marks);
            let rwnd = NonZeroU8::new(r.u8()?);
            let delay = Duration::from_micros(r.u32()?.into());
            let feedback_interval = Duration::from_micros(r.u32()?.into());
            return Ok(Some(Message::Echo(Echo {
                receiver: app.ssrc,
                token,
                dscp,
                ecn,
                delay,
                rwnd,
                feedback_interval,
                next_report: r.u32()?,
                taken: marks & TAKEN != 0,
                fec: marks & KNOWS_FEC != 0,
                busy: marks & BUSY != 0,
                ends: marks & ENDS != 0,
                show: marks & SHOW != 0,
            })));
        }
        let class = if r.u8()? == 0 { Class::Normal } else { Class::Low };
        let media_type = r.u8()? & 0x7f;
        let codec = r.u8()?;
        let codec = Codec::from_wire(codec).ok_or(WireError::Field {
            what: "codec",
            found: codec.into(),
            allowed: "0 (generic) or 1 (VP8)",
        })?;
        let dummy_type = r.u8()?;
        let (has_fec, dummy_type) = (dummy_type & HAS_FEC != 0, dummy_type & 0x7f);
        let rtx_type = r.u8()? & 0x7f;
        let [extension, fmt] = [r.u8()?, r.u8()?];
        let dummy_ssrc = r.u32()?;
        let rtx_ssrc = r.u32()?;
        let form = Request::from_wire(extension, fmt, &mut r)?;
        let has_proof = r.len() >= if has_fec { 4 + FEC_LEN } else { 4 };
        let proof = if has_proof { Some(r.u32()?) } else { None };
        let fec = if has_fec {
            let [payload_type, _, _, _] = r.u32()?.to_be_bytes();
            Some((payload_type & 0x7f, r.u32()?))
        } else {
            None
        };
        Ok(Some(Message::Challenge(Challenge {
            token,
            class,
            codec,
            media: (media_type, app.ssrc),
            dummy: (dummy_type, dummy_ssrc),
            retransmission: (rtx_type != 0).then_some((rtx_type, rtx_ssrc)),
            fec,
            form,
            proof,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::rtp_tfrc::wire::Profile;
    use crate::rtcp::{Compound, Rtcp};
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Option<Message>, WireError> {
        match Compound::parse(bytes)?.next() {
            Some(Rtcp::App(app)) => Message::parse(&app),
            _ => Ok(None),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn both_messages_are_read_back_and_the_answer_is_no_longer(
            token: u64, ssrcs: (u32, u32, u32), types: (u8, u8, u8), low: bool, vp8: bool, rtx: bool,
            form in prop_oneof![
                Just(Request::Ccfb),
                Just(Request::SackVector),
                Just(Request::Twcc),
                (3_u8..15).prop_map(|extension| Request::RtpTfrc(Profile { extension, fmt: extension + 12 })),
                (10_000_u64..=5_000_000, any::<bool>())
                    .prop_map(|(us, tcp)| Request::reports(Duration::from_micros(us), tcp)),
            ],
            echo: (u32, u8, u8, u32, u32, u32), rwnd: u8, marks: (bool, bool, bool, bool, bool), proof: Option<u32>,
            fec in prop::option::of((0_u8..128, any::<u32>())),
        ) {
            let (taken, knows_fec, busy, ends, show) = marks;
            let class = if low { Class::Low } else { Class::Normal };
            let codec = if vp8 { Codec::Vp8 } else { Codec::Generic };
            let challenge = Challenge {
                token, class, codec,
                media: (types.0 & 0x7f, ssrcs.0),
                dummy: (types.1 & 0x7f, ssrcs.1),
                retransmission: rtx.then_some((types.2 & 0x7e | 1, ssrcs.2)),
                fec,
                form,
                proof,
            };
            let answer = Echo {
                receiver: echo.0, token, dscp: Dscp::new(echo.1), ecn: Ecn::from_bits(echo.2),
                delay: Duration::from_micros(echo.3.into()), feedback_interval: Duration::from_micros(echo.4.into()),
                next_report: echo.5, rwnd: NonZeroU8::new(rwnd), taken, fec: knows_fec, busy, ends, show,
            };
            let (mut a, mut b) = (Vec::new(), Vec::new());
            challenge.emit(&mut a);
            answer.emit(&mut b);
            prop_assert_eq!((a.len(), b.len()), (Challenge::len(form, proof, fec.is_some()), LEN));
            prop_assert!(a.len() <= MAX_LEN);
            prop_assert_eq!(parse(&a), Ok(Some(Message::Challenge(challenge))));
            prop_assert_eq!(parse(&b), Ok(Some(Message::Echo(answer))));
        }

        #[test]
        fn any_data_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..40), subtype in 0_u8..32) {
            let _ = Message::parse(&App { ssrc: 1, subtype, name: NAME, data: &data });
        }
    }

    #[test]
    fn the_form_is_two_bytes_and_what_is_none_is_refused() {
        let form = |extension, fmt| {
            let mut data = [0; 24];
            (data[8], data[14], data[15]) = (VERSION, extension, fmt);
            match Message::parse(&App { ssrc: 1, subtype: 0, name: NAME, data: &data }) {
                Ok(Some(Message::Challenge(c))) => Ok(c.form),
                Err(WireError::Field { what, found, .. }) => Err((what, found)),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([form(0, 0), form(0, 1)], [Ok(Request::Ccfb), Ok(Request::SackVector)]);
        assert_eq!(form(3, 2), Ok(Request::RtpTfrc(Profile::default())));
        assert_eq!([form(0, 5), form(0, 255)], [Err(("form of feedback", 5)), Err(("form of feedback", 255))]);
        assert_eq!([form(1, 2), form(3, 1)], [Err(("header extension rtt-sendts", 1)), Err(("FMT", 1))]);
    }

    #[test]
    fn a_report_interval_is_bounded_and_must_be_there() {
        let form = |us: Option<u32>| {
            let mut data = vec![0; 24];
            (data[8], data[15]) = (VERSION, 3);
            data.extend(us.into_iter().flat_map(u32::to_be_bytes));
            match Message::parse(&App { ssrc: 1, subtype: 0, name: NAME, data: &data }) {
                Ok(Some(Message::Challenge(c))) => Some(c.form),
                Err(_) => None,
                other => panic!("{other:?}"),
            }
        };
        let second = Request::Reports { interval: Duration::from_secs(1), tcp: true };
        assert_eq!(form(Some(1_000_000)), Some(second));
        assert_eq!([form(None), form(Some(0)), form(Some(9_999)), form(Some(5_000_001))], [None; 4]);
        assert_eq!(Request::reports(Duration::MAX, true), Request::reports(Duration::from_secs(5), true));
    }

    #[test]
    fn another_version_is_refused_and_another_application_is_not_ours() {
        let mut data = [0; 24];
        data[8] = 2;
        assert!(Message::parse(&App { ssrc: 1, subtype: 0, name: NAME, data: &data }).is_err());
        assert_eq!(Message::parse(&App { ssrc: 1, subtype: 0, name: *b"ELSE", data: &data }), Ok(None));
    }
}
