//! `fairpace plan`: what a path allows, in advance.

mod packets;
mod quick_start;
mod slotted;
mod tcp_rate;
mod wireless;

use crate::args::{Plan, PlanWhat};
use crate::error::Outcome;

pub(crate) fn run(args: &Plan) -> Outcome {
    match &args.what {
        PlanWhat::TcpRate(args) => tcp_rate::run(args),
        PlanWhat::QuickStart(args) => quick_start::run(args),
        PlanWhat::Wireless(args) => wireless::run(args),
    }
}
