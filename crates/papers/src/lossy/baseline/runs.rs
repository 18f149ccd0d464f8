//! The runs of one TCP, and how far an equation is off what TCP sent in them.

use crate::builtin::{kbps, time_ms, with};
use crate::figure::enough;
use crate::lossy::setup::set_packet_size;
use crate::reading::Chosen;
use crate::{Bench, Experiment};
use fairpace_control::{Equation, TcpPath};
use fairpace_lab::RunError;
use fairpace_lab::stats::{Estimate, mean};
use fairpace_lab::study::{Case, Job, Measure, Measurements, Precision};
use fairpace_scenario::{AccessSpec, Capacity, Count, LossSpec, RawScenario, Record, Scenario};
use fairpace_units::{Bytes, Duration, Probability};
use serde::{Deserialize, Serialize};

/// Packets in bytes.
pub(super) const SIZES: [u64; 2] = [512, 1_024];
/// Capacities in kbit/s.
pub(super) const RATES: [f64; 4] = [5.0, 10.0, 15.0, 20.0];
/// One-way delays in ms.
pub(super) const DELAYS: [f64; 4] = [10.0, 20.0, 30.0, 40.0];
/// Errors in percent.
pub(super) const ERRORS: [f64; 16] =
    [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0, 32.5, 35.0, 37.5, 40.0];

/// One set of runs: the variant of TCP, and the place of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// Every packet is acknowledged; errors after the transmitter.
    EveryPacket,
    /// Every second packet is acknowledged.
    Delayed,
    /// Every packet is acknowledged; errors before the queue.
    ErrorBefore,
}

impl Runs {
    pub(super) fn key(self) -> &'static str {
        match self {
            Runs::EveryPacket => "tcp-b1",
            Runs::Delayed => "tcp-b2",
            Runs::ErrorBefore => "tcp-b1-before",
        }
    }

    /// An ACK that waits for a second packet waits five quarters of a packet time of the channel: at
    /// these rates the usual 200 ms would hardly ever see one.
    pub(super) fn put_into(self, s: &mut RawScenario, place: &Combination) {
        let p = LossSpec::random(place.error / 100.0);
        for flow in &mut s.flows {
            if self == Runs::Delayed
                && let Some(tcp) = &mut flow.tcp
            {
                tcp.delayed_ack = Some(time_ms((1.25 * place.packet_time_ms()).ceil()));
            }
            if self == Runs::ErrorBefore {
                flow.access = Some(AccessSpec { loss: p.clone(), ..AccessSpec::default() });
            }
        }
        s.path.loss = if self == Runs::ErrorBefore { LossSpec::default() } else { p };
    }
}

/// A combination, and an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination {
    /// Percent.
    pub(super) error: f64,
    pub(super) size: Bytes,
    pub(super) kbps: f64,
    /// One way.
    pub(super) delay_ms: f64,
}

impl Combination {
    pub(super) fn packet_time_ms(&self) -> f64 {
        self.size.as_f64() * 8.0 / self.kbps
    }

    /// As the coordinates of a case.
    pub(super) fn x(&self) -> Vec<f64> {
        vec![self.error, self.size.as_f64(), self.kbps, self.delay_ms]
    }

    /// The error and the packet of a case: all that the equations are told.
    pub(super) fn of(x: &[f64]) -> (f64, Bytes) {
        (x.first().copied().unwrap_or(0.0), Bytes::new(x.get(1).copied().unwrap_or(0.0) as u64))
    }
}

/// The measurements of a run's TCP.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Observed {
    /// Everything sent, retransmissions included: what the equations are about.
    pub(super) sent_bps: f64,
    /// Cuts of the window per packet sent: each fast retransmit, and each timeout.
    pub(super) cuts: f64,
    /// Loss indications per packet sent: a sequence of timeouts is one.
    pub(super) indications: f64,
    /// Mean smoothed RTT.
    pub(super) rtt_ms: f64,
    /// Mean timeout without back-off.
    pub(super) rto_ms: f64,
    /// Packets received per ACK sent.
    pub(super) b: f64,
}

pub(super) const MEASURE: Measure<Option<Observed>> = Measure { name: "lossy one TCP", of: observe };

pub(super) fn observe(job: &Job<'_>) -> Result<Option<Observed>, RunError> {
    let run = job.run(Record::default())?.summary;
    let seconds = run.duration_s - run.warmup_s;
    let of = |flow: &fairpace_lab::metrics::FlowSummary| {
        let tcp = flow.tcp.as_ref()?;
        Some(Observed {
            sent_bps: flow.sent_packets as f64 * job.scenario.packet_size.get().as_f64() * 8.0 / seconds,
            cuts: tcp.cuts as f64 / flow.sent_packets as f64,
            indications: tcp.loss_indications as f64 / flow.sent_packets as f64,
            rtt_ms: tcp.mean_srtt_ms?,
            rto_ms: tcp.mean_rto_ms?,
            b: flow.throughput_pps / (flow.feedback_bps / ACK_BITS),
        })
    };
    Ok(run.flows.first().and_then(of))
}

/// Bits of an ACK: `ack_size` of the scenario.
pub(super) const ACK_BITS: f64 = 320.0;

/// The number that the equations get as p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum P {
    /// Cuts of the window per packet sent.
    Cuts,
    /// Loss indications per packet sent.
    Indications,
    /// The injected error.
    Injected,
}

/// The equations that get a b of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum B {
    /// b = 2 in the complex equation, in which alone the paper prints a b.
    Complex,
    /// b = 1 in all of them.
    One,
    /// b = 2 in all of them.
    Two,
}

/// The runs, and what the equations are fed with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) runs: Runs,
    pub(super) p: P,
    pub(super) b: B,
}

impl Reading {
    /// As it was chosen.
    pub(super) fn of(chosen: &Chosen) -> Reading {
        Reading {
            runs: match (chosen.has("delayed-acks"), chosen.has("error-before")) {
                (true, _) => Runs::Delayed,
                (_, true) => Runs::ErrorBefore,
                _ => Runs::EveryPacket,
            },
            p: if chosen.has("p-indications") {
                P::Indications
            } else if chosen.has("p-injected") {
                P::Injected
            } else {
                P::Cuts
            },
            b: if chosen.has("b-1") {
                B::One
            } else if chosen.has("b-2") {
                B::Two
            } else {
                B::Complex
            },
        }
    }

    /// p of a run at an injected error in percent.
    pub(super) fn p_of(&self, o: &Observed, error: f64) -> f64 {
        match self.p {
            P::Cuts => o.cuts,
            P::Indications => o.indications,
            P::Injected => error / 100.0,
        }
    }

    /// b in an equation.
    fn b_in(&self, equation: Equation) -> f64 {
        match (self.b, equation) {
            (B::Complex, Equation::Complex) | (B::Two, _) => 2.0,
            (B::Complex | B::One, _) => 1.0,
        }
    }

    /// The equation's rate, in bit/s.
    pub(super) fn estimate(&self, equation: Equation, o: &Observed, x: &[f64]) -> Option<f64> {
        let (error, size) = Combination::of(x);
        let p = self.p_of(o, error);
        let [rtt, rto] = [o.rtt_ms, o.rto_ms].map(|ms| Duration::from_secs_f64(ms / 1e3));
        let path = TcpPath::new(size, rtt, rto.max(rtt), self.b_in(equation)).ok()?;
        let rate = equation.rate(&path, Probability::new(p).ok()?).as_bps();
        (p > 0.0).then_some(rate)
    }

    /// 100 (estimated / measured - 1).
    pub(super) fn deviation(&self, equation: Equation, o: &Observed, x: &[f64]) -> Option<f64> {
        Some(100.0 * (self.estimate(equation, o, x)? / o.sent_bps - 1.0))
    }
}

/// Every run.
pub(super) struct Data(pub(super) Measurements<Option<Observed>>);

impl Data {
    pub(super) fn measure(
        e: &Experiment,
        base: &Scenario,
        bench: &mut Bench<'_>,
        runs: Runs,
        errors: &[f64],
    ) -> Result<Data, RunError> {
        let mut cases = Vec::new();
        {
            for &error in errors {
                let mut combination = 0;
                for size in SIZES.map(Bytes::new) {
                    for kbps_ in RATES {
                        for delay_ms in DELAYS {
                            let place = Combination { error, size, kbps: kbps_, delay_ms };
                            let scenario = with(base, |s| {
                                s.seed = Count::new(1 + 100 * combination);
                                set_packet_size(s, size.get());
                                s.path.rate = Some(Capacity::Fixed(kbps(kbps_)));
                                s.path.rtt = time_ms(2.0 * delay_ms);
                                runs.put_into(s, &place);
                            });
                            cases.push(Case { x: place.x(), ..Case::new(runs.key(), error, scenario) });
                            combination += 1;
                        }
                    }
                }
            }
        }
        // The mean over 32 combinations is known well enough with five seeds of each.
        Ok(Data(enough(e, bench, MEASURE, cases, Precision::of(&[]))?))
    }

    /// One number per seed: the mean over the combinations.
    pub(super) fn per_seed(
        &self,
        runs: Runs,
        error: f64,
        number: impl Fn(&Observed, &[f64]) -> Option<f64>,
    ) -> Vec<f64> {
        let here = || self.0.of(runs.key()).filter(move |cell| cell.at() == error);
        let seeds = here().map(|cell| cell.runs.len()).min().unwrap_or(0);
        let of_seed = |i: usize| -> Option<f64> {
            let of = |run: &Option<Observed>, x: &[f64]| number(run.as_ref()?, x);
            let all: Option<Vec<f64>> = here().map(|cell| of(cell.runs.get(i)?, &cell.x)).collect();
            all.map(|x| mean(&x))
        };
        (0..seeds).filter_map(of_seed).collect()
    }

    pub(super) fn estimate(
        &self,
        runs: Runs,
        error: f64,
        number: impl Fn(&Observed, &[f64]) -> Option<f64>,
    ) -> Option<Estimate> {
        Estimate::of(&self.per_seed(runs, error, number))
    }

    pub(super) fn deviation(&self, reading: &Reading, equation: Equation, error: f64) -> Option<Estimate> {
        self.estimate(reading.runs, error, |o, x| reading.deviation(equation, o, x))
    }

    /// |deviation|, mean over a range of errors as well.
    pub(super) fn distance(&self, reading: &Reading, equation: Equation, errors: &[f64]) -> Vec<f64> {
        let at: Vec<Vec<f64>> = errors
            .iter()
            .map(|&error| self.per_seed(reading.runs, error, |o, x| reading.deviation(equation, o, x).map(f64::abs)))
            .collect();
        let seeds = at.iter().map(Vec::len).min().unwrap_or(0);
        (0..seeds).map(|i| mean(&at.iter().map(|values| values[i]).collect::<Vec<_>>())).collect()
    }

    /// Ratio of two distances, seed by seed.
    pub(super) fn ratio(&self, a: &[f64], b: &[f64]) -> Option<Estimate> {
        Estimate::of(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>())
    }

    pub(super) fn errors(&self) -> Vec<f64> {
        let mut errors: Vec<f64> = self.0.cells.iter().map(|c| c.at()).collect();
        errors.sort_by(f64::total_cmp);
        errors.dedup();
        errors
    }
}

pub(super) fn within(errors: &[f64], low: f64, high: f64) -> Vec<f64> {
    errors.iter().copied().filter(|e| (low..=high).contains(e)).collect()
}

/// Where |deviation| is least.
pub(super) fn best(data: &Data, reading: &Reading, equation: Equation) -> Option<f64> {
    let at = |&error: &f64| Some((error, mean(&nonempty(data.distance(reading, equation, &[error]))?)));
    data.errors().iter().filter_map(at).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(error, _)| error)
}

pub(super) fn nonempty(values: Vec<f64>) -> Option<Vec<f64>> {
    (!values.is_empty()).then_some(values)
}
