//! The forms of feedback on the wire. Each form is one file: its sender's end verifies what arrives and turns it into a
//! [`fairpace_control::feedback::Message`], its receiver's end notes what arrives and writes what is due.
//!
//! `SenderHalf` and `ReceiverHalf` choose by the form that was asked for in the challenge ([`Request`]). Feedback of
//! another form is refused there, before it can renew consent or count.

pub mod ccfb;
pub mod claim;
mod exchange;
pub mod reports;
mod request;
pub mod rtp_tfrc;
pub mod sack_vector;
mod trust;
mod twcc;

pub(crate) use exchange::{Arrived, Attached, Envelope, Heard, Lent, Proof, Seen};
pub(crate) use reports::Word;
pub use request::Request;
pub(crate) use trust::{Refusal, Trust};

use self::claim::Claims;
use self::reports::pairs::PairReport;
use self::rtp_tfrc::wire::Profile;
use crate::Secret;
use crate::header_ext::Extensions;
use crate::receiver::sources::{Role, Sources};
use crate::rtcp::{Compound, ReportBlock, Rtcp};
use crate::sent::Stream;
use fairpace_control::feedback::Form;
use fairpace_control::{Controller, ReceiverReport};
use fairpace_units::{Dscp, Duration, Instant, Kind};

/// Reports where a controller that goes by them does not say how often.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The sender's end of the form that was asked for.
#[derive(Debug)]
pub(crate) enum SenderHalf {
    Ccfb(ccfb::Sender),
    SackVector(sack_vector::Sender),
    RtpTfrc(rtp_tfrc::Sender),
    Reports(reports::Sender),
    Twcc(twcc::Sender),
}

impl SenderHalf {
    /// `profile` is for a receiver that measures, and `offset` something that nobody can guess. `prove`: the receiver must
    /// prove what it claims.
    pub(crate) fn new(form: Form, controller: &dyn Controller, profile: Profile, offset: u32, prove: bool) -> Self {
        match form {
            Form::Ccfb => SenderHalf::Ccfb(ccfb::Sender::default()),
            Form::Twcc => SenderHalf::Twcc(twcc::Sender::new(offset as u16, offset.into(), prove)),
            Form::SackVector => SenderHalf::SackVector(sack_vector::Sender::default()),
            Form::RtpTfrc => SenderHalf::RtpTfrc(rtp_tfrc::Sender::new(profile, offset)),
            Form::Reports => {
                SenderHalf::Reports(reports::Sender::new(controller.report_interval().unwrap_or(REPORT_INTERVAL)))
            }
        }
    }

    /// The form that this end belongs to.
    pub(crate) const fn form(&self) -> Form {
        match self {
            SenderHalf::Ccfb(_) => Form::Ccfb,
            SenderHalf::SackVector(_) => Form::SackVector,
            SenderHalf::RtpTfrc(_) => Form::RtpTfrc,
            SenderHalf::Reports(_) => Form::Reports,
            SenderHalf::Twcc(_) => Form::Twcc,
        }
    }

    /// The request in the challenge. `tcp`: a TCP connection follows.
    pub(crate) fn request(&self, tcp: bool) -> Request {
        match self {
            SenderHalf::Ccfb(_) => Request::Ccfb,
            SenderHalf::SackVector(_) => Request::SackVector,
            SenderHalf::Twcc(_) => Request::Twcc,
            SenderHalf::RtpTfrc(m) => Request::RtpTfrc(m.profile()),
            SenderHalf::Reports(r) => Request::reports(r.interval(), tcp),
        }
    }

    /// How often both ends send RTCP reports, if the form says so.
    pub(crate) const fn report_interval(&self) -> Option<Duration> {
        match self {
            SenderHalf::Reports(r) => Some(r.interval()),
            _ => None,
        }
    }

    /// Whether packets can be sent again: not where the receiver tells of single packets by one stream's numbers (sack
    /// vectors). A receiver that measures leaves them out of the rate that it tells, which keeps the flow on the safe side. Repair packets
    /// likewise.
    pub(crate) const fn allows_repair(&self) -> bool {
        !matches!(self, SenderHalf::SackVector(_))
    }

    /// Whether feedback marks each media packet that arrived, so that losses and their bursts can be counted.
    pub(crate) const fn tells_of_media(&self) -> bool {
        matches!(self, SenderHalf::Ccfb(_) | SenderHalf::Twcc(_))
    }

    /// Whether both ends must know packet pairs by their number: packets that are sent again are not among the flow's then.
    pub(crate) const fn has_pairs(&self) -> bool {
        matches!(self, SenderHalf::Reports(_))
    }

    /// The profile's end, if the receiver measures.
    pub(crate) const fn measured(&mut self) -> Option<&mut rtp_tfrc::Sender> {
        match self {
            SenderHalf::RtpTfrc(m) => Some(m),
            _ => None,
        }
    }

    /// The extensions of the next packet of `stream`, which leaves now.
    pub(crate) fn extensions(
        &self,
        now: Instant,
        stream: &Stream,
        srtt: Option<Duration>,
        secret: &Secret,
    ) -> Extensions {
        let nonce = Some(secret.nonce(stream.ssrc, stream.count));
        match self {
            SenderHalf::Ccfb(_) | SenderHalf::Reports(_) => Extensions { nonce, ..Extensions::default() },
            SenderHalf::SackVector(_) => {
                let number_high = Some((stream.number_24(stream.count) >> 16) as u8);
                Extensions { nonce, number_high, ..Extensions::default() }
            }
            SenderHalf::Twcc(t) => {
                let (number, nonce) = t.stamp(secret);
                Extensions { nonce: Some(nonce), transport_number: Some(number), ..Extensions::default() }
            }
            SenderHalf::RtpTfrc(m) => Extensions { stamp: Some(m.stamp(now, srtt)), ..Extensions::default() },
        }
    }

    /// Whether feedback tells of congestion marks: only then may packets be ECN-capable.
    pub(crate) const fn tells_of_marks(&self) -> bool {
        !matches!(self, SenderHalf::Twcc(_))
    }

    /// A packet with those extensions has left: number `seq` of that kind.
    pub(crate) fn on_sent(&mut self, now: Instant, kind: Kind, seq: u64) {
        match self {
            SenderHalf::RtpTfrc(m) => m.on_sent(now),
            SenderHalf::Twcc(t) => t.on_sent(kind, seq),
            SenderHalf::Ccfb(_) | SenderHalf::SackVector(_) | SenderHalf::Reports(_) => {}
        }
    }

    /// The parts of the datagram that belong to other packets in it.
    pub(crate) fn attached<'d>(&self, compound: Compound<'d>) -> Attached<'d> {
        let pairs = || {
            compound.into_iter().find_map(|packet| match packet {
                Rtcp::App(app) => PairReport::parse(&app).ok()?,
                _ => None,
            })
        };
        Attached { claims: None, pairs: if self.has_pairs() { pairs() } else { None } }
    }

    /// Reads and verifies one packet of a datagram; `None` if it is no feedback.
    ///
    /// # Errors
    /// [`Refusal`] if the packet is feedback, and cannot be believed or was not asked for.
    pub(crate) fn on_packet<'d>(
        &mut self,
        packet: &Rtcp<'d>,
        attached: &mut Attached<'d>,
        lent: Lent<'_>,
    ) -> Result<Option<Heard<'_>>, Refusal> {
        match packet {
            Rtcp::App(app) => {
                if let Some(claims) = Claims::parse(app)? {
                    attached.claims = Some(claims);
                    return Ok(None);
                }
                let Some(ack) = sack_vector::wire::Ack::parse(app)? else { return Ok(None) };
                match self {
                    SenderHalf::SackVector(s) => s.on_ack(&ack, lent).map(Some),
                    _ => Err(lent.trust.unasked(ack.receiver)),
                }
            }
            Rtcp::CongestionFeedback(reporter, body) => {
                let report = ccfb::wire::Report::parse(*reporter, body)?;
                match self {
                    SenderHalf::Ccfb(p) => p.on_report(&report, attached, lent).map(Some),
                    _ => Err(lent.trust.unasked(*reporter)),
                }
            }
            Rtcp::TransportFeedback { fmt, sender, media, fci } => match self {
                SenderHalf::RtpTfrc(m) if m.profile().fmt == *fmt => {
                    let report = rtp_tfrc::wire::Report::parse(*sender, *media, fci)?;
                    m.on_report(&report, &lent).map(Some)
                }
                SenderHalf::Twcc(t) if *fmt == twcc::FMT => {
                    t.on_report((*sender, *media, fci), attached, lent).map(Some)
                }
                _ if *fmt == twcc::FMT => Err(lent.trust.unasked(*sender)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A receiver report about all media packets up to `index`, which RTCP brings beside every form; where there is
    /// nothing else, adds what the controller goes by. Gives what the report is worth as feedback; `None` if the form is
    /// another one.
    pub(crate) fn on_receiver_report(
        &mut self,
        index: u64,
        block: (u32, &ReportBlock),
        report: &mut ReceiverReport,
        secret: Secret,
        attached: &Attached<'_>,
        lent: &Lent<'_>,
    ) -> Option<Word> {
        match self {
            SenderHalf::Reports(r) => Some(r.on_report(index, block, report, secret, attached, lent)),
            _ => None,
        }
    }
}

/// How a receiver is set up to tell, whatever is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Per-packet feedback at most this often.
    pub(crate) feedback_interval: Duration,
    /// Each packet is told in so many reports.
    pub(crate) feedback_repeats: usize,
    /// Sack vectors at most this often.
    pub(crate) ack_interval: Duration,
    /// The window to advertise.
    pub(crate) rwnd: Option<u32>,
}

/// The receiver's end of the form that was asked for.
#[derive(Debug)]
enum Asked {
    /// Packet by packet: [`ReceiverHalf::packets`] does all.
    Ccfb,
    SackVector(sack_vector::Receiver),
    RtpTfrc(Box<rtp_tfrc::Receiver>),
    Reports(reports::Receiver),
    Twcc(twcc::Receiver),
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct ReceiverHalf {
    pace: Pace,
    request: Request,
    /// As `request` says.
    asked: Asked,
    /// Per-packet feedback on the packets that the form asked for does not tell of.
    packets: ccfb::Receiver,
    /// A packet lacked what the form tells by, and this has been said.
    lacking: bool,
}

impl ReceiverHalf {
    pub(crate) fn new(pace: Pace) -> Self {
        let packets = ccfb::Receiver::new(pace.feedback_interval, pace.feedback_repeats);
        ReceiverHalf { pace, request: Request::Ccfb, asked: Asked::Ccfb, packets, lacking: false }
    }

    /// The sender has gone.
    pub(crate) fn forget(&mut self) {
        self.packets.forget();
        self.ask(Request::Ccfb);
        self.lacking = false;
    }

    /// The source of the media has begun anew.
    pub(crate) fn restart(&mut self) {
        if let Asked::RtpTfrc(m) = &mut self.asked {
            m.restart();
        }
    }

    /// Sets the feedback that is asked for from now on.
    pub(crate) fn ask(&mut self, request: Request) {
        if self.request == request {
            return;
        }
        self.request = request;
        self.asked = match request {
            Request::Ccfb => Asked::Ccfb,
            Request::SackVector => {
                Asked::SackVector(sack_vector::Receiver::new(self.pace.ack_interval, self.pace.rwnd))
            }
            Request::RtpTfrc(profile) => Asked::RtpTfrc(Box::new(rtp_tfrc::Receiver::new(profile))),
            Request::Reports { .. } => Asked::Reports(reports::Receiver::default()),
            Request::Twcc => Asked::Twcc(twcc::Receiver::new(self.pace.feedback_interval)),
        };
    }

    /// The window to advertise in echoes, and how often feedback is meant to come.
    pub(crate) fn advertised(&self) -> (Option<u32>, Duration) {
        match self.request {
            Request::SackVector => (self.pace.rwnd, self.pace.ack_interval),
            // A flow with a window may ask for feedback on every packet.
            Request::Ccfb | Request::Twcc => (self.pace.rwnd, self.pace.feedback_interval),
            Request::RtpTfrc(_) | Request::Reports { .. } => (None, self.pace.feedback_interval),
        }
    }

    /// A packet has arrived for the first time. Media of another tool that lacks what the agreed form tells by is told of
    /// packet by packet instead; gives that form, once.
    pub(crate) fn on_packet(&mut self, now: Instant, arrived: &Arrived<'_>) -> Option<Form> {
        let told = match &mut self.asked {
            Asked::Reports(r) => {
                if arrived.is_media {
                    r.on_packet(now, arrived);
                }
                true
            }
            Asked::SackVector(s) if arrived.is_media => {
                s.on_packet(now, arrived);
                true
            }
            // Retransmissions and repair packets are nobody's to tell of: the sender has asked for reports on media.
            Asked::RtpTfrc(_) if arrived.announced && matches!(arrived.role, Role::Retransmission | Role::Fec) => true,
            Asked::RtpTfrc(m) => arrived.is_media && m.on_packet(now, arrived),
            // A Fairpace's packet without a number was damaged on its way, and is as good as lost.
            Asked::Twcc(t) => t.on_packet(now, arrived) || arrived.announced,
            Asked::SackVector(_) | Asked::Ccfb => false,
        };
        if told {
            return None;
        }
        self.packets.on_packet(now, arrived.role.class());
        let lacking = !arrived.announced && arrived.is_media && !core::mem::replace(&mut self.lacking, true);
        match &self.asked {
            Asked::RtpTfrc(_) if lacking => Some(Form::RtpTfrc),
            Asked::Twcc(_) if lacking => Some(Form::Twcc),
            _ => None,
        }
    }

    /// Writes the next feedback that is due; gives the code point to send it with.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        sources: &mut Sources,
        envelope: &mut Envelope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Dscp> {
        let written = match &mut self.asked {
            Asked::RtpTfrc(m) => m.poll(now, envelope, out),
            Asked::SackVector(s) => s.poll(now, sources, envelope, out),
            Asked::Twcc(t) => t.poll(now, sources, envelope, out),
            Asked::Reports(_) | Asked::Ccfb => None,
        };
        written.map(|()| envelope.dscp).or_else(|| self.packets.poll(now, sources, envelope, out))
    }

    /// Appends to a receiver report what the form adds.
    pub(crate) fn append_to_report(&self, ssrc: u32, out: &mut Vec<u8>) {
        if let Asked::Reports(r) = &self.asked {
            r.append(ssrc, out);
        }
    }

    /// When feedback is due.
    pub(crate) fn next(&self) -> Instant {
        let asked = match &self.asked {
            Asked::RtpTfrc(m) => m.next(),
            Asked::SackVector(s) => s.next(),
            Asked::Twcc(t) => t.next(),
            Asked::Reports(_) | Asked::Ccfb => Instant::NEVER,
        };
        self.packets.next().min(asked)
    }
}
