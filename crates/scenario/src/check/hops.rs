//! The checks of a path: the links of `[path]`, or several hops; and where a flow enters and leaves.

use super::{Checked, Checker};
use crate::way::NoWay;
use crate::{FlowSpec, HopKind, PathSpec, RawScenario};

impl Checker<'_> {
    /// The links of `[path]`, or of a hop: the table `at`.
    pub(super) fn links(&self, s: &RawScenario, at: &str, p: &PathSpec) -> Checked {
        let field = |key: &str| format!("{at}.{key}");
        match (&p.rate, &p.trace) {
            (None, None) => {
                return self.missing(field("rate"), "write `rate = \"10 Mbit/s\"`, or name a recording with `trace`");
            }
            (Some(_), Some(_)) => {
                return self.conflict(
                    field("rate"),
                    format!("stands beside `{at}.trace`, and both give the capacity"),
                    "keep one of them",
                );
            }
            (Some(rate), None) => self.capacity(&field("rate"), rate)?,
            (None, Some(_)) => {}
        }
        self.capacity(&field("reverse.rate"), &p.reverse.rate)?;
        self.queue(at, &p.queue, p.rate.as_ref())?;
        self.queue(&field("reverse"), &p.reverse.queue, Some(&p.reverse.rate))?;
        self.loss(&field("loss"), &p.loss)?;
        self.loss(&field("reverse.loss"), &p.reverse.loss)?;
        for (key, jitter, reorder) in
            [("reorder", &p.jitter, p.reorder), ("reverse.reorder", &p.reverse.jitter, p.reverse.reorder)]
        {
            if reorder && jitter.get().is_zero() {
                return self.conflict(
                    field(key),
                    "has no effect without `jitter`",
                    "set `jitter`, or leave `reorder` out",
                );
            }
        }
        for (i, outage) in p.outages.iter().enumerate() {
            if outage.start.get() >= s.duration.get() {
                let wrong = format!("is not before the end at `{}`", s.duration);
                return self.bad(
                    field(&format!("outages[{i}].start")),
                    outage.start.text(),
                    wrong,
                    "a time within the run",
                );
            }
        }
        Ok(())
    }

    /// The hops of a path of several.
    pub(super) fn hops(&self, s: &RawScenario) -> Checked {
        if self.locator.has("path") || !s.path.is_absent() {
            let wrong = "stands beside `hop`, and both say what the flows cross";
            return self.conflict("path", wrong, "make it a hop: `[[hop]]` with a `name` and a `link`");
        }
        for (i, hop) in s.hop.iter().enumerate() {
            let field = |key: &str| format!("hop[{i}].{key}");
            let name = &hop.name;
            if name.is_empty() {
                return self.missing(field("name"), "give each hop a name, such as `name = \"uplink\"`");
            }
            if name.len() > 64 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
                let allowed = "at most 64 letters, digits, `-` and `_`";
                return self.bad(field("name"), name.clone(), "is no name for a hop", allowed);
            }
            if s.hop[..i].iter().any(|before| before.name == *name) {
                return self.bad(field("name"), name.clone(), "is the name of a hop before it", "a name of its own");
            }
            let (table, there) = match (hop.kind, &hop.link) {
                (HopKind::Link, None) => {
                    let allowed =
                        "write `link = { rate = \"10 Mbit/s\", rtt = \"40 ms\" }`, with the fields of `[path]`";
                    return self.missing(field("link"), allowed);
                }
                (HopKind::Link, Some(link)) => {
                    if link.trace.is_some() {
                        let remedy = "give the hop a `rate`, or write `[path]` in place of hops";
                        return self.conflict(
                            field("link.trace"),
                            "is replayed only where the path is one hop",
                            remedy,
                        );
                    }
                    self.links(s, &field("link"), link)?;
                    continue;
                }
                (HopKind::Satellite, _) => ("satellite", s.satellite.is_some()),
                (HopKind::Wireless, _) => ("wireless", s.wireless.is_some()),
            };
            if hop.link.is_some() {
                let wrong = format!("has no effect on a hop of kind `{table}`");
                return self.conflict(field("link"), wrong, format!("leave it out: `[{table}]` says how"));
            }
            if !there {
                return self.missing(table, format!("hop `{name}` is of that kind: write `[{table}]`"));
            }
            if s.hop[..i].iter().any(|before| before.kind == hop.kind) {
                let wrong = format!("is the second hop of kind `{table}`, and a scenario has one `[{table}]`");
                return self.conflict(field("kind"), wrong, "leave one of them out");
            }
        }
        for (table, kind, there) in [
            ("satellite", HopKind::Satellite, s.satellite.is_some()),
            ("wireless", HopKind::Wireless, s.wireless.is_some()),
        ] {
            if there && s.hop.iter().all(|hop| hop.kind != kind) {
                let remedy = format!("add `[[hop]]` with `kind = \"{table}\"`, or leave it out");
                return self.conflict(table, "has no effect: no hop is of that kind", remedy);
            }
        }
        Ok(())
    }

    /// Where a flow enters and leaves a path of several hops.
    pub(super) fn way(&self, s: &RawScenario, flow: &FlowSpec, field: &dyn Fn(&str) -> String) -> Checked {
        if s.hop.is_empty() {
            for (key, given) in [("enter", &flow.enter), ("leave", &flow.leave)] {
                if given.is_some() {
                    let remedy = "write `[[hop]]` entries in place of `[path]`, or leave it out";
                    return self.conflict(field(key), "has no effect without `[[hop]]`", remedy);
                }
            }
            return Ok(());
        }
        let names = || s.hop.iter().map(|hop| format!("`{}`", hop.name)).collect::<Vec<_>>().join(", ");
        let text = |name: &Option<String>| name.clone().unwrap_or_default();
        match s.range(flow) {
            Ok(_) => Ok(()),
            Err(NoWay::Unknown(key)) => {
                let found = text(if key == "enter" { &flow.enter } else { &flow.leave });
                self.bad(field(key), found, "is no hop", format!("one of {}", names()))
            }
            Err(NoWay::Backwards) => {
                let (key, found) = match &flow.leave {
                    Some(leave) => ("leave", leave.clone()),
                    None => ("enter", text(&flow.enter)),
                };
                let wrong = "makes a way backwards: data passes the hops in the order in which they are written";
                self.bad(field(key), found, wrong, format!("`leave` not before `enter`, in the order {}", names()))
            }
        }
    }
}
