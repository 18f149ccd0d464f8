//! The picture that a viewer sees, in virtual time: the sender and the receiver of the wire at the ends of the simulator's path.
//!
//! ```text
//! FrameSource ─▶ SenderSession ─▶ sim::Network (path, TCP beside) ─▶ ReceiverSession ─▶ Playout ─▶ Ledger
//!                     ◀────────────────── feedback, requests ───────────────┘
//! ```
//!
//! Nothing here is a model of our own protocol: sessions, frame assembly and play-out are those of `fairpace send` and
//! `fairpace receive`, down to the bytes. Only path, clock and encoder are simulated, so that an hour of video takes
//! seconds, and two runs with the same seed differ in nothing but what was changed between them.
//!
//! Read first: [`watch`], then [`Ledger`]: where each frame of the source went, and why. Other senders than ours stand at the
//! same path through [`End`]: [`watch_srt`], [`watch_plain`]. A [`Clip`] tells how a ledger looks.

#![forbid(unsafe_code)]

mod clip;
mod ledger;
mod ours;
mod path;
mod plain;
mod srt;
mod stream;

pub use clip::Clip;
pub use ledger::{Fate, FrameEntry, Ledger, Tally};
pub use ours::{OurReceiver, OurSender, SenderSetup};
pub use path::{About, End, PathError, PathRun, Trip, Wire, run};
pub use plain::{PlainReceiver, PlainSender, RtpPacket};
pub use srt::{SrtMessage, SrtReceiver, SrtSender, SrtSetup};

use fairpace_media::{EncoderModelParams, PlayoutParams};
use fairpace_rtp::ReceiverConfig;
use fairpace_scenario::Scenario;
use fairpace_units::{Duration, Rate};

/// Sends a video with our sender over a scenario's path, beside its TCP flows, and tells the fate of each frame.
///
/// The scenario's media flows are left out: the video takes the place of the first.
///
/// # Errors
/// [`PathError`]: the scenario cannot be simulated, or the sender cannot be set up.
pub fn watch(
    scenario: &Scenario,
    seed: u64,
    sender: SenderSetup,
    receiver: ReceiverConfig,
    playout: PlayoutParams,
) -> Result<Watched, PathError> {
    let mut sender = OurSender::new(sender, seed)?;
    let mut receiver = OurReceiver::new(receiver, playout, seed);
    let path = run(scenario, seed, &mut sender, &mut receiver)?;
    let ledger = Ledger::new(&path, sender.captures(), &receiver.shown(&sender));
    Ok(Watched { ledger, path, sender, receiver })
}

/// The same with SRT's live mode in our place.
///
/// # Errors
/// As [`watch`].
pub fn watch_srt(scenario: &Scenario, seed: u64, setup: SrtSetup) -> Result<(Ledger, PathRun), PathError> {
    let (mut sender, mut receiver) = (SrtSender::new(setup, seed)?, SrtReceiver::new(setup));
    let path = run(scenario, seed, &mut sender, &mut receiver)?;
    let ledger = Ledger::new(&path, sender.captures(), &sender.shown(&receiver));
    Ok((ledger, path))
}

/// The same with plain RTP of that rate in our place, and a jitter buffer of that length.
///
/// # Errors
/// As [`watch`].
pub fn watch_plain(
    scenario: &Scenario,
    seed: u64,
    rate: Rate,
    latency: Duration,
    encoder: EncoderModelParams,
) -> Result<(Ledger, PathRun), PathError> {
    let (mut sender, mut receiver) = (PlainSender::new(rate, encoder, seed)?, PlainReceiver::new(latency));
    let path = run(scenario, seed, &mut sender, &mut receiver)?;
    let ledger = Ledger::new(&path, sender.captures(), &sender.shown(&receiver));
    Ok((ledger, path))
}

/// A run of [`watch`].
#[derive(Debug)]
pub struct Watched {
    /// The fate of each frame.
    pub ledger: Ledger,
    /// The packets on the path, and the flows beside.
    pub path: PathRun,
    /// The sender as it ended.
    pub sender: OurSender,
    /// The receiver as it ended.
    pub receiver: OurReceiver,
}

impl Watched {
    /// When and why the sender's session ended, if it did.
    pub fn stopped(&self) -> Option<(fairpace_units::Instant, fairpace_rtp::StopReason)> {
        self.sender.stopped()
    }
}
