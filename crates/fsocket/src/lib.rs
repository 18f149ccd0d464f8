//! [`fairpace_net::FlowSocket`] for programs in C: the paper's calls [tpba §5, Fig. 6], as `include/fairpace_fsocket.h`
//! declares them. That header and `docs/net/flow-socket.md` describe the calls.
//!
//! Readings: the descriptor of an fsocket is one that `poll` and `select` take. The figure shows no call to accept a sender, so
//! the first `f_recv` does; none to set parameters, so there is `f_option`; and a receiver must see where a unit ends
//! (`f_recv_adu`).

pub mod c_api;

use fairpace_net::flow_socket::{Canceller, FlowSocketConfig};
use fairpace_net::{FlowSocket, NetError};
use fairpace_units::{parse_duration, parse_rate, parse_size};
use nix::libc;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number for `errno`, and words for `f_strerror`.
struct Failure {
    errno: i32,
    text: String,
}

impl Failure {
    fn new(errno: i32, text: &str) -> Failure {
        Failure { errno, text: text.to_owned() }
    }
}

impl From<NetError> for Failure {
    fn from(e: NetError) -> Failure {
        let errno = match &e {
            NetError::PortInUse { .. } | NetError::TcpPortInUse { .. } => libc::EADDRINUSE,
            NetError::NoSuchLocalAddress { .. } => libc::EADDRNOTAVAIL,
            NetError::Denied { .. } => libc::EACCES,
            NetError::PeerUnreachable { waited, .. } if waited.is_zero() => libc::EHOSTUNREACH,
            NetError::PeerUnreachable { .. }
            | NetError::NoCommonKey { .. }
            | NetError::NoSender { .. }
            | NetError::NothingArrived { .. }
            | NetError::Untold { .. } => libc::ETIMEDOUT,
            NetError::PeerBusy { .. } | NetError::PeerEnded { .. } => libc::EBUSY,
            NetError::NoTcpHalf { .. } => libc::ECONNREFUSED,
            NetError::PeerVanished { .. } => libc::ECONNRESET,
            NetError::PeerLies { .. } => libc::EPROTO,
            NetError::Breaker { .. } => libc::ECONNABORTED,
            NetError::NotSent { .. } => libc::ENETDOWN,
            NetError::Config { field: "ADU", .. } => libc::EMSGSIZE,
            NetError::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EINVAL,
        };
        let text = match e.hint() {
            Some(hint) => format!("{e}; {hint}"),
            None => e.to_string(),
        };
        Failure { errno, text }
    }
}

/// All sockets, by descriptor.
static SOCKETS: Mutex<BTreeMap<i32, Arc<Handle>>> = Mutex::new(BTreeMap::new());

struct Handle {
    /// Held during a call. `None`: closed just now.
    socket: Mutex<Option<FlowSocket>>,
    /// The half that sends where the socket has both directions; the first one then receives.
    sending: Mutex<Option<FlowSocket>>,
    /// The option `directions` is 2.
    both: AtomicBool,
    /// For [`close`], which takes the sockets from calls that wait.
    cancellers: Mutex<Vec<Canceller>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Option<FlowSocket>> {
        lock(&self.socket)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Remembers why a call of this thread failed.
fn note(failure: &Failure) {
    let text: Vec<u8> = failure.text.bytes().filter(|b| *b != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // The variable is gone while the thread ends, and nobody asks for it then.
    let _ = LAST_ERROR.try_with(|last| {
        // Borrowed elsewhere only while this thread reads it, which it does not now.
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = text;
        }
    });
}

fn table<R>(f: impl FnOnce(&mut BTreeMap<i32, Arc<Handle>>) -> R) -> R {
    f(&mut SOCKETS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn none() -> Failure {
    Failure::new(libc::EBADF, "no fsocket has this descriptor")
}

fn handle(fd: i32) -> Result<Arc<Handle>, Failure> {
    table(|t| t.get(&fd).map(Arc::clone)).ok_or_else(none)
}

/// Does something with the socket of a descriptor.
fn with<R>(fd: i32, f: impl FnOnce(&mut FlowSocket) -> Result<R, Failure>) -> Result<R, Failure> {
    let handle = handle(fd)?;
    let mut socket = handle.lock();
    f(socket.as_mut().ok_or_else(none)?)
}

/// The socket's descriptor, and the address that it took.
fn open(local: Option<SocketAddr>) -> Result<(i32, SocketAddr), Failure> {
    let socket = FlowSocket::bind(local.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into()))?;
    let address = socket.local_address()?;
    let fd = socket.readiness().as_raw_fd();
    let canceller = socket.canceller();
    let (socket, sending) = (Mutex::new(Some(socket)), Mutex::new(None));
    let (both, cancellers) = (AtomicBool::new(false), Mutex::new(vec![canceller]));
    table(|t| t.insert(fd, Arc::new(Handle { socket, sending, both, cancellers })));
    Ok((fd, address))
}

fn set_option(fd: i32, name: &str, value: &str) -> Result<(), Failure> {
    let handle = handle(fd)?;
    with(fd, |socket| {
        if !socket.is_bound() {
            return Err(Failure::new(libc::EISCONN, "parameters are set before f_dst and the first f_recv"));
        }
        let wrong = |e: fairpace_units::ParseUnitError| Failure::new(libc::EINVAL, &format!("{name}: {e}"));
        let mut config: FlowSocketConfig = socket.config().clone();
        let rate = || parse_rate(value).map(|rate| rate.with_packets_of(socket.config().packet_size)).map_err(wrong);
        match name {
            "max_rate" => config.max_rate = rate()?,
            "min_rate" => config.min_rate = rate()?,
            "packet_size" => config.packet_size = parse_size(value).map_err(wrong)?,
            "algorithm" => value.clone_into(&mut config.tcp.algorithm),
            "directions" => match value {
                "1" | "2" => {
                    handle.both.store(value == "2", Ordering::Relaxed);
                    return Ok(());
                }
                _ => return Err(Failure::new(libc::EINVAL, "directions: 1 or 2")),
            },
            "linger" => config.linger = parse_duration(value).map_err(wrong)?,
            _ => {
                config.settings.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(socket.configure(config)?)
    })
}

fn connect(fd: i32, peer: SocketAddr) -> Result<(), Failure> {
    let handle = handle(fd)?;
    let both = handle.both.load(Ordering::Relaxed);
    let sender = with(fd, |socket| {
        if !socket.is_bound() {
            return Err(Failure::new(libc::EISCONN, "it is connected or receives already"));
        }
        if !both {
            socket.connect(peer)?;
            return Ok(None);
        }
        // The socket that the peer knows receives; another one sends, since each direction is a flow of its own.
        let any = if peer.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let sender = FlowSocket::bind_with(SocketAddr::new(any, 0), socket.config().clone())?;
        socket.accept_later(Some(peer.ip()))?;
        Ok(Some(sender))
    })?;
    let Some(sender) = sender else { return Ok(()) };
    lock(&handle.cancellers).push(sender.canceller());
    let mut sending = lock(&handle.sending);
    Ok(sending.insert(sender).connect(peer)?)
}

fn send(fd: i32, bytes: &[u8], adu_end: bool) -> Result<usize, Failure> {
    if let Some(sender) = &*lock(&handle(fd)?.sending) {
        return Ok(sender.send(bytes, adu_end).map(|()| bytes.len())?);
    }
    with(fd, |socket| Ok(socket.send(bytes, adu_end).map(|()| bytes.len())?))
}

/// How many bytes, and whether a unit ends with them.
fn receive(fd: i32, buffer: &mut [u8]) -> Result<(usize, bool), Failure> {
    with(fd, |socket| {
        if socket.is_bound() {
            socket.accept()?;
        } else if socket.is_sender() {
            return Err(Failure::new(libc::EISCONN, "this socket sends"));
        }
        Ok(socket.recv(buffer)?.map_or((0, false), |got| (got.len, got.adu_end)))
    })
}

fn close(fd: i32) -> Result<(), Failure> {
    let handle = table(|t| t.remove(&fd)).ok_or_else(|| Failure::new(libc::EBADF, "no fsocket has this descriptor"))?;
    // A call that waits gives its half back.
    lock(&handle.cancellers).iter().for_each(Canceller::cancel);
    let [sender, socket] = [lock(&handle.sending).take(), handle.lock().take()];
    // The data that waits leaves first. The first failure is the one to tell.
    let closed = [sender, socket].map(|half| half.map_or(Ok(()), |half| half.close().map(|_| ())));
    closed.into_iter().collect::<Result<Vec<()>, NetError>>()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// A descriptor of a socket that takes any port of the loopback.
    fn opened() -> (i32, SocketAddr) {
        open(Some((Ipv4Addr::LOCALHOST, 0).into())).unwrap_or_else(|f| panic!("{}", f.text))
    }

    /// Closes `fd` while another thread is in `call`: the errno of both, if they return.
    fn closed_during(
        fd: i32,
        call: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> (Option<i32>, Option<i32>) {
        let (told, tell) = mpsc::channel();
        let tell_close = told.clone();
        thread::spawn(move || told.send(("call", call().err().map(|f| f.errno))));
        assert!(tell.recv_timeout(Duration::from_millis(200)).is_err(), "the call does not wait");
        thread::spawn(move || tell_close.send(("close", close(fd).err().map(|f| f.errno))));
        let mut both: Vec<_> = (0..2).map(|_| tell.recv_timeout(Duration::from_secs(4)).unwrap()).collect();
        both.sort_unstable();
        (both[0].1, both[1].1)
    }

    #[test]
    fn closing_ends_a_call_that_waits_in_another_thread() {
        // For a sender that never comes.
        let (fd, _) = opened();
        let waiting = closed_during(fd, move || receive(fd, &mut [0; 8]).map(|_| ()));
        assert_eq!(waiting, (Some(libc::ECANCELED), None));
        // For a receiver that never answers.
        let (fd, _) = opened();
        let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = deaf.local_addr().unwrap();
        assert_eq!(closed_during(fd, move || connect(fd, to)), (Some(libc::ECANCELED), None));
        // For data that the sender does not send.
        let (from, _) = opened();
        let (to, address) = opened();
        let accepted = thread::spawn(move || receive(to, &mut [0; 8]).map_err(|f| f.text));
        connect(from, address).unwrap_or_else(|f| panic!("{}", f.text));
        send(from, b"first", true).unwrap_or_else(|f| panic!("{}", f.text));
        assert_eq!(accepted.join().unwrap(), Ok((5, true)));
        assert_eq!(closed_during(to, move || receive(to, &mut [0; 8]).map(|_| ())), (Some(libc::ECANCELED), None));
        let _ = close(from);
    }
}
