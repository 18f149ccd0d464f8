//! The packets of a stream that have come before.

use rtc_shared::replay_detector::{ReplayDetector, WrappedSlidingWindowDetector};

/// The library's sliding window, which begins with the first packet that is authentic. By itself the library's begins with the first
/// packet that comes: a single forged one would set it anywhere, and all that follow could be too old.
pub(super) struct Window {
    width: usize,
    last: u64,
    /// None before the first authentic packet.
    inner: Option<WrappedSlidingWindowDetector>,
    /// The number of the packet that is being judged, before there is a window.
    first: Option<u64>,
}

impl Window {
    /// `width` numbers wide; after the number `last` comes 0.
    pub(super) const fn new(width: usize, last: u64) -> Window {
        Window { width, last, inner: None, first: None }
    }
}

impl ReplayDetector for Window {
    fn check(&mut self, number: u64) -> bool {
        match &mut self.inner {
            Some(window) => window.check(number),
            None => {
                self.first = (number <= self.last).then_some(number);
                self.first.is_some()
            }
        }
    }

    fn accept(&mut self) {
        if let (None, Some(first)) = (&self.inner, self.first.take()) {
            let mut window = WrappedSlidingWindowDetector::new(self.width, self.last);
            window.check(first);
            self.inner = Some(window);
        }
        if let Some(window) = &mut self.inner {
            window.accept();
        }
    }
}
