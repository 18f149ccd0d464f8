//! Fuzzing in `cargo test`, on stable Rust: a [`Target`] has a corpus, and gives what it makes of the corpus to a function that
//! reads bytes from outside.
//!
//! ```no_run
//! use fairpace_fuzz::Target;
//! Target::new("numbers", env!("CARGO_MANIFEST_DIR")).cases(10_000).run(|bytes| {
//!     let _ = str::from_utf8(bytes).unwrap_or_default().parse::<u32>();
//! });
//! ```
//!
//! Inputs of the corpus (the files in `tests/corpus/NAME` of the crate, and what the test itself makes) come first, then cases: one of
//! the inputs with one to eight mutations. Each may be a finding: a panic (an overflow is one, in every profile), more than
//! [`SLOWEST`] of its thread's processor time, more memory at a time than the target may have ([`Target::memory`]). An input that does not come to its end within
//! [`HANGS`] ends the process. The input of a finding is made smaller and kept in the corpus under a name of its own, and the test fails.
//!
//! The number of cases is fixed and the random stream has a fixed seed, so that a run is the same each time. With
//! `FAIRPACE_FUZZ_MINUTES` each target runs for so long instead, from another seed each time, which a failure names;
//! `FAIRPACE_FUZZ_SEED` sets the seed. `FAIRPACE_BLESS=1` writes the inputs that the test makes into the corpus, where they stay
//! when a format changes.
//!
//! Own code beside `bolero` and `proptest`: on stable, without a second program, `bolero` 0.13 draws random bytes and never looks
//! at the corpus again, so that cases end at the first field of a header; `proptest` knows no corpus. Neither counts memory or time.

#![forbid(unsafe_code)]

mod minimize;
mod mutate;
mod script;
mod watch;

pub use script::{Script, put_piece};

use fairpace_units::{Duration, RandomStream};
use mutate::Mutator;
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;
pub use watch::HANGS;
use watch::{Watch, now};

/// An input that takes more processor time, three times in a row, is a finding.
pub const SLOWEST: Duration = Duration::from_secs(1);

/// The fault that an input has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A panic, with its place and message.
    Panic(String),
    /// The processor time that the input took.
    Slow(Duration),
    /// Bytes of memory at a time, and how many are allowed.
    Memory(u64, u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Panic(message) => write!(f, "panic: {message}"),
            Fault::Slow(took) => write!(f, "slow: {took:?}, at most {SLOWEST:?} are allowed"),
            Fault::Memory(used, most) => write!(f, "memory: {used} B at a time, at most {most} B are allowed"),
        }
    }
}

impl Fault {
    /// Whether both are of one kind: a smaller input must show the fault that the larger one had.
    fn is_like(&self, other: &Fault) -> bool {
        match (self, other) {
            // The place stands before the message, which may tell of the input.
            (Fault::Panic(a), Fault::Panic(b)) => a.split(": ").next() == b.split(": ").next(),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

/// An input and its fault.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The fault.
    pub fault: Fault,
    /// The bytes, as few as were found to show the fault.
    pub input: Vec<u8>,
    /// Random seed of the run; `None` if the input is of the corpus.
    pub seed: Option<u64>,
}

/// A summary of a run without a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Inputs of the corpus.
    pub corpus: u64,
    /// Mutated inputs.
    pub cases: u64,
    /// Most bytes of memory that one of them held.
    pub most_memory: u64,
    /// The longest time that one of them took.
    pub slowest: Duration,
}

/// A function that reads bytes from outside, and what it is given.
#[derive(Clone, Debug)]
pub struct Target {
    name: String,
    folder: PathBuf,
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    text: bool,
    cases: u64,
    memory: u64,
    longest: usize,
}

impl Target {
    /// The target `name` of the crate in the folder `manifest`: `env!("CARGO_MANIFEST_DIR")`.
    pub fn new(name: &str, manifest: &str) -> Target {
        Target {
            name: name.to_owned(),
            folder: Path::new(manifest).join("tests/corpus").join(name),
            seeds: Vec::new(),
            words: Vec::new(),
            text: false,
            cases: 10_000,
            memory: 16 << 20,
            longest: 4_096,
        }
    }

    /// Inputs besides the files, each of them tried as it is.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = Vec<u8>>) -> Target {
        self.seeds.extend(seeds);
        self
    }

    /// Words that the parser knows: mutations put them in.
    #[must_use]
    pub fn words<W: AsRef<[u8]>>(mut self, words: impl IntoIterator<Item = W>) -> Target {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_vec()));
        self
    }

    /// The input is text: mutations change its numbers and lines, too, and most cases stay UTF-8.
    #[must_use]
    pub fn text(mut self) -> Target {
        self.text = true;
        self
    }

    /// Cases of a run without `FAIRPACE_FUZZ_MINUTES`.
    #[must_use]
    pub fn cases(mut self, cases: u64) -> Target {
        self.cases = cases;
        self
    }

    /// Most bytes of memory that an input may take at a time in the thread that reads the input: 16 MiB if not given.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Target {
        self.memory = bytes;
        self
    }

    /// Mutations make inputs no longer than that, or than the longest of the corpus: 4 KiB if not given.
    #[must_use]
    pub fn longest(mut self, bytes: usize) -> Target {
        self.longest = bytes;
        self
    }

    /// Gives the corpus and the cases to `read`.
    ///
    /// # Panics
    /// At a finding, which is then in the corpus; and where there is no corpus.
    pub fn run(self, read: impl FnMut(&[u8])) {
        match self.search(read) {
            Ok(Account { corpus, cases, most_memory, slowest }) => println!(
                "{}: {corpus} of the corpus, {cases} cases, none took more than {most_memory} B or {slowest:?}",
                self.name
            ),
            Err(finding) => {
                let Finding { fault, input, seed } = finding;
                let (from, place) = match seed {
                    None => ("of the corpus".to_owned(), "as it was".to_owned()),
                    Some(seed) => {
                        let place = self.write("found", &input);
                        (format!("seed {seed}"), place.unwrap_or_else(|e| format!("not kept ({e})")))
                    }
                };
                panic!("{}, {from}: {fault}\nthe input, {place}: {}", self.name, shown(&input));
            }
        }
    }

    /// As [`Target::run`], without the file.
    ///
    /// # Errors
    /// The first finding.
    ///
    /// # Panics
    /// There is no corpus; a variable holds no number.
    pub fn search(&self, mut read: impl FnMut(&[u8])) -> Result<Account, Finding> {
        let corpus = self.corpus();
        assert!(!corpus.is_empty(), "{}: no corpus in {}", self.name, self.folder.display());
        let mut watch = Watch::new(&self.name);
        let mut account = Account::default();
        let mut look = |input: &[u8], account: &mut Account| -> Option<Fault> {
            let mut fault = None;
            // The machine slows its processors down at times: the least of three.
            for _ in 0..3 {
                let (found, memory, took) = watch.over(input, || run(|| read(input)));
                account.most_memory = account.most_memory.max(memory);
                let most = self.memory;
                fault = found.or_else(|| (memory > most).then_some(Fault::Memory(memory, most)));
                if fault.is_some() {
                    break;
                }
                if took <= SLOWEST {
                    account.slowest = account.slowest.max(took);
                    break;
                }
                fault = Some(Fault::Slow(took));
            }
            fault
        };
        for input in &corpus {
            account.corpus += 1;
            if let Some(fault) = look(input, &mut account) {
                return Err(Finding { fault, input: input.clone(), seed: None });
            }
        }
        let limit = Limit::read(self.cases);
        let mut mutator = Mutator::new(
            &corpus,
            &self.words,
            self.text,
            self.longest,
            RandomStream::named(limit.seed, &format!("fuzz.{}", self.name)),
        );
        while !limit.is_over(account.cases) {
            account.cases += 1;
            let input = mutator.next();
            if let Some(fault) = look(&input, &mut account) {
                let like = |smaller: &[u8]| look(smaller, &mut Account::default()).is_some_and(|f| f.is_like(&fault));
                // Whatever is slow is slow each time.
                let tries = if matches!(fault, Fault::Slow(_)) { 20 } else { 2_000 };
                let input = minimize::minimize(&input, tries, like);
                let fault = look(&input, &mut Account::default()).unwrap_or(fault);
                return Err(Finding { fault, input, seed: Some(limit.seed) });
            }
        }
        Ok(account)
    }

    /// The files in the order of their names, then those of the test's own that are in no file.
    fn corpus(&self) -> Vec<Vec<u8>> {
        if std::env::var_os("FAIRPACE_BLESS").is_some() {
            self.seeds.iter().for_each(|seed| drop(self.write("made", seed)));
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a folder's entry").path()).collect();
        files.sort();
        let read = |path: &PathBuf| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut corpus: Vec<_> = files.iter().map(read).collect();
        for seed in &self.seeds {
            if !corpus.contains(seed) {
                corpus.push(seed.clone());
            }
        }
        corpus
    }

    /// Puts the input into the corpus: the path, or why there is none.
    fn write(&self, how: &str, input: &[u8]) -> Result<String, String> {
        let digest = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let path = self.folder.join(format!("{how}-{digest:016x}"));
        let written = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, input));
        written.map(|()| path.display().to_string()).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// The input as text where it is text, else in hexadecimal; 400 bytes of it.
fn shown(input: &[u8]) -> String {
    let begin = input.get(..400).unwrap_or(input);
    let more = if begin.len() < input.len() { " ..." } else { "" };
    match str::from_utf8(begin) {
        Ok(text) => format!("{text:?}{more}"),
        Err(_) => begin.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

/// One run: its panic, the most memory at a time, the processor time it took.
fn run(read: impl FnOnce()) -> (Option<Fault>, u64, Duration) {
    let begin = thread_cpu();
    let mut panic = None;
    let memory =
        allocation_counter::measure(|| panic = watch::quietly(|| catch_unwind(AssertUnwindSafe(read)).is_err()));
    (panic.map(Fault::Panic), memory.bytes_max, thread_cpu().saturating_sub(begin))
}

/// Of this thread, since it began: a machine that is busy with something else makes no input slow.
fn thread_cpu() -> Duration {
    let account = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps an account of each thread");
    let nanoseconds = account.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("its first number is the time on a processor"))
}

/// The end of a run.
#[derive(Debug)]
struct Limit {
    cases: u64,
    until: Option<Instant>,
    seed: u64,
}

impl Limit {
    fn read(cases: u64) -> Limit {
        let number = |name: &str| -> Option<f64> {
            let text = std::env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number")))
        };
        let minutes = number("FAIRPACE_FUZZ_MINUTES");
        let until = minutes.map(|minutes| now() + Duration::from_secs_f64(minutes * 60.0));
        let seed = number("FAIRPACE_FUZZ_SEED").map(|seed| seed as u64);
        Limit { cases, until, seed: seed.unwrap_or_else(|| if until.is_some() { time_of_day() } else { 1 }) }
    }

    fn is_over(&self, cases: u64) -> bool {
        match self.until {
            // A look at the clock for each case costs nothing beside the case.
            Some(until) => now() >= until,
            None => cases >= self.cases,
        }
    }
}

/// Another number each second.
#[allow(clippy::disallowed_methods, reason = "a seed that differs from the last run's")]
fn time_of_day() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_secs())
}

#[cfg(test)]
mod tests;
