//! Any number of sockets as one descriptor to wait on (`epoll`), at a cost that does not grow with those that are silent.

use crate::NetError;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};

/// So many are told of at one look; the rest at the next.
const AT_ONCE: usize = 256;

/// Any number of sockets as one descriptor to wait on. A socket that is closed is not watched any more.
#[derive(Debug)]
pub struct Watch {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Watch {
    /// Watches nothing.
    ///
    /// # Errors
    /// [`NetError::Io`]: out of file descriptors.
    pub fn new() -> Result<Watch, NetError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| NetError::io("watch sockets", e))?;
        Ok(Watch { epoll, events: vec![EpollEvent::empty(); AT_ONCE] })
    }

    /// Watches one more socket, under that number.
    ///
    /// # Errors
    /// [`NetError::Io`]: out of memory.
    pub fn add(&self, socket: BorrowedFd<'_>, number: usize) -> Result<(), NetError> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, number as u64);
        self.epoll.add(socket, event).map_err(|e| NetError::io("watch a socket", e))
    }

    /// Tells the number of each socket that has something to read, or an error to collect.
    ///
    /// # Errors
    /// [`NetError::Io`], which the kernel has no reason for.
    pub(crate) fn each_readable(&mut self, mut tell: impl FnMut(usize)) -> Result<(), NetError> {
        let found = match self.epoll.wait(&mut self.events, EpollTimeout::ZERO) {
            Err(Errno::EINTR) => 0,
            found => found.map_err(|e| NetError::io("look at sockets", e))?,
        };
        self.events.iter().take(found).for_each(|event| tell(event.data() as usize));
        Ok(())
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Waiter};
    use fairpace_units::Duration;
    use std::net::UdpSocket;

    #[test]
    fn a_packet_on_any_of_many_sockets_ends_a_wait_and_is_told_until_it_is_read() {
        let sockets: Vec<_> = (0..AT_ONCE + 20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let mut watch = Watch::new().unwrap();
        for (number, socket) in sockets.iter().enumerate() {
            watch.add(socket.as_fd(), number).unwrap();
        }
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).unwrap();
        let mut readable = || {
            let mut told = Vec::new();
            watch.each_readable(|number| told.push(number)).unwrap();
            told
        };
        assert!(readable().is_empty());
        for number in [270, 3] {
            sockets[0].send_to(b"x", sockets[number].local_addr().unwrap()).unwrap();
        }
        let mut told = readable();
        told.sort_unstable();
        assert_eq!(told, [3, 270]);
        sockets[3].recv(&mut [0; 8]).unwrap();
        assert_eq!(readable(), [270]);
        let until = clock.now() + Duration::from_secs(5);
        let woken = waiter.wait(until, &[watch.as_fd()]).unwrap();
        assert!(woken.readable == 1 && !woken.timer);
    }
}
