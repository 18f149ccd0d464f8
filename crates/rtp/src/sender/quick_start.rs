//! The Quick-Start option that waits for its packet, and the question that is out.

use fairpace_control::quick_start::QsEcho;
use fairpace_units::QsOption;

#[derive(Debug, Default)]
pub(super) struct QuickStart {
    /// The option of the data packet that left last.
    due: Option<QsOption>,
    /// The token of the challenge that the newest request left on, until its echo comes.
    asked: Option<u64>,
}

impl QuickStart {
    /// The option is to leave next.
    pub(super) const fn set_due(&mut self, option: QsOption) {
        self.due = Some(option);
    }

    pub(super) const fn take_due(&mut self) -> Option<QsOption> {
        self.due.take()
    }

    /// A request has left on the challenge with that token.
    pub(super) const fn on_asked(&mut self, token: u64) {
        self.asked = Some(token);
    }

    /// The echo of that token has come for the first time: whether it answers the request. The answer is [`QsEcho::Silent`] unless
    /// another follows in the datagram.
    pub(super) fn on_echo(&mut self, token: u64) -> Option<QsEcho> {
        (self.asked == Some(token)).then(|| {
            self.asked = None;
            QsEcho::Silent
        })
    }
}
