//! Who made a result, when, on what: what goes into a manifest. The only part that asks the machine.

use fairpace_lab::results::Manifest;
use fairpace_net::Clock;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Begins with the command; [`Provenance::manifest`] says how long it took.
pub(crate) struct Provenance {
    clock: Clock,
    program: String,
    started_at: String,
}

impl Provenance {
    pub(crate) fn begin() -> Provenance {
        let clock = Clock::start();
        Provenance { clock, program: code_version(), started_at: rfc3339(clock.unix_at_zero().as_secs()) }
    }

    /// The version that decides a result beside scenario and seed: this very program, to the byte, with its version for
    /// people.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    pub(crate) fn elapsed_s(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    pub(crate) fn manifest(&self) -> Manifest {
        let uname = nix::sys::utsname::uname().ok();
        let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
        let mut machine = BTreeMap::new();
        if let Some(u) = &uname {
            machine.insert("system".to_owned(), text(u.sysname()));
            machine.insert("kernel".to_owned(), text(u.release()));
            machine.insert("architecture".to_owned(), text(u.machine()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        machine.insert("cores".to_owned(), cores.to_string());
        Manifest {
            version: format!("fairpace {}", crate::args::VERSION),
            program: self.program.clone(),
            command: std::env::args().collect(),
            started_at: Some(self.started_at.clone()),
            elapsed_s: Some(self.elapsed_s()),
            machine,
        }
    }
}

fn code_version() -> String {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let digest: String = Sha256::digest(&program).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}, program {digest}", crate::args::VERSION)
}

/// Unix time as text in UTC. Days become a date by the civil calendar's 400-year cycle of 146,097 days,
/// counted from 1 March so that the leap day is a cycle's last.
fn rfc3339(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    let from_march = days + 719_468; // 1970-01-01 is day 719,468 after 0000-03-01
    let (era, day) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn unix_time_reads_as_a_date() {
        // Checked with `date -u -d @N +%FT%TZ`.
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(unix), text);
        }
    }
}
