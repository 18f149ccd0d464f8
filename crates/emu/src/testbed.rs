//! Two namespaces, their devices, and the thread between them.

use crate::address::{AddressPlan, MAX_FLOWS, MAX_NETWORK};
use crate::bridge::{Bridge, BridgeOptions};
use crate::capture::Capture;
use crate::device::{Device, DeviceSpec};
use crate::report::{EmuReport, Limits};
use crate::{EmuError, FlowAddresses, NetNs, Side, drop_privileges, priority};
use fairpace_net::pacing::thread_cpu;
use fairpace_net::{Clock, NetError, Waiter};
use fairpace_sim::{FlowId, Network, Observer, Protocol, SimConfig, SimReport};
use fairpace_units::{Bytes, Duration, Instant};
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How a testbed is set up.
pub struct TestbedOptions {
    /// Where the flows begin. The namespace has a device `fairpace<network>` with the flows' addresses.
    pub senders: NetNs,
    /// Where they end.
    pub receivers: NetNs,
    /// The number in the addresses: 10.77 and fd77:0, or for n (at most 122) 10.(77 + n) and fd77:n. For an emulator
    /// in a namespace that has another's device.
    pub network: u8,
    /// The devices' MTU in bytes, from 1,280.
    pub mtu: u16,
    /// The kernel hands out and takes several segments at a time. Each queues, is lost and is timed for itself all the same.
    pub offload: bool,
    /// Packets that a device holds until they are read.
    pub device_queue: u32,
    /// Bytes of packets under way at most: what does not fit is dropped and makes the run invalid.
    pub memory: Bytes,
    /// From when on the run is invalid.
    pub limits: Limits,
    /// The flow of packets between addresses that are no flow's; `None`: they are dropped.
    pub stray: Option<FlowId>,
    /// Gets every packet of both sides as pcapng. ([`SimConfig::pcap`] asks for the same in
    /// [`SimReport::pcapng`], in memory.)
    pub capture: Option<Box<dyn Write + Send>>,
    /// Is told of every packet in the path.
    pub observer: Option<Box<dyn Observer>>,
    /// The receivers' device, if it was made before; of the same configuration, network and MTU.
    pub far_end: Option<FarEnd>,
}

impl TestbedOptions {
    /// Between these two, with everything else as usual: MTU 1,500 bytes, offload, 64 MiB.
    pub fn new(senders: NetNs, receivers: NetNs) -> TestbedOptions {
        TestbedOptions {
            senders,
            receivers,
            network: 0,
            mtu: 1_500,
            offload: OFFLOAD,
            device_queue: DEVICE_QUEUE,
            memory: Bytes::new(64 << 20),
            limits: Limits::default(),
            stray: None,
            capture: None,
            observer: None,
            far_end: None,
        }
    }
}

/// The receivers' device, for a namespace that is not ours: nothing leads back there from a
/// [`Sandbox`](crate::Sandbox), so it is made before.
pub struct FarEnd(Device);

impl FarEnd {
    /// Makes the device in `receivers`; network, MTU and the rest are those of `options` for [`Testbed::open`].
    ///
    /// # Errors
    /// As [`Testbed::open`].
    pub fn open(config: &SimConfig, receivers: &NetNs, network: u8, mtu: u16) -> Result<FarEnd, EmuError> {
        check(config, network, mtu)?;
        device(config, network, mtu, (OFFLOAD, DEVICE_QUEUE), receivers, Side::Receivers).map(FarEnd)
    }
}

/// The value that [`TestbedOptions::new`] gives.
const OFFLOAD: bool = true;
/// As above.
const DEVICE_QUEUE: u32 = 4_096;

/// Makes the device of one side.
fn device(
    config: &SimConfig,
    network: u8,
    mtu: u16,
    (offload, queue): (bool, u32),
    namespace: &NetNs,
    side: Side,
) -> Result<Device, EmuError> {
    let plan = AddressPlan::new(network, config.flows.len());
    let flows = 0..config.flows.len() as FlowId;
    let addresses: Vec<_> = flows.clone().map(|i| plan.v4(i)).chain(flows.map(|i| plan.v6(i))).collect();
    let name = format!("fairpace{network}");
    Device::open(&DeviceSpec { name: &name, mtu, offload, queue, addresses: &addresses }, namespace, side)
}

/// A path between two namespaces that is ready to run. The devices are there, and programs can open sockets; nothing
/// moves yet.
pub struct Testbed {
    ends: Ends,
    bridge: Bridge<Device>,
    limits: Limits,
    memory: Bytes,
    device_queue: u32,
    offload: bool,
}

/// The two namespaces and who has which address.
struct Ends {
    namespaces: [NetNs; 2],
    plan: AddressPlan,
}

impl Testbed {
    /// Builds the path of `config`, whose flows of [`Protocol::External`] are the real ones, and makes the devices.
    /// [`SimConfig::duration`] is not looked at: the path runs until [`Running::finish`].
    ///
    /// # Errors
    /// [`EmuError`]: a configuration that cannot run, packets longer than the MTU, no TUN device, no permission.
    pub fn open(config: &SimConfig, options: TestbedOptions) -> Result<Testbed, EmuError> {
        let TestbedOptions { network: number, mtu, offload, device_queue, .. } = options;
        check(config, number, mtu)?;
        let is_external =
            |flow| matches!(config.flows.get(flow as usize).map(|f| &f.protocol), Some(Protocol::External));
        if let Some(flow) = options.stray.filter(|flow| !is_external(*flow)) {
            let allowed = "a flow of `Protocol::External`".to_owned();
            return Err(EmuError::Config { field: "stray", found: flow.to_string(), allowed });
        }
        let mut network = Network::new(&SimConfig { pcap: false, ..config.clone() })?;
        let plan = AddressPlan::new(number, config.flows.len());
        let mut options = options;
        let kind = (offload, device_queue);
        let senders = device(config, number, mtu, kind, &options.senders, Side::Senders)?;
        let receivers = match options.far_end.take() {
            Some(FarEnd(device)) => device,
            None => device(config, number, mtu, kind, &options.receivers, Side::Receivers)?,
        };
        let capture = Capture::new(config.pcap, options.capture.take(), &network.link_names());
        if let Some(observer) = options.observer.take() {
            network.observe(observer);
        }
        let TestbedOptions { stray, limits, memory, device_queue, offload, .. } = options;
        let carried = BridgeOptions { offload, stray, memory };
        let bridge = Bridge::new([senders, receivers], config, network, plan, capture, &carried);
        let TestbedOptions { senders, receivers, .. } = options;
        let ends = Ends { namespaces: [senders, receivers], plan };
        Ok(Testbed { ends, bridge, limits, memory, device_queue, offload })
    }

    /// The IPv4 addresses of a flow, by its place in [`SimConfig::flows`].
    pub fn addresses(&self, flow: FlowId) -> FlowAddresses {
        self.ends.plan.v4(flow)
    }

    /// Its IPv6 addresses; nobody has them where the system has no IPv6.
    pub fn addresses_v6(&self, flow: FlowId) -> FlowAddresses {
        self.ends.plan.v6(flow)
    }

    /// The namespace of that side.
    pub fn namespace(&self, side: Side) -> &NetNs {
        &self.ends.namespaces[side as usize]
    }

    /// Runs `work` on a fresh thread inside that side's namespace, and waits for it. Sockets that it opens stay there, and
    /// threads that it starts do.
    ///
    /// # Errors
    /// [`EmuError::Denied`] if this thread has given up its privileges.
    pub fn enter<R: Send>(&self, side: Side, work: impl FnOnce() -> R + Send) -> Result<R, EmuError> {
        self.namespace(side).run(work)
    }

    /// Lets packets move, on a thread of its own that gives up all privileges. Now is the path's time zero.
    ///
    /// # Errors
    /// [`EmuError::Io`] if there is no thread or no timer to be had.
    pub fn start(self) -> Result<Running, EmuError> {
        let Testbed { ends, bridge, limits, memory, device_queue, offload } = self;
        let clock = Clock::awake();
        let stop = Arc::new(AtomicBool::new(false));
        let judge = move |mut report: EmuReport| {
            report.judge(&limits, memory);
            report
        };
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            let waiter = drop_privileges().and_then(|()| Ok(Waiter::new(clock)?));
            let mut waiter = match waiter {
                Ok(waiter) => waiter,
                Err(e) => {
                    let _ = ready.send(Err(e));
                    return None;
                }
            };
            let real_time = priority::is_first();
            let _ = ready.send(Ok(()));
            let mut bridge = bridge;
            let cpu = thread_cpu();
            let failed = turn(&mut bridge, &mut waiter, &stopped).err();
            let now = clock.now();
            let elapsed = now.since(Instant::ZERO);
            let cpu = thread_cpu().saturating_sub(cpu).as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            let ended = bridge.finish();
            let mut network = ended.network;
            network.advance(now);
            let mut sim = network.into_report();
            let mut invalid: Vec<String> = failed.iter().map(|e| format!("the emulator stopped early: {e}")).collect();
            match ended.capture {
                Ok(pcapng) => sim.pcapng = pcapng,
                Err(e) => invalid.push(format!("the capture is not complete: {e}")),
            }
            let report = EmuReport {
                elapsed,
                lateness: ended.lateness,
                unread: ended.unread,
                cpu,
                real_time,
                sides: ended.sides,
                under_way: ended.under_way,
                peak_memory: ended.peak_memory,
                device_queue,
                offload,
                invalid,
            };
            Some((sim, judge(report)))
        };
        let thread = priority::spawn_first("emulator", run);
        let thread = thread.map_err(|e| EmuError::io("start the emulator's thread", e))?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Running { ends, clock, stop, thread: Some(thread) }),
            Ok(Err(e)) => Err(e),
            Err(_) => Err(EmuError::io("start the emulator's thread", std::io::Error::other("it ended at once"))),
        }
    }
}

fn check(config: &SimConfig, network: u8, mtu: u16) -> Result<(), EmuError> {
    let refuse = |field, found: String, allowed: String| Err(EmuError::Config { field, found, allowed });
    if config.flows.len() > MAX_FLOWS {
        return refuse("flows", config.flows.len().to_string(), format!("at most {MAX_FLOWS}, each with an address"));
    }
    if network > MAX_NETWORK {
        return refuse("network", network.to_string(), format!("0 to {MAX_NETWORK}"));
    }
    let external = config.flows.iter().filter(|f| matches!(f.protocol, Protocol::External));
    let packet = external.map(|f| f.packet_size.get()).max().unwrap_or(0);
    let (least, why) = if packet > 1_280 { (packet, "the flows' packets") } else { (1_280, "IPv6") };
    let (found, least) = (u32::from(mtu), u32::try_from(least).unwrap_or(u32::MAX));
    if found < least {
        return Err(EmuError::MtuTooSmall { found, least, why });
    }
    Ok(())
}

/// A path between two namespaces, at work.
pub struct Running {
    ends: Ends,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// Until it is joined.
    thread: Option<JoinHandle<Option<(SimReport, EmuReport)>>>,
}

/// Whoever gives up without [`Running::finish`] leaves no loop and no device behind.
impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Running {
    /// The path's time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The clock that shows the path's time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// As [`Testbed::addresses`].
    pub fn addresses(&self, flow: FlowId) -> FlowAddresses {
        self.ends.plan.v4(flow)
    }

    /// As [`Testbed::addresses_v6`].
    pub fn addresses_v6(&self, flow: FlowId) -> FlowAddresses {
        self.ends.plan.v6(flow)
    }

    /// As [`Testbed::namespace`].
    pub fn namespace(&self, side: Side) -> &NetNs {
        &self.ends.namespaces[side as usize]
    }

    /// As [`Testbed::enter`].
    ///
    /// # Errors
    /// As [`Testbed::enter`].
    pub fn enter<R: Send>(&self, side: Side, work: impl FnOnce() -> R + Send) -> Result<R, EmuError> {
        self.namespace(side).run(work)
    }

    /// Stops, takes the devices away, and gives what the path and the emulator have seen.
    pub fn finish(mut self) -> (SimReport, EmuReport) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Some(reports))) => reports,
            // `start` waits until the loop is ready, and nobody else joins it.
            Some(Ok(None)) | None => unreachable!("the loop ran"),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

/// Segments that are read from a device before what is due is written: few, so that they are in the processor's cache
/// still.
const READ: usize = 16;
/// Segments that are written before the devices are looked at again: at 1 to 3 us each, below a millisecond.
const WRITE: usize = 256;
/// The stop flag is looked at this often, if nothing else happens.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Moves packets until `stop` is set.
fn turn(bridge: &mut Bridge<Device>, waiter: &mut Waiter, stop: &AtomicBool) -> Result<(), NetError> {
    let clock = waiter.clock();
    let (mut busy, mut look_up) = (false, Instant::ZERO);
    while !stop.load(Ordering::Relaxed) {
        // Where something came, more may have come in the meantime: to look costs less than to ask.
        let mut look = [true; 2];
        if !busy {
            let begin = clock.now();
            if look_up <= begin {
                look_up = begin + LOOK_UP;
                bridge.nothing_came(begin);
            }
            let until = bridge.next().min(look_up);
            let there = Side::BOTH.map(|side| bridge.port(side).map(AsFd::as_fd));
            let (woken, second) = match there {
                [Some(a), Some(b)] => (waiter.wait(until, &[a, b])?, 2),
                [Some(a), None] | [None, Some(a)] => (waiter.wait(until, &[a])?, 1),
                [None, None] => return Ok(()),
            };
            look = [(0, 1), (1, second)].map(|(i, bit)| there[i].is_some() && woken.readable & bit != 0);
            bridge.slept(clock.now().since(begin));
        }
        let mut came = 0;
        for (side, look) in Side::BOTH.into_iter().zip(look) {
            if look {
                came += bridge.read(side, READ, || clock.now());
            }
        }
        let all = bridge.release(WRITE, || clock.now());
        busy = came > 0 || !all;
    }
    Ok(())
}
