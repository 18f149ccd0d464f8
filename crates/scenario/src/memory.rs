//! How much memory the flows of a scenario take in the simulator, and how much there is.
//!
//! An estimate from above: the measured peak of a run of 10,000 flows alike, report included, divided by their number (`docs/sim/performance.md`:
//! 178 MB with an access link there and back each).

use super::{FlowSpec, RawScenario};

/// A TCP or constant flow, in bytes.
const PLAIN_FLOW: u64 = 16_000;
/// A flow with a rate controller: its history of losses, its play-out and its delays.
const MEDIA_FLOW: u64 = 32_000;
/// A flow's own link, there and back.
const ACCESS: u64 = 2_000;
/// A row of the time series, in memory and as it is written.
const ROW: u64 = 400;
/// Below this nobody is asked how much there is.
const UNASKED: u64 = 512 << 20;

/// The estimate for the flows of a scenario and so many rows of its series, in bytes.
pub(crate) fn needed(scenario: &RawScenario, rows: u128) -> u64 {
    let of_flow = |flow: &FlowSpec| {
        let plain = flow.controller.starts_with("tcp-") || flow.controller == "constant";
        let access = ACCESS * u64::from([&flow.access, &flow.far_access].into_iter().flatten().count() as u32);
        flow.count.get().saturating_mul(access + if plain { PLAIN_FLOW } else { MEDIA_FLOW })
    };
    let flows = scenario.flows.iter().map(of_flow).fold(0, u64::saturating_add);
    flows.saturating_add(u64::try_from(rows).unwrap_or(u64::MAX).saturating_mul(ROW))
}

/// The memory that is free or can be freed, in bytes, if so much as `needed` may be missing and the system says it.
pub(crate) fn available(needed: u64) -> Option<u64> {
    if needed < UNASKED {
        return None;
    }
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let kb = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    kb.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// The fault of so many flows and the remedy, if they need more than there is.
pub(crate) fn refusal(flows: u64, needed: u64, available: u64) -> Option<(String, String)> {
    if needed <= available {
        return None;
    }
    let mb = |bytes: u64| bytes.div_ceil(1 << 20);
    let fit = (u128::from(flows) * u128::from(available) / u128::from(needed)) as u64;
    let wrong = format!("takes about {} MiB of memory, and {} MiB are free", mb(needed), available >> 20);
    Some((wrong, format!("at most {fit} flows like these, or more memory")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn what_does_not_fit_is_refused_with_what_was_found_and_what_fits() {
        let gib = 1 << 30;
        assert_eq!(refusal(100_000, 3 * gib, 4 * gib), None);
        assert_eq!(refusal(100_000, 3 * gib, 3 * gib), None);
        let (wrong, allowed) = refusal(100_000, 4 * gib, gib).unwrap();
        assert_eq!(wrong, "takes about 4096 MiB of memory, and 1024 MiB are free");
        assert_eq!(allowed, "at most 25000 flows like these, or more memory");
    }

    #[test]
    fn the_estimate_counts_flows_their_links_and_rows() {
        let text = |rest: &str| format!("sample = \"10 s\"\n[path]\nrate = \"10 Mbit/s\"\n[[flows]]\n{rest}");
        let needs = |rest: &str, rows| needed(&Scenario::parse(&text(rest), "x.toml").unwrap(), rows);
        let one = needs("controller = \"tcp-newreno\"", 0);
        assert_eq!(needs("controller = \"tcp-newreno\"\ncount = 100000", 0), 100_000 * one);
        assert!(needs("controller = \"rcs\"", 0) > one);
        assert_eq!(needs("controller = \"tcp-newreno\"", 10), one + 10 * ROW);
        let access = "controller = \"tcp-newreno\"\n[flows.access]\nrate = \"1 Mbit/s\"";
        assert_eq!(needs(access, 0), one + ACCESS);
        assert_eq!(needs(&format!("{access}\n[flows.far_access]\nrate = \"1 Mbit/s\""), 0), one + 2 * ACCESS);
    }

    #[test]
    fn the_system_says_how_much_is_available() {
        let meminfo = "MemTotal:       24618404 kB\nMemFree:         1003124 kB\nMemAvailable:   20480000 kB\n";
        assert_eq!(parse(meminfo), Some(20_480_000 * 1_024));
        assert_eq!(parse("MemTotal: 3 kB\n"), None);
    }
}
