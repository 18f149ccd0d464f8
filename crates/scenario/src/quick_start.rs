//! Quick-Start as a scenario writes it: what a flow asks for, and the router before the bottleneck that answers.

use super::param::{Form, Row};
use super::table::written;
use super::{Chance, Count, Speed, Table, Time, quantity};
use fairpace_control::{ParamError, QuickStartParams};
use fairpace_path::quick_start::{LoadWindow, RouterParams, Statistic};
use fairpace_units::{Bounds, Bytes, Duration, RandomStream};
use serde::{Deserialize, Serialize};

/// The Quick-Start request of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickStartSpec {
    /// The rate, rounded up to one that the option can say: 80 kbit/s, and double that, up to 1,310.72 Mbit/s.
    pub rate: Speed,
}

/// A router that knows Quick-Start [RFC 4782 §3.3]. An absent field has the default that is said there.
///
/// The rows of [`ROUTER`] say what its fields are.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct RouterSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Chance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_delay: Option<Time>,
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub statistic: Option<LoadStatistic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_source: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_share: Option<Chance>,
}

/// `quick_start` of a path.
pub const ROUTER: Table = Table::of::<RouterSpec>(
    "RouterSpec",
    "a router that knows Quick-Start [RFC 4782 §3.3]",
    &[THRESHOLD, INTERVALS, STATE_DELAY, STATISTIC, OBSERVATIONS, PER_SOURCE, IN_ALL, SOURCE_SHARE],
)
.usually(|| written(&RouterSpec::of(&RouterParams::default())));

const SHARE: Form = Form::Chance(Bounds::above(0.0).up_to(1.0));
pub(super) const THRESHOLD: Row =
    Row::new("threshold", "qs_thresh", SHARE, "share of the capacity up to which requests are approved")
        .wrong("approves nothing");
pub(super) const INTERVALS: Row = Row::new(
    "intervals",
    "M",
    Form::Whole(1, 1_000),
    "for how many intervals of `state_delay` an approval is remembered",
);
pub(super) const STATE_DELAY: Row = Row::new(
    "state_delay",
    "",
    Form::Time(Bounds::at_least(Duration::from_millis(1))),
    "length of such an interval, and of one measurement of the load",
);
pub(super) const STATISTIC: Row = Row::new(
    "statistic",
    "",
    Form::Word(&["average", "peak"]),
    "the measure of the load: the average or the peak of the last `observations`",
);
pub(super) const OBSERVATIONS: Row =
    Row::new("observations", "N", Form::Whole(1, 1_000), "how many measurements that is taken over");
pub(super) const PER_SOURCE: Row =
    Row::new("per_source", "", Form::Whole(1, 1_000_000), "requests per second that are considered from one source")
        .usually("10; 10,000 with `safety = \"paper\"`");
pub(super) const IN_ALL: Row =
    Row::new("in_all", "", Form::Whole(1, 1_000_000), "requests per second that are considered in all")
        .usually("100; 10,000 with `safety = \"paper\"`");
pub(super) const SOURCE_SHARE: Row =
    Row::new("source_share", "", SHARE, "share of what the others leave that one source may hold in approvals")
        .wrong("approves nothing")
        .usually("0.25; 1 with `safety = \"paper\"`");

/// The measure of the load of several observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadStatistic {
    /// Their mean.
    #[default]
    Average,
    /// The highest.
    Peak,
}

impl RouterSpec {
    /// The router's parameters, on top of these.
    pub fn params(&self, defaults: RouterParams) -> RouterParams {
        let share = |given: Option<Chance>, default: f64| given.map_or(default, |c| c.get().get());
        RouterParams {
            threshold: share(self.threshold, defaults.threshold),
            intervals: self.intervals.map_or(defaults.intervals, |n| n.get() as u32),
            state_delay: self.state_delay.as_ref().map_or(defaults.state_delay, Time::get),
            load: LoadWindow {
                statistic: match self.statistic.unwrap_or_default() {
                    LoadStatistic::Average => Statistic::Average,
                    LoadStatistic::Peak => Statistic::Peak,
                },
                observations: self.observations.map_or(1, |n| n.get() as usize),
            },
            per_source: self.per_source.map_or(defaults.per_source, |n| n.get() as u32),
            in_all: self.in_all.map_or(defaults.in_all, |n| n.get() as u32),
            source_share: share(self.source_share, defaults.source_share),
            ..defaults
        }
    }

    /// These parameters as a scenario writes them.
    pub(super) fn of(params: &RouterParams) -> RouterSpec {
        let whole = |n: u64| Some(Count::new(n));
        RouterSpec {
            threshold: Chance::new(params.threshold),
            intervals: whole(u64::from(params.intervals)),
            state_delay: Some(params.state_delay.into()),
            statistic: Some(match params.load.statistic {
                Statistic::Average => LoadStatistic::Average,
                Statistic::Peak => LoadStatistic::Peak,
            }),
            observations: whole(params.load.observations as u64),
            per_source: whole(u64::from(params.per_source)),
            in_all: whole(u64::from(params.in_all)),
            source_share: Chance::new(params.source_share),
        }
    }
}

impl QuickStartSpec {
    /// The request of a flow, as the sender's parameters. Packet sizes count headers here, so that none are added (H
    /// = 0).
    ///
    /// # Errors
    /// A rate that the option cannot say.
    pub(crate) fn sender(&self, flow: &str, packet_size: Bytes, seed: u64) -> Result<QuickStartParams, ParamError> {
        let seed = RandomStream::named(seed, &format!("flow.{flow}.quick_start")).bits();
        let params = QuickStartParams::new(self.rate.get().with_packets_of(packet_size), seed)?;
        Ok(QuickStartParams { header: Bytes::ZERO, ..params })
    }
}

impl Serialize for QuickStartSpec {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.rate.serialize(s)
    }
}

impl<'de> Deserialize<'de> for QuickStartSpec {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Speed::deserialize(d).map(|rate| QuickStartSpec { rate })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use crate::{Record, sim_config};
    use fairpace_sim::MediaReport;

    const ASKS: &str = "duration = \"20 s\"\nsafety = \"paper\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"600 ms\"\n";
    const FLOW: &str = "\n[[flows]]\ncontroller = \"tfrc\"\nsource = { kind = \"constant\", rate = \"600 kbit/s\" }\n\
                        quick_start = \"640 kbit/s\"\naccess = { rtt = \"20 ms\", rate = \"100 Mbit/s\" }\n";

    fn approved(router: &str) -> (u64, u64, f64) {
        let scenario = Scenario::parse(&format!("{ASKS}{router}{FLOW}"), "qs.toml").unwrap_or_else(|e| panic!("{e}"));
        let report = fairpace_sim::run(sim_config(&scenario, 1, Record::default()).unwrap()).unwrap();
        let flow = &report.flows[0];
        let MediaReport { quick_start: Some(q), .. } = flow.media.as_ref().unwrap() else { panic!("no request") };
        (q.approved, q.bad_ttl + q.bad_rate + q.bad_nonce + q.stray, flow.e2ed.max().as_secs_f64())
    }

    #[test]
    fn a_request_is_approved_where_every_router_knows_it_and_the_stream_starts_sooner() {
        let (unaware, aware) = (approved(""), approved("quick_start = {}"));
        assert_eq!((unaware.0, unaware.1, aware.0, aware.1), (0, 1, 1, 0));
        assert!(aware.2 < 0.6 * unaware.2, "{aware:?} {unaware:?}");
        // A thousandth of 10 Mbit/s is less than the option's lowest rate.
        assert_eq!(approved("quick_start = { threshold = 0.001 }").0, 0);
    }

    #[test]
    fn every_refusal_of_a_router_names_file_line_field_value_and_remedy() {
        for (router, expected) in [
            (
                "quick_start = { threshold = 0 }",
                "qs.toml:6: `path.quick_start.threshold` is `0`, which approves nothing\nhint: above 0, at most 1",
            ),
            (
                "quick_start = { state_delay = \"1 us\" }",
                "qs.toml:6: `path.quick_start.state_delay` is `1 us`, which is out of range\nhint: at least 1 ms",
            ),
        ] {
            let e = Scenario::parse(&format!("{ASKS}{router}{FLOW}"), "qs.toml").unwrap_err();
            assert_eq!(format!("{e}\nhint: {}", e.hint().unwrap_or_default()), expected);
        }
    }
}
