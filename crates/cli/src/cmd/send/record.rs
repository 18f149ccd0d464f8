//! The numbers of a sender, for people and programs: while it runs, and in the end.

use crate::error::Outcome;
use crate::stats::Stats;
use crate::term::note;
use fairpace_control::feedback::Form;
use fairpace_control::{FlowCounters, KindCounters, QsVerdict};
use fairpace_net::send::{Adaptation, QuickStartReport, SendConfig, SendEnd, SendObserver, SendReport, SendSample};
use fairpace_rtp::{SenderEvent, What};
use fairpace_units::{Duration, Instant, format_duration, format_rate};
use serde_json::{Value, json};

/// One line, renewed every second.
pub(super) struct Live {
    /// The stream's name, where there are several.
    pub(super) name: Option<String>,
    pub(super) shown: bool,
    pub(super) quiet: bool,
    /// There is a key: who answers has it too.
    pub(super) keyed: bool,
    pub(super) next: Instant,
    pub(super) before: Option<(Instant, FlowCounters)>,
    pub(super) stats: Stats,
}

impl Live {
    /// Another session begins, with its clock and its counts at zero.
    pub(super) fn begin_anew(&mut self) {
        (self.next, self.before) = (Instant::ZERO, None);
        self.stats.begin_anew();
    }

    pub(super) fn note(&self, text: &str) {
        let clear = if self.shown { "\r\x1b[K" } else { "" };
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        note(self.quiet, &format!("{clear}{name}{text}"));
    }
}

impl SendObserver for Live {
    fn on_event(&mut self, _now: Instant, event: &SenderEvent) {
        let text = match event {
            SenderEvent::PeerValidated { srtt, .. } => {
                let with = if self.keyed { " with the key" } else { "" };
                format!("the receiver answers{with}; round trip {}", format_duration(*srtt))
            }
            SenderEvent::DscpSeen { class, sent, arrived } if sent != arrived => {
                format!(
                    "note: the network changes the DSCP of {class:?} packets from {} to {}",
                    sent.get(),
                    arrived.get()
                )
            }
            SenderEvent::ReceiverBusy => {
                "note: the receiver serves another sender; waiting for that one to end".to_owned()
            }
            SenderEvent::ReceiverChanged => {
                "note: the receiver was started again; going on with the new one".to_owned()
            }
            SenderEvent::Awake => "note: this machine slept; the receiver has answered again".to_owned(),
            SenderEvent::QuickStart(verdict) => match verdict {
                QsVerdict::Approved(rate) => format!("Quick-Start: the routers approve {}", format_rate(rate.rate())),
                verdict => format!("note: no Quick-Start ({}): {}", verdict.code(), verdict.name()),
            },
            SenderEvent::PacketSize(size) => {
                format!("note: full packets have {size} from now on, as the path carries them")
            }
            _ => return,
        };
        self.note(&text);
    }

    fn on_sample(&mut self, s: &SendSample) {
        self.stats.sample(s.at, || stats_line(self.name.as_deref(), s));
        if !self.shown || s.at < self.next {
            return;
        }
        self.next = s.at + core::time::Duration::from_secs(1);
        let (then, flow) = self.before.replace((s.at, s.flow)).unwrap_or_default();
        let span = s.at.since(then).as_secs_f64().max(1e-3);
        let kbps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8e-3 / span;
        eprint!(
            "\r{:6.0} s  {:<9} allowed {}, video {:.0} kbit/s, dummies {:.0} kbit/s, lost {} packets, RTT {}\x1b[K",
            s.at.as_secs_f64(),
            s.state,
            format_rate(s.rate),
            kbps(s.flow.data.sent_bytes.get(), flow.data.sent_bytes.get()),
            kbps(s.flow.dummy.sent_bytes.get(), flow.dummy.sent_bytes.get()),
            s.flow.data.lost,
            s.srtt.map_or_else(|| "–".to_owned(), format_duration)
        );
    }
}

/// A line of `--stats`.
fn stats_line(name: Option<&str>, s: &SendSample) -> Value {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let mut line = json!({
        "at_s": s.at.as_secs_f64(),
        "state": s.state,
        "reason": s.reason,
        "rate_bps": s.rate.as_bps(),
        "media_rate_bps": s.media_rate.as_bps(),
        "fec_overhead": s.protection.plan.map_or(0.0, |plan| plan.overhead.get()),
        "fec_reason": s.protection.reason.as_str(),
        "srtt_ms": s.srtt.map(ms),
        "rto_ms": ms(s.rto),
        "queue_frames": s.queue.0,
        "queue_bytes": s.queue.1.get(),
        "queue_wait_ms": ms(s.queue_wait),
        "adaptation": s.adaptation.name(),
        "fullest_queue_bytes": s.queue_stats.fullest.get(),
        "longest_wait_ms": ms(s.queue_stats.longest_wait),
        "dropped_bytes": s.queue_stats.dropped.get(),
        "sent_packets": s.flow.data.sent,
        "sent_bytes": s.flow.data.sent_bytes.get(),
        "acknowledged_packets": s.flow.data.acked,
        "lost_packets": s.flow.data.lost,
        "dummy_packets": s.flow.dummy.sent,
    });
    if let (Some(name), Some(fields)) = (name, line.as_object_mut()) {
        fields.insert("stream".to_owned(), name.into());
    }
    line
}

/// The record in words.
pub(super) fn summary(out: &mut (impl std::io::Write + ?Sized), r: &SendReport) -> Outcome {
    let seconds = r.elapsed.as_secs_f64().max(1e-9);
    let fate = match r.feedback_form {
        Form::RtpTfrc => {
            let p = r.p.map_or_else(|| "nothing".to_owned(), |p| format!("a loss event rate of {p:.4}"));
            format!("the receiver measured, last {p}")
        }
        Form::Reports => format!("{} lost as reports say", r.flow.data.lost),
        _ => format!("{} acknowledged, {} lost", r.flow.data.acked, r.flow.data.lost),
    };
    writeln!(
        out,
        "sent {} video packets in {} ({:.0} kbit/s), {} dummies; {fate}",
        r.flow.data.sent,
        format_duration(r.elapsed),
        r.flow.data.sent_bytes.as_f64() * 8e-3 / seconds,
        r.flow.dummy.sent,
    )?;
    if let Some(tcp) = &r.tcp {
        writeln!(
            out,
            "changed between TCP ({}) and UDP {} times; {} segments sent again, window smaller after {} of {} idle periods",
            tcp.algorithm, r.switches, tcp.retransmitted, tcp.idle.shrunk, tcp.idle.periods
        )?;
    }
    let queue = &r.stats.queue;
    writeln!(
        out,
        "adaptation {}: {}; at most {} waited, {} the longest, {} were dropped",
        r.adaptation.name(),
        r.adaptation.about(),
        queue.fullest,
        format_duration(queue.longest_wait),
        queue.dropped,
    )?;
    Ok(writeln!(
        out,
        "frames: {} pictures taken, {} of them not encoded, {} dropped before sending; packets left late by p50 {}, p99 {}",
        r.captures,
        r.captures.saturating_sub(r.stats.frames),
        r.stats.frames_dropped,
        format_duration(r.pacing.p50),
        format_duration(r.pacing.p99)
    )?)
}

/// The fate of Quick-Start requests; `options` is the number of packets that left with one.
fn quick_start(q: &QuickStartReport, options: u64) -> Value {
    let (answer, after) = (q.first.map(|(_, verdict)| verdict), q.first.map(|(after, _)| after));
    json!({
        "answer": answer.map(QsVerdict::code),
        "reason": answer.map(QsVerdict::name),
        "approved_bps": answer.map(|verdict| verdict.rate().as_bps()),
        "answered_after_ms": after.map(|after| after.as_secs_f64() * 1e3),
        "packets_with_option": options,
        "asked": q.counters.asked, "approved": q.counters.approved, "denied": q.counters.denied,
        "unanswered": q.counters.unanswered, "dropped": q.counters.dropped, "stripped": q.counters.stripped,
        "unknown": q.counters.unknown, "bad_ttl": q.counters.bad_ttl, "bad_rate": q.counters.bad_rate,
        "bad_nonce": q.counters.bad_nonce, "reports": q.counters.reports,
    })
}

/// The architecture, with its buffer's use.
fn adaptation(r: &SendReport) -> Value {
    let (queue, size) = (
        &r.stats.queue,
        match r.adaptation {
            Adaptation::Buffer { rate, size } => Some((rate, size)),
            Adaptation::Encoder | Adaptation::Unbuffered => None,
        },
    );
    json!({
        "who": r.adaptation.name(),
        "encoder_rate_bps": size.map(|(rate, _)| rate.as_bps()),
        "buffer_bytes": size.map(|(_, size)| size.get()),
        "fullest_bytes": queue.fullest.get(),
        "longest_wait_ms": queue.longest_wait.as_secs_f64() * 1e3,
        "dropped_bytes": queue.dropped.get(),
        "left_bytes": r.left_behind.get(),
    })
}

/// The record as JSON.
pub(super) fn json(config: &SendConfig, r: &SendReport, restarts: u64) -> Value {
    // Where the receiver measures, nobody knows of a single packet.
    let known = |count: u64| (r.feedback_form != Form::RtpTfrc).then_some(count);
    let kind = |k: &KindCounters| json!({ "sent_packets": k.sent, "sent_bytes": k.sent_bytes.get(), "acknowledged_packets": known(k.acked), "lost_packets": known(k.lost) });
    let ended = match &r.end {
        SendEnd::Finished => "finished".to_owned(),
        SendEnd::Interrupted => "interrupted".to_owned(),
        SendEnd::PeerBye => "peer said goodbye".to_owned(),
        SendEnd::Failed(e) => e.to_string(),
    };
    let sent: serde_json::Map<String, Value> =
        What::ALL.iter().map(|w| (w.as_str().to_owned(), json!(r.stats.sent.of(*w).packets))).collect();
    json!({
        "peer": r.peer.to_string(),
        "controller": config.scheme,
        "elapsed_s": r.elapsed.as_secs_f64(),
        "ended": ended,
        "restarts": restarts,
        "first_rtt_ms": r.validated.map(|(rtt, _)| rtt.as_secs_f64() * 1e3),
        "data": kind(&r.flow.data),
        "dummies": kind(&r.flow.dummy),
        "loss_event_rate": r.p,
        "rwnd_packets": r.rwnd,
        "timeouts": r.flow.timeouts,
        "switches": r.switches,
        "tcp": r.tcp.as_ref().map(|tcp| json!({
            "algorithm": tcp.algorithm,
            "acknowledged_bytes": tcp.acked.get(),
            "retransmitted_segments": tcp.retransmitted,
            "window_reductions": tcp.reductions,
            "slow_start_after_idle": tcp.slow_start_after_idle,
            "idle_periods": tcp.idle.periods,
            "idle_periods_that_shrank_the_window": tcp.idle.shrunk,
        })),
        "feedback": { "form": r.feedback_form.name(), "packets": r.stats.feedback.packets, "bytes": r.stats.feedback.bytes },
        "quick_start": r.quick_start.map(|q| quick_start(&q, r.socket.options)),
        "adaptation": adaptation(r),
        "pictures": r.captures,
        "frames": r.stats.frames,
        "frames_dropped": r.stats.frames_dropped,
        "datagrams": sent,
        "not_sent_packets": r.not_sent,
        "encrypted": config.key.is_some(),
        "unsealed_datagrams": r.unsealed,
        "packet_size_bytes": r.packet_size.get(),
        "pacing_lateness_us": { "p50": r.pacing.p50.as_secs_f64() * 1e6, "p99": r.pacing.p99.as_secs_f64() * 1e6 },
        "cpu": r.cpu,
    })
}
