//! Forms that several tables share.

use crate::param::Form;
use crate::quantity::Feedback;
use fairpace_units::{Bounds, Bytes, Duration, Rate};

/// A size that fits into a datagram.
pub(crate) const PACKET_SIZE: Form = Form::Size(Bounds::of(Bytes::new(1), Bytes::new(65_507)));
pub(crate) const DATAGRAM: &str = "what fits into a datagram";
pub(crate) const FEEDBACK: Form = Form::Other(
    "`every packet`, or an interval from 1 ms to 10 s; the form `ccfb` or `twcc` before that",
    |generator| generator.subschema_for::<Feedback>(),
);
/// Up to an hour.
pub(crate) const SOME_TIME: Form = Form::Time(Bounds::ANY.up_to(Duration::from_secs(3_600)));
/// Rates at which something leaves: below, nothing of any size would within a week.
pub(crate) const SENDING_RATES: Bounds<Rate> = Bounds::at_least(Rate::bps(1.0));
/// One of them.
pub(crate) const SOME_RATE: Form = Form::Rate(SENDING_RATES);
