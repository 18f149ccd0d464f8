//! A TUN device in a namespace, as the emulator's loop uses it.

use crate::address::{PREFIX_V4, PREFIX_V6};
use crate::{EmuError, FlowAddresses, NetNs, Side, netlink};
use nix::errno::Errno;
use std::fs::{self, File};
use std::io::{self, IoSlice, Read as _, Seek as _};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Addresses are looked at this often until the kernel has them ready, and so many times.
const LOOK: Duration = Duration::from_millis(1);
const READY: u32 = 10_000;

/// The device that the loop reads packets from and writes packets to.
pub(crate) trait Port {
    /// The next packet, with its header before it where there is one; `EAGAIN` if there is none.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// One packet, in parts.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<(), Errno>;
    /// Packets that the kernel threw away because the loop did not read them in time, so far.
    fn kernel_drops(&mut self) -> u64;
}

/// How a device is made.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) mtu: u16,
    pub(crate) offload: bool,
    pub(crate) queue: u32,
    /// Of all flows, one family after the other.
    pub(crate) addresses: &'a [FlowAddresses],
}

/// A TUN device. The device disappears when its descriptor is closed.
pub(crate) struct Device {
    device: SyncDevice,
    name: String,
    /// The namespace's counters of its devices.
    counters: File,
    text: String,
}

impl Device {
    /// Makes the device in `namespace`, with the addresses of `side`, and takes it up.
    pub(crate) fn open(spec: &DeviceSpec<'_>, namespace: &NetNs, side: Side) -> Result<Device, EmuError> {
        namespace.run(|| Device::open_here(spec, side))?
    }

    fn open_here(spec: &DeviceSpec<'_>, side: Side) -> Result<Device, EmuError> {
        let name = spec.name;
        if let Err(e) = fs::metadata("/dev/net/tun") {
            return Err(EmuError::NoTun(e));
        }
        if nix::net::if_::if_nametoindex(name).is_ok() {
            return Err(EmuError::DeviceTaken { name: name.to_owned() });
        }
        let made = DeviceBuilder::new().name(name).mtu(spec.mtu).offload(spec.offload).enable(false).build_sync();
        let device = made.map_err(|e| match Errno::from_raw(e.raw_os_error().unwrap_or(0)) {
            Errno::EPERM => EmuError::Denied { what: format!("make the TUN device `{name}`") },
            Errno::EBUSY | Errno::EEXIST => EmuError::DeviceTaken { name: name.to_owned() },
            Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::EACCES => EmuError::NoTun(e),
            _ => EmuError::io(format!("make the TUN device `{name}`"), e),
        })?;
        let io = |what: &'static str| move |e: io::Error| EmuError::io(format!("{what} of the device `{name}`"), e);
        device.set_nonblocking(true).map_err(io("set the mode"))?;
        // (By ioctl only the host's root may.)
        netlink::queue(name, spec.queue)?;
        // Of this device alone, so that it holds in a namespace that is not ours too: an address is usable at once and
        // stays while the device is down, and nothing is sent unasked.
        let six = Path::new("/proc/sys/net/ipv6/conf").join(name);
        if six.exists() {
            for (key, value) in [
                ("disable_ipv6", "0"),
                ("accept_dad", "0"),
                ("accept_ra", "0"),
                ("addr_gen_mode", "1"),
                ("keep_addr_on_down", "1"),
            ] {
                fs::write(six.join(key), value).map_err(io("set up IPv6"))?;
            }
        }
        device.enabled(true).map_err(io("take up the end"))?;
        let mut first = [true; 2];
        for address in spec.addresses.iter().map(|a| a.at(side)) {
            let (prefix, whole, first) = match (address.is_ipv4(), &mut first) {
                (true, [first, _]) => (PREFIX_V4, 32, first),
                (false, _) if !six.exists() => continue,
                (false, [_, first]) => (PREFIX_V6, 128, first),
            };
            // The first one brings the route to all the others.
            netlink::address(address, if std::mem::take(first) { prefix } else { whole }, name)?;
        }
        if let Some(last) = spec.addresses.last().map(|a| a.at(side)).filter(|a| a.is_ipv4() || six.exists()) {
            await_ready(last).map_err(io("wait for the addresses"))?;
        }
        let counters = File::open("/proc/thread-self/net/dev").map_err(io("open the counters"))?;
        Ok(Device { device, name: name.to_owned(), counters, text: String::new() })
    }
}

/// Waits until the kernel takes packets for an address, and those that were added before it. The kernel makes IPv6
/// addresses ready later and in their order, by a worker that also waits for whoever makes or removes namespaces.
fn await_ready(address: IpAddr) -> io::Result<()> {
    for _ in 0..READY {
        match UdpSocket::bind((address, 0)) {
            Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => std::thread::park_timeout(LOOK),
            bound => return bound.map(|_| ()),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Port for Device {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        nix::unistd::read(&self.device, buffer)
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<(), Errno> {
        match parts {
            [whole] => nix::unistd::write(&self.device, whole),
            parts => nix::sys::uio::writev(&self.device, parts),
        }
        .map(|_| ())
    }

    fn kernel_drops(&mut self) -> u64 {
        self.text.clear();
        let read = self.counters.rewind().and_then(|()| self.counters.read_to_string(&mut self.text));
        if read.is_err() {
            return 0;
        }
        dropped_in(&self.text, &self.name).unwrap_or(0)
    }
}

/// The packets of a device that the kernel could not hand out, from `/proc/net/dev`.
fn dropped_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    // Eight fields of reception, then of transmission: bytes, packets, errors, drops.
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_of_transmission_are_the_fourth_of_the_second_eight() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
             fairpace0x: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n\
             fairpace0:     100       2    0    3    0     0          0         0      104       2    5   17    0     0       0          0\n";
        assert_eq!(dropped_in(text, "fairpace0"), Some(17));
        assert_eq!(dropped_in(text, "fairpace1"), None);
        assert_eq!(dropped_in("fairpace0: 1 2", "fairpace0"), None);
    }
}
