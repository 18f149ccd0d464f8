//! The C side: pointers in, `errno` out. Nothing but what a pointer needs is done here, and no panic leaves it.

// A C interface is made of raw pointers and exported names.
#![allow(unsafe_code)]

use crate::{Failure, LAST_ERROR, close, connect, note, open, receive, send, set_option};
use nix::errno::Errno;
use nix::libc::{self, c_char, c_int, c_void, size_t, sockaddr_in, sockaddr_in6, ssize_t};
use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call: its value, or -1 with `errno`.
fn call<T: From<i8>>(f: impl FnOnce() -> Result<T, Failure>) -> T {
    // Unwind safety: what a panic leaves behind locks is looked at through poisoned mutexes, which are mended.
    let result = catch_unwind(AssertUnwindSafe(f));
    let failure = match result {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(libc::ENOTRECOVERABLE, "a fault in fairpace-fsocket itself"),
    };
    note(&failure);
    Errno::from_raw(failure.errno).set();
    T::from(-1)
}

fn no_pointer() -> Failure {
    Failure::new(libc::EFAULT, "a null pointer")
}

fn address(a: &sockaddr_in) -> Result<SocketAddr, Failure> {
    if i32::from(a.sin_family) != libc::AF_INET {
        return Err(Failure::new(libc::EAFNOSUPPORT, "the address is not of AF_INET"));
    }
    let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(a.sin_port)).into())
}

fn address6(a: &sockaddr_in6) -> Result<SocketAddr, Failure> {
    if i32::from(a.sin6_family) != libc::AF_INET6 {
        return Err(Failure::new(libc::EAFNOSUPPORT, "the address is not of AF_INET6"));
    }
    let (ip, port) = (Ipv6Addr::from(a.sin6_addr.s6_addr), u16::from_be(a.sin6_port));
    Ok(SocketAddrV6::new(ip, port, a.sin6_flowinfo, a.sin6_scope_id).into())
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `local_addr` is null or points to an address that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_socket6(local_addr: *mut sockaddr_in6) -> c_int {
    call(|| {
        // SAFETY: null or valid for reading and writing, as the caller promises; nobody else has it during the call.
        let local = unsafe { local_addr.as_mut() };
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let wanted = local.as_deref().map_or(Ok(any), address6)?;
        let (fd, taken) = open(Some(wanted))?;
        if let (Some(local), SocketAddr::V6(taken)) = (local, taken) {
            local.sin6_addr.s6_addr = taken.ip().octets();
            local.sin6_port = taken.port().to_be();
        }
        Ok(fd)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `remote_addr` is null or points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_dst6(fsock_fd: c_int, remote_addr: *const sockaddr_in6) -> c_int {
    call(|| {
        // SAFETY: null or valid for reading, as the caller promises.
        let remote = unsafe { remote_addr.as_ref() }.ok_or_else(no_pointer)?;
        connect(fsock_fd, address6(remote)?).map(|()| 0)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `local_addr` is null or points to an address that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_socket(local_addr: *mut sockaddr_in) -> c_int {
    call(|| {
        // SAFETY: null or valid for reading and writing, as the caller promises; nobody else has it during the call.
        let local = unsafe { local_addr.as_mut() };
        let wanted = local.as_deref().map(address).transpose()?;
        let (fd, taken) = open(wanted)?;
        if let (Some(local), SocketAddr::V4(taken)) = (local, taken) {
            local.sin_addr.s_addr = u32::from(*taken.ip()).to_be();
            local.sin_port = taken.port().to_be();
        }
        Ok(fd)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `name` and `value` are null or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_option(fsock_fd: c_int, name: *const c_char, value: *const c_char) -> c_int {
    call(|| {
        let text = |p: *const c_char| {
            if p.is_null() {
                return Err(no_pointer());
            }
            // SAFETY: not null, and ends with a zero byte, as the caller promises; it is only read during the call.
            let text = unsafe { CStr::from_ptr(p) };
            text.to_str().map_err(|_| Failure::new(libc::EINVAL, "not UTF-8"))
        };
        set_option(fsock_fd, text(name)?, text(value)?).map(|()| 0)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `remote_addr` is null or points to an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_dst(fsock_fd: c_int, remote_addr: *const sockaddr_in) -> c_int {
    call(|| {
        // SAFETY: null or valid for reading, as the caller promises.
        let remote = unsafe { remote_addr.as_ref() }.ok_or_else(no_pointer)?;
        connect(fsock_fd, address(remote)?).map(|()| 0)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `buf` points to `len` bytes, or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_send(fsock_fd: c_int, buf: *const c_void, len: size_t, adu_ind: c_int) -> ssize_t {
    call(|| {
        let bytes = match (buf.is_null(), isize::try_from(len)) {
            (_, Ok(0)) => &[],
            (true, _) => return Err(no_pointer()),
            (_, Err(_)) => return Err(Failure::new(libc::EMSGSIZE, "longer than any buffer")),
            // SAFETY: not null, `len` readable bytes, as the caller promises, and no more than `isize::MAX`.
            (false, Ok(_)) => unsafe { core::slice::from_raw_parts(buf.cast::<u8>(), len) },
        };
        send(fsock_fd, bytes, adu_ind != 0).map(usize::cast_signed)
    })
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// As [`f_recv_adu`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_recv(fsock_fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the same promises, and null is allowed there.
    unsafe { f_recv_adu(fsock_fd, buf, len, core::ptr::null_mut()) }
}

/// See `fairpace_fsocket.h`.
///
/// # Safety
/// `buf` points to `len` bytes that may be written to; `adu_ind` is null or points to an int that may be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn f_recv_adu(fsock_fd: c_int, buf: *mut c_void, len: size_t, adu_ind: *mut c_int) -> ssize_t {
    call(|| {
        if buf.is_null() || len == 0 || isize::try_from(len).is_err() {
            return Err(Failure::new(libc::EINVAL, "no buffer to receive into"));
        }
        // Bytes of C are perhaps not initialized: they are, before Rust sees them.
        // SAFETY: not null and `len` writable bytes, as the caller promises; no more than `isize::MAX`.
        let buffer = unsafe {
            buf.cast::<u8>().write_bytes(0, len);
            core::slice::from_raw_parts_mut(buf.cast::<u8>(), len)
        };
        let (received, end) = receive(fsock_fd, buffer)?;
        // SAFETY: null or valid for writing, as the caller promises.
        if let Some(told) = unsafe { adu_ind.as_mut() } {
            *told = c_int::from(end);
        }
        Ok(received.cast_signed())
    })
}

/// See `fairpace_fsocket.h`.
#[unsafe(no_mangle)]
pub extern "C" fn f_close(fsock_fd: c_int) -> c_int {
    call(|| close(fsock_fd).map(|()| 0))
}

/// See `fairpace_fsocket.h`.
#[unsafe(no_mangle)]
pub extern "C" fn f_strerror() -> *const c_char {
    // A thread that is ending has no text any more.
    let text = LAST_ERROR.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |text| text.as_ptr()));
    text.unwrap_or(c"".as_ptr())
}
