//! An input that does not come back is not lost: a second thread writes its bytes out, or the bytes are still in a file.

use fairpace_units::Duration;
use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::panic;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Instant;

/// An input that takes longer ends the process, its bytes written out.
pub const HANGS: Duration = Duration::from_secs(60);

#[allow(clippy::disallowed_methods, reason = "how long an input takes is what is measured")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The input that is being read, for the other thread.
type Current = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Watches over the inputs of one target.
pub(crate) struct Watch {
    current: Current,
    /// An allocation that fails ends the process without a word: the input is in this file then.
    last: Option<(File, PathBuf)>,
    /// Gone with the watch; the other thread then ends.
    _end: Sender<()>,
}

impl Watch {
    pub(crate) fn new(name: &str) -> Watch {
        let current: Current = Arc::default();
        let (end, ended) = channel::<()>();
        let (theirs, name_of) = (Arc::clone(&current), name.to_owned());
        std::thread::spawn(move || {
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let current = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((begin, input)) = &*current
                    && begin.elapsed() > HANGS
                {
                    eprintln!("{name_of}: hangs for more than {HANGS:?}; the input: {}", hex(input));
                    std::process::abort();
                }
            }
        });
        let path = std::env::temp_dir().join(format!("fairpace-fuzz-{name}-{}", std::process::id()));
        let last = File::create_new(&path).ok().map(|file| (file, path));
        Watch { current, last, _end: end }
    }

    /// Runs `f`, which reads `input`.
    pub(crate) fn over<R>(&mut self, input: &[u8], f: impl FnOnce() -> R) -> R {
        let set = |to| *self.current.lock().unwrap_or_else(PoisonError::into_inner) = to;
        if let Some((file, _)) = &mut self.last {
            let _ = file.rewind().and_then(|()| file.write_all(input)).and_then(|()| file.set_len(input.len() as u64));
        }
        set(Some((now(), input.to_vec())));
        let result = f();
        set(None);
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.last {
            let _ = fs::remove_file(path);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f`, which says whether a panic was caught in this thread: place and message of the panic, which is printed nowhere.
pub(crate) fn quietly(f: impl FnOnce() -> bool) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return before(info);
            }
            let at = info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
            let message = info.payload_as_str().unwrap_or("no text");
            MESSAGE.set(format!("{at}: {message}"));
        }));
    });
    let before = QUIET.replace(true);
    let panicked = f();
    QUIET.set(before);
    panicked.then(|| MESSAGE.take())
}
