//! The messages of the command when it fails, and its exit codes.
//!
//! Every crate's errors arrive here; the form is always `error: …`, a blank line, `hint: …`.

use fairpace_control::ParamError;
use fairpace_emu::EmuError;
use fairpace_lab::RunError;
use fairpace_lab::results::{OpenError, WriteError};
use fairpace_lab::study::StoreError;
use fairpace_lab::sweep::SweepError;
use fairpace_media::{Hint as _, MediaError};
use fairpace_net::NetError;
use fairpace_report::folder::FolderError;
use fairpace_scenario::ScenarioError;
use fairpace_scenario::controllers::{CONSTANT, KERNEL_TCP, TCP};
use std::fmt;
use std::io;

pub(crate) mod code;

/// Why the command ends with something else than 0.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The fault and its place; no full stop. Empty: everything has been said already.
    pub(crate) message: String,
    /// The remedy.
    pub(crate) hint: Option<String>,
    /// The exit code.
    pub(crate) code: u8,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Failure { message: message.into(), hint: None, code }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(code::USAGE, message)
    }

    /// Ends with `code` without another word.
    pub(crate) fn silent(code: u8) -> Self {
        Failure::new(code, "")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A file or folder that could not be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Failure::io(format!("cannot {doing} `{}`: {error}", path.display()), error)
    }

    /// A failure of the system, with the remedy of a full disk.
    pub(crate) fn io(message: String, error: &io::Error) -> Self {
        let failure = Failure::new(code::FAILED, message);
        match error.kind() {
            io::ErrorKind::StorageFull => failure.hint("the disk is full; make room, or take another folder"),
            _ => failure,
        }
    }

    /// A file named on the command line that cannot be written. The name is wrong, unless the disk is full.
    pub(crate) fn unwritable(path: &std::path::Path, error: &io::Error) -> Self {
        let failure = Failure::file("write", path, error);
        match failure.hint {
            Some(_) => failure,
            None => Failure { code: code::USAGE, ..failure }.hint("is there such a folder, and may you write to it?"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Output to stdout may have lost its reader (`| head`): that is no error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::silent(0),
            _ => Failure::io(format!("cannot write: {error}"), &error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::from(io::Error::from(error))
    }
}

/// Where a controller runs that sends nothing over the network; `fairpace list` says the same.
fn simulated(name: &str) -> Option<&'static str> {
    match name {
        CONSTANT => Some("the simulator and the emulator"),
        _ if KERNEL_TCP.contains(&name) => Some("the emulator"),
        _ => TCP.contains(&name).then_some("the simulator, the emulator and the relay"),
    }
}

impl From<ParamError> for Failure {
    fn from(error: ParamError) -> Self {
        if let ParamError::UnknownScheme { found, .. } = &error
            && let Some(where_) = simulated(found)
        {
            let hint = if found == CONSTANT {
                ""
            } else {
                "as a flow of a scenario: TCP is the kernel's with `fairpace run SCENARIO --world emu`; "
            };
            return Failure::usage(format!("`{found}` runs in {where_} only"))
                .hint(format!("{hint}`fairpace list controllers` shows which send over the network"));
        }
        let list = "`fairpace list controllers` shows all with their parameters";
        let hint = error.hint().map_or_else(|| list.to_owned(), |h| format!("{h} {list}"));
        Failure::usage(error.to_string()).hint(hint)
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Failure { message: error.to_string(), hint: error.hint(), code: code::SCENARIO }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Scenario(error) => error.into(),
            RunError::Sim { .. } | RunError::OwnRules { .. } => Failure::new(code::SCENARIO, error.to_string()),
            RunError::World(error) => match error.downcast::<EmuError>() {
                Ok(error) => (*error).into(),
                Err(error) => Failure::new(code::FAILED, error.to_string()),
            },
            RunError::Store(error) => error.into(),
            RunError::Interrupted => Failure::new(code::INTERRUPTED, error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = match error.error.kind() {
            io::ErrorKind::ResourceBusy => "wait until it has ended, or name another folder with `--out`",
            _ => {
                "what is there is kept, and the same command goes on from it: make room, or name another folder with `--out`"
            }
        };
        Failure::new(code::FAILED, error.to_string()).hint(hint)
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Run(error) => error.into(),
            SweepError::Write(error) => error.into(),
            occupied @ SweepError::Occupied { .. } => Failure::usage(occupied.to_string()).hint(OCCUPIED),
            other => {
                let code = match &other {
                    SweepError::Point { .. } => code::SCENARIO,
                    SweepError::Vary { .. } | SweepError::Metric { .. } | SweepError::Foreign { .. } => code::USAGE,
                    _ => code::FAILED,
                };
                Failure { message: other.to_string(), hint: other.hint(), code }
            }
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let hint = match error.error.kind() {
            io::ErrorKind::StorageFull => "the disk is full; make room, or name another folder with `--out`",
            _ => "is there such a folder, and may you write to it?",
        };
        Failure::new(code::FAILED, error.to_string()).hint(hint)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Write(error) => error.into(),
            OpenError::Store(error) => error.into(),
            occupied @ OpenError::Occupied { .. } => Failure::usage(occupied.to_string()).hint(OCCUPIED),
        }
    }
}

/// The remedy where a folder holds what would be lost.
pub(crate) const OCCUPIED: &str = "name another folder with `--out`, or replace what is there with `--force`";

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Failure::usage(error.to_string())
    }
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Media(error) => error.into(),
            NetError::Control(error) => error.into(),
            other => Failure { message: other.to_string(), hint: other.hint(), code: code::of_net(&other) },
        }
    }
}

impl From<EmuError> for Failure {
    fn from(error: EmuError) -> Self {
        match error {
            EmuError::Net(error) => error.into(),
            other => Failure { message: other.to_string(), hint: other.hint(), code: code::of_emu(&other) },
        }
    }
}

impl From<MediaError> for Failure {
    fn from(error: MediaError) -> Self {
        let (code, hint) = (code::of_media(&error), error.hint());
        Failure { message: error.to_string(), hint, code }
    }
}
