//! A constant flow: the simulator's own sender, on a UDP socket. Arriving packets are counted by the path and thrown
//! away by the kernel.

use super::endpoint::{Endpoint, Moment};
use super::ip::Ip;
use fairpace_net::{Clock, DatagramIo as _, Mark, NetError, UdpSocket, Waiter};
use fairpace_sim::{ConstantConfig, ConstantSender, FlowId};
use fairpace_units::{Duration, Ecn, Instant, RandomStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// The stop flag is looked at this often, and the state noted.
const TICK: Duration = Duration::from_millis(50);

/// The plan of one flow.
#[derive(Clone, Debug)]
pub(crate) struct UdpPlan {
    pub(crate) flow: FlowId,
    pub(crate) name: String,
    pub(crate) ip: Ip,
    pub(crate) packet_size: u32,
    pub(crate) config: ConstantConfig,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    pub(crate) end: Instant,
    pub(crate) seed: u64,
}

/// Sends until the flow's end, on a socket that is connected.
pub(crate) fn send(
    plan: &UdpPlan,
    mut socket: UdpSocket,
    clock: Clock,
    warmup: Instant,
    stop: &AtomicBool,
) -> Endpoint {
    let mut out = Endpoint::new(plan.flow, "constant".to_owned(), plan.start);
    if let Err(e) = run(plan, &mut socket, clock, warmup, stop, &mut out) {
        out.trouble = Some(e.to_string());
    }
    out
}

fn run(
    plan: &UdpPlan,
    socket: &mut UdpSocket,
    clock: Clock,
    warmup: Instant,
    stop: &AtomicBool,
    out: &mut Endpoint,
) -> Result<(), NetError> {
    let stream = |what: &str| RandomStream::named(plan.seed, &format!("flow.{}.{what}", plan.name));
    let mut sender = ConstantSender::new(&plan.config, plan.packet_size, stream("on_off"), stream("quick_start"));
    let payload = vec![0x5a; u64::from(plan.packet_size).saturating_sub(plan.ip.udp_headers()) as usize];
    let mark = Mark { dscp: plan.config.class.dscp(), ecn: Ecn::NotEct };
    let end = plan.stop.map_or(plan.end, |at| at.min(plan.end));
    let mut waiter = Waiter::new(clock)?;
    let mut began = false;
    loop {
        let now = clock.now();
        if now >= end || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        if !began && now >= plan.start {
            began = true;
            sender.start(plan.start);
        }
        if began {
            sender.on_timer(now);
            while sender.poll_transmit(now).is_some() {
                // A packet that the kernel does not take is lost, as on a device without room: nobody waits.
                socket.send(None, &payload, mark);
            }
            out.note(Moment { at: now, state: sender.state(), ..Moment::default() }, warmup);
        }
        let next = if began { sender.poll_timer() } else { plan.start };
        waiter.wait(next.min(now + TICK).min(end), &[])?;
    }
}
