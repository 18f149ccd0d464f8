//! Asking for memory before it is needed: the one thing in this crate that safe code cannot say.
#![allow(unsafe_code)]

use std::ops::Range;

/// Bytes that the processor brings at once.
const LINE: usize = 64;

/// Asks the processor to bring a value into its nearest cache, and does not wait for it. Changes nothing that a program can see;
/// elsewhere than on x86-64 nothing at all.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_head(value, size_of::<T>());
}

/// As [`prefetch`], for the first so many bytes of a value.
#[inline(always)]
pub(crate) fn prefetch_head<T>(value: &T, bytes: usize) {
    prefetch_part(value, 0..bytes);
}

/// As [`prefetch`], for some bytes of a value.
#[inline(always)]
pub(crate) fn prefetch_part<T>(value: &T, bytes: Range<usize>) {
    let first = std::ptr::from_ref(value).cast::<i8>();
    for at in bytes.clone().step_by(LINE) {
        ask(first.wrapping_add(at));
    }
    // One that begins within a line may end in a line more; what is small rarely does.
    if align_of::<T>() < LINE && bytes.len() > LINE {
        ask(first.wrapping_add(bytes.end - 1));
    }
}

#[inline(always)]
fn ask(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing into a register, and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
