//! A stream to `fairpace receive`, in real time, under a controller of ours or of Python.

use crate::controller::{check, maker};
use crate::error::raise;
use crate::object::{Raised, in_known_thread};
use crate::run::watched_with;
use fairpace_media::{Hint as _, MediaError, PictureWish, SourceSpec};
use fairpace_net::send::{Adaptation, MakeController, SendConfig, SendEnd, SendReport, run};
use fairpace_net::{Clock, Family, Key, NetError, resolve};
use fairpace_units::{RandomStream, RateSpec, parse_duration, parse_rate, parse_size};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn refused(py: Python<'_>, error: &NetError) -> PyErr {
    raise(py, "RunError", &error.to_string(), error.hint().as_deref())
}

/// Why nothing, or no more, was sent.
enum Failed {
    Source(MediaError),
    Net(NetError),
    /// An encoder's rate for a source that is encoded already.
    NoEncoder,
}

/// Sends a stream to a receiver (`fairpace receive`), and says how it went: rates, counts, round trip, reason of the end.
///
/// `source` is `"model"` (frames of the sizes that an encoder would make), `"constant:RATE"`, `"sizes:FILE"`, or an IVF file. `controller` is a
/// name (`"rcs"`), or a class derived from `Controller`, each of whose methods is called in real time. `duration` (`"60 s"`) ends it, as Ctrl-C
/// does. `max_rate` (`"2 Mbit/s"`) bounds data and dummies together (10 Mbit/s if it is not given). With `key_file` (64 hexadecimal digits, nobody else's to read; the receiver has the
/// same) everything is encrypted and both ends are authenticated; without, all is in clear.
///
/// `adaptation` says who makes the encoder's rate fit the controller's: `"encoder"` follows it; under `"buffer"` the encoder keeps `encoder_rate`
/// (1 Mbit/s if it is not given, at most `max_rate`) and up to `buffer` (`"2 MB"`, at most `"16 MiB"`) waits for the controller's rate;
/// under `"unbuffered"` the encoder follows and frames leave as they come.
///
/// The result has `elapsed_s`, `send_rate_bps`, `sent_packets`, `acknowledged_packets`, `lost_packets`, `first_rtt_ms`, `lateness_p99_ms`
/// (how late packets left), `cpu` (share of a core), `adaptation` (`who`, `fullest_bytes`, `longest_wait_ms`,
/// `dropped_bytes`, `left_bytes`: what waited to leave), `end` (`"finished"`, `"interrupted"`, `"the receiver said goodbye"`). Raises `RunError` if
/// nobody answers, or the stream fails.
#[pyfunction]
#[pyo3(
    signature = (source, to, *, controller=None, duration=None, max_rate=None, key_file=None, adaptation="encoder", encoder_rate=None,
        buffer=None),
    text_signature = "(source, to, *, controller=\"auto\", duration=None, max_rate=None, key_file=None, adaptation=\"encoder\", encoder_rate=None, buffer=None)"
)]
#[allow(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
pub(crate) fn send<'py>(
    py: Python<'py>,
    source: &str,
    to: &str,
    controller: Option<Bound<'py, PyAny>>,
    duration: Option<&str>,
    max_rate: Option<&str>,
    key_file: Option<PathBuf>,
    adaptation: &str,
    encoder_rate: Option<&str>,
    buffer: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let peer = resolve(to, Family::Any).map_err(|e| refused(py, &e))?;
    let mut config = SendConfig::new(peer[0]);
    let bad = |name: &str, found: &str, why: &dyn std::fmt::Display| {
        PyValueError::new_err(format!("`{name}` is `{found}`: {why}"))
    };
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Raised::new(&stop);
    match controller {
        None => {}
        Some(given) => match given.extract::<String>() {
            Ok(name) => config.scheme = name,
            Err(_) => {
                check(&given)?;
                let make = maker(Arc::new(given.unbind()), raised.clone(), format!("the stream to {to}"));
                config.custom = Some(MakeController(Arc::new(make)));
            }
        },
    }
    if let Some(text) = duration {
        config.duration = Some(parse_duration(text).map_err(|e| bad("duration", text, &e))?);
    }
    let in_bits = |name: &str, text: &str| match parse_rate(text).map_err(|e| bad(name, text, &e))? {
        RateSpec::Bits(rate) => Ok(rate),
        RateSpec::PacketsPerSecond(_) => Err(bad(name, text, &"write it in bits, as in `2 Mbit/s`")),
    };
    if let Some(text) = max_rate {
        config.max_rate = in_bits("max_rate", text)?;
        config.min_rate = config.min_rate.min(config.max_rate);
    }
    let rate = encoder_rate.map(|text| in_bits("encoder_rate", text)).transpose()?;
    let size = buffer.map(|text| parse_size(text).map_err(|e| bad("buffer", text, &e))).transpose()?;
    config.adaptation = Adaptation::chosen(adaptation, rate, size, config.max_rate)
        .map_err(|wrong| PyValueError::new_err(format!("{wrong}: {}", wrong.hint())))?;
    if let Some(file) = key_file {
        config.key = Some(Key::from_file(&file).map_err(|e| refused(py, &e))?);
    }
    config.check().map_err(|e| refused(py, &e))?;
    if config.custom.is_none() {
        let suits = config.controller().and_then(|made| config.adaptation.suits(&*made, &config.scheme));
        suits.map_err(|e| refused(py, &e))?;
    }
    let spec = SourceSpec::parse(source).map_err(|e| raise(py, "RunError", &e.to_string(), None))?;
    let sent = watched_with(py, None, 1, &stop, Some(&raised), |_| {
        let wish =
            PictureWish { most_rate: Some(config.adaptation.most_rate(config.max_rate)), ..PictureWish::default() };
        let mut source = spec.open(wish, RandomStream::named(1, "send")).map_err(Failed::Source)?;
        if rate.is_some() && !source.format().follows_rate {
            return Err(Failed::NoEncoder);
        }
        in_known_thread(|| run(&config, Clock::start(), &mut *source, &mut (), &stop)).map_err(Failed::Net)
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    let report = sent.map_err(|failed| match failed {
        Failed::Source(error) => raise(py, "RunError", &error.to_string(), error.hint().as_deref()),
        Failed::Net(error) => refused(py, &error),
        Failed::NoEncoder => PyValueError::new_err(format!(
            "`encoder_rate` is of no effect on `{source}`, which is encoded already: leave it out"
        )),
    })?;
    if let SendEnd::Failed(error) = &report.end {
        return Err(refused(py, error));
    }
    told(py, &report)
}

fn told<'py>(py: Python<'py>, report: &SendReport) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let seconds = report.elapsed.as_secs_f64();
    let sent = report.flow.data.sent_bytes.as_f64() * 8.0;
    all.set_item("elapsed_s", seconds)?;
    all.set_item("send_rate_bps", if seconds > 0.0 { Some(sent / seconds) } else { None })?;
    all.set_item("sent_packets", report.flow.data.sent)?;
    all.set_item("acknowledged_packets", report.flow.data.acked)?;
    all.set_item("lost_packets", report.flow.data.lost)?;
    all.set_item("first_rtt_ms", report.validated.map(|(rtt, _)| rtt.as_secs_f64() * 1e3))?;
    all.set_item("lateness_p99_ms", report.pacing.p99.as_secs_f64() * 1e3)?;
    all.set_item("cpu", report.cpu)?;
    let (queue, waited) = (&report.stats.queue, PyDict::new(py));
    waited.set_item("who", report.adaptation.name())?;
    waited.set_item("fullest_bytes", queue.fullest.get())?;
    waited.set_item("longest_wait_ms", queue.longest_wait.as_secs_f64() * 1e3)?;
    waited.set_item("dropped_bytes", queue.dropped.get())?;
    waited.set_item("left_bytes", report.left_behind.get())?;
    all.set_item("adaptation", waited)?;
    all.set_item(
        "end",
        match &report.end {
            SendEnd::Finished => "finished",
            SendEnd::Interrupted => "interrupted",
            SendEnd::PeerBye => "the receiver said goodbye",
            SendEnd::Failed(_) => "failed",
        },
    )?;
    Ok(all)
}
