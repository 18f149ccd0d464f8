//! Quick-Start as a scenario writes it: what a flow asks for, and the router before the bottleneck that answers.

use super::{Chance, Count, Speed, Time, quantity};
use fairpace_control::{ParamError, QuickStartParams};
use fairpace_path::quick_start::{LoadWindow, RouterParams, Statistic};
use fairpace_units::{Bytes, Duration, RandomStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Quick-Start request of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickStartSpec {
    /// The rate, rounded up to one that the option can say: 80 kbit/s, and double that, up to 1,310.72 Mbit/s.
    pub rate: Speed,
}

/// A router that knows Quick-Start [RFC 4782 §3.3]. An absent field has the default that is said there.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RouterSpec {
    /// Share of the capacity up to which requests are approved (qs_thresh); 0.8 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Chance>,
    /// For how many intervals of `state_delay` an approval is remembered (M); 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Count<1, 1_000>>,
    /// Length of such an interval, and of one measurement of the load; 150 ms if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_delay: Option<Time>,
    /// The measure of the load: the `average` or the `peak` of the last `observations`; `average` if absent.
    #[serde(deserialize_with = "quantity::choice_if_any", skip_serializing_if = "Option::is_none")]
    pub statistic: Option<LoadStatistic>,
    /// How many measurements that is taken over (N); 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<Count<1, 1_000>>,
    /// Requests per second that are considered from one source; 10 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_source: Option<Count<1, 1_000_000>>,
    /// Requests per second that are considered in all; 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_all: Option<Count<1, 1_000_000>>,
    /// Share of what the others leave that one source may hold in approvals; 0.25 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_share: Option<Chance>,
}

/// The measure of the load of several observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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

    /// The first field that is wrong: its name, its value, why, what is allowed.
    pub(super) fn problem(&self) -> Option<(&'static str, String, &'static str, &'static str)> {
        for (key, share) in [("threshold", self.threshold), ("source_share", self.source_share)] {
            if share == Some(Chance::ZERO) {
                return Some((key, "0".to_owned(), "approves nothing", "above 0, at most 1"));
            }
        }
        let delay = self.state_delay.as_ref().filter(|d| d.get() < Duration::from_millis(1))?;
        Some(("state_delay", delay.text().to_owned(), "is out of range", "at least 1 ms"))
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

impl JsonSchema for QuickStartSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuickStartSpec".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Speed::json_schema(generator)
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
