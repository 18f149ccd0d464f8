//! The strategies and the satellite that the experiments of `qsd` share.

use crate::builtin::{kbps, time_ms};
use fairpace_path::DamaSpec;
use fairpace_scenario::{AgentKind, Hold, QuickStartSpec, RawScenario, SatelliteSpec, Scenario};
use fairpace_units::{QsRate, Rate};

/// The satellite of a scenario; all of this paper have one.
pub(super) fn satellite(s: &mut RawScenario) -> &mut SatelliteSpec {
    s.satellite.get_or_insert_with(SatelliteSpec::default)
}

/// How a flow starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Strategy {
    /// Slow start.
    None,
    /// Quick-Start; the terminals answer as routers do.
    Qs,
    /// Quick-Start; the terminal asks for the capacity too, and holds the request back for T_q, in ms.
    Qsd(f64),
}

impl Strategy {
    /// Makes all flows of a scenario start so. A flow asks for the rate that its scenario says.
    pub(super) fn set(self, s: &mut RawScenario) {
        let agent = &mut satellite(s).quick_start;
        (agent.agent, agent.hold) = match self {
            Strategy::None => (AgentKind::None, None),
            Strategy::Qs => (AgentKind::Qs, None),
            Strategy::Qsd(t_q) => (AgentKind::Qsd, Some(Hold::Time(time_ms(t_q)))),
        };
        if self == Strategy::None {
            for flow in &mut s.flows {
                flow.quick_start = None;
            }
        }
    }

    /// In words.
    pub(super) fn name(self) -> String {
        match self {
            Strategy::None => "no Quick-Start".to_owned(),
            Strategy::Qs => "QS".to_owned(),
            Strategy::Qsd(t_q) => format!("QSD, T_q = {t_q} ms"),
        }
    }
}

/// The request of a flow of so many kbit/s: the lowest rate of the option from 1.25 times on, as 320 is for 256.
pub(super) fn request(flow_kbps: f64) -> QuickStartSpec {
    let rate = QsRate::at_least(Rate::kbps(1.25 * flow_kbps)).unwrap_or(QsRate::MAX).rate();
    QuickStartSpec { rate: kbps(rate.as_bps() / 1e3) }
}

/// The parts of a scenario's satellite.
pub(super) fn dama(scenario: &Scenario) -> DamaSpec {
    scenario.satellite.clone().unwrap_or_default().dama(scenario.packet_size.get())
}
