//! The checks of a flow, each refusal with its field.

use super::{Checked, Checker};
use crate::controllers::{self, Family};
use crate::tcp::LEAST_SEGMENT;
use crate::{
    AccessSpec, Capacity, FlowSpec, Hop, HopKind, RawScenario, ScenarioError, Size, SourceKind, Speed, Terminals, Time,
};
use fairpace_control::feedback::Form;
use fairpace_units::Bytes;

/// The fastest that a flow may be set to send: a run of a minute then takes minutes, not for ever.
const MAX_PACKETS_PER_SECOND: f64 = 1e7;

impl Checker<'_> {
    /// The user of a flow, and what it means only with one.
    fn user(&self, s: &RawScenario, flow: &FlowSpec, field: &dyn Fn(&str) -> String) -> Checked {
        let on_way = s.hop.is_empty() || s.passes(flow, HopKind::Wireless);
        if s.wireless.is_some() && !on_way && flow.user.is_some() {
            let remedy = "let the flow `leave` behind the wireless hop, or leave it out";
            return self.conflict(field("user"), "has no effect: no wireless hop is on the flow's way", remedy);
        }
        match (&s.wireless, flow.user) {
            (Some(_), None) if on_way && !s.hop.is_empty() => {
                return self
                    .missing(field("user"), "the flow passes a wireless hop: say whose downlink, as in `user = 0`");
            }
            (None, Some(_)) => {
                let remedy = "write `[wireless]`, or leave it out";
                return self.conflict(field("user"), "has no effect without a wireless link", remedy);
            }
            (Some(w), Some(user)) if user.get() >= w.user_count() => {
                let n = w.user_count();
                let wrong = format!("names a user that there is not: there are {n}, numbered from 0");
                let allowed = format!("at most {}, or more `wireless.users`", n - 1);
                return self.bad(field("user"), user.get().to_string(), wrong, allowed);
            }
            _ => {}
        }
        let planned = s.wireless.as_ref().is_some_and(|w| w.plan.is_some()) && flow.user.is_some();
        if flow.share.is_some() && !planned {
            let remedy = "give the flow a `user` and `[wireless]` a `plan`, or leave it out";
            return self.conflict(field("share"), "has no effect where no base station plans", remedy);
        }
        Ok(())
    }

    pub(super) fn flow(&self, s: &RawScenario, index: usize) -> Checked {
        let flow = &s.flows[index];
        let field = |name: &str| format!("flows[{index}].{name}");
        if flow.controller.is_empty() {
            let names = controllers::names().join("`, `");
            return self.missing(field("controller"), format!("one of `{names}`"));
        }
        let Some(family) = controllers::family(&flow.controller) else {
            let field = field("controller");
            return Err(self.at(&field, controllers::unknown(&field, &flow.controller)));
        };
        for (name, text) in [("name", &flow.name), ("group", &flow.group)] {
            if text.chars().count() > 64 || text.chars().any(|c| c.is_control() || matches!(c, ',' | '"')) {
                let wrong = "is not a name";
                return self.bad(
                    field(name),
                    text.clone(),
                    wrong,
                    "at most 64 characters, no comma, quote or control character",
                );
            }
        }
        if s.flows[..index].iter().any(|f| f.name == flow.name) {
            return self.bad(field("name"), flow.name.clone(), "is the name of a flow before it", "a name of its own");
        }
        self.applicable(flow, family, &field)?;
        self.way(s, flow, &field)?;
        self.terminals(s, flow, &field)?;
        self.user(s, flow, &field)?;
        self.arrivals(flow, &field)?;
        self.flow_times(s, flow, &field)?;
        let size = flow.packet_size.as_ref().map_or(self.packet_size, Size::get);
        for (name, rate) in [
            ("rate", &flow.rate),
            ("max_rate", &flow.max_rate),
            ("start_rate", &flow.start_rate),
            ("min_rate", &flow.min_rate),
        ] {
            if let Some(rate) = rate {
                self.sending_rate(&field(name), rate, size)?;
            }
        }
        let rate_of = |r: &Option<Speed>| r.as_ref().map(|r| r.get().with_packets_of(size));
        if let (Some(min), Some(max)) = (rate_of(&flow.min_rate), rate_of(&flow.max_rate))
            && min > max
        {
            let text = flow.min_rate.as_ref().map_or("", |r| r.text());
            return self.bad(field("min_rate"), text, "is above `max_rate`", "at most `max_rate`");
        }
        for (name, access) in [("access", &flow.access), ("far_access", &flow.far_access)] {
            if let Some(access) = access {
                self.access(access, &field(name))?;
            }
        }
        let over_tcp = family == Family::Tcp || controllers::has_tcp(&flow.controller);
        if over_tcp {
            self.tcp_takes_time(s, flow)?;
        }
        if family == Family::Media {
            let mut controller =
                controllers::build(s, flow).map_err(|e| self.parameter_error(&field("parameters"), &e))?;
            let needed = controller.feedback_form();
            let asked = flow.feedback.as_ref().unwrap_or(&s.feedback).get().form;
            let key = if flow.feedback.is_some() { field("feedback") } else { "feedback".to_owned() };
            let planned = s.wireless.as_ref().is_some_and(|w| w.plan.is_some()) && flow.user.is_some();
            if let Some(form) = asked.filter(|form| planned && needed == Form::SackVector && *form != needed) {
                let wrong =
                    format!("is `{form}`, and the base station of `wireless.plan` writes windows into sack vectors");
                return self.conflict(key, wrong, "leave the form out, or `plan`");
            }
            if let Some(form) = asked.filter(|f| !f.serves(needed)) {
                let (name, told) = (&flow.controller, needed.about());
                let wrong =
                    format!("is `{form}`, and controller `{name}` of `{}` is told of packets by {told}", flow.name);
                return self.conflict(key, wrong, "leave the form out, or choose another controller");
            }
            if flow.feedback.is_some() && needed == Form::RtpTfrc {
                let wrong = "has no effect where the receiver measures: it reports once per round trip";
                return self.conflict(field("feedback"), wrong, "leave it out, or let the sender measure");
            }
            if flow.feedback.is_some() && needed == Form::Reports {
                let wrong = format!("has no effect on controller `{}`, which goes by RTCP reports", flow.controller);
                return self.conflict(field("feedback"), wrong, "set its parameter `t_rtcp`, or leave it out");
            }
            if flow.quick_start.is_some() && !controllers::uses_quick_start(s, flow, &mut *controller) {
                let wrong = format!("has no effect on controller `{}`, which does not ask for a rate", flow.controller);
                return self.conflict(field("quick_start"), wrong, "write `tfrc` or `tfrc-sp`, or leave it out");
            }
        }
        Ok(())
    }

    /// A rate at which something is sent, in packets of `size`.
    fn sending_rate(&self, field: &str, rate: &Speed, size: Bytes) -> Checked {
        if rate.get().with_packets_of(size).as_packets_per_second(size) > MAX_PACKETS_PER_SECOND {
            let wrong = format!("is more than can be simulated with packets of {} B", size.get());
            return self.bad(field, rate.text(), wrong, "at most ten million packets/s (10000000 pkt/s)");
        }
        Ok(())
    }

    /// TCP sends as its ACKs come: over a path that takes no time at all, without end in one moment.
    fn tcp_takes_time(&self, s: &RawScenario, flow: &FlowSpec) -> Checked {
        let instant =
            |rate: Option<&Capacity>, rtt: &Time| matches!(rate, Some(Capacity::Unlimited)) && rtt.get().is_zero();
        let hops = s.hops();
        let mut way = s.way(flow).into_iter();
        let takes_none = |i: usize| match hops.get(i) {
            Some((_, Hop::Link(p))) => {
                instant(p.rate.as_ref(), &p.rtt) && matches!(p.reverse.rate, Capacity::Unlimited)
            }
            _ => false,
        };
        let Some(first) = way.next() else { return Ok(()) };
        let path = takes_none(first) && way.all(takes_none);
        if let Some((_, Hop::Link(link))) = hops.get(first)
            && path
            && [&flow.access, &flow.far_access].into_iter().flatten().all(|a| instant(Some(&a.rate), &a.rtt))
        {
            let wrong = format!("makes a path without rate limit and delay, over which `{}` never ends", flow.name);
            let at = if s.hop.is_empty() { "path.rtt".to_owned() } else { format!("hop[{first}].link.rtt") };
            return self.bad(at, link.rtt.text(), wrong, "above 0 s, or a `rate` that is not `unlimited`");
        }
        Ok(())
    }

    /// Fields that mean something only with some controllers.
    fn applicable(&self, flow: &FlowSpec, family: Family, field: &dyn Fn(&str) -> String) -> Checked {
        let needs = |name: &str, given: bool, families: &[Family], of: &str| {
            if given && !families.contains(&family) {
                let wrong = format!("has no effect on controller `{}`", flow.controller);
                return self.conflict(field(name), wrong, format!("it belongs to {of}; leave it out"));
            }
            Ok(())
        };
        let (media, tcp, constant) = (Family::Media, Family::Tcp, Family::Constant);
        needs("parameters", !flow.parameters.is_empty(), &[media], "media controllers")?;
        needs("rate", flow.rate.is_some(), &[constant], "`constant`")?;
        needs("transfer", flow.transfer.is_some(), &[tcp], "`tcp-` controllers")?;
        needs("on_off", flow.on_off.is_some(), &[tcp, constant], "`constant` and `tcp-` controllers")?;
        needs("source", flow.source.is_some(), &[media], "media controllers")?;
        needs("quick_start", flow.quick_start.is_some(), &[media, constant], "media controllers and `constant`")?;
        needs("send_buffer", flow.send_buffer.is_some(), &[media], "media controllers")?;
        needs("tolerable_delay", flow.tolerable_delay.is_some(), &[media], "media controllers")?;
        needs("feedback", flow.feedback.is_some(), &[media], "media controllers")?;
        needs("initial_rtt", flow.initial_rtt.is_some(), &[media], "media controllers")?;
        needs("max_rate", flow.max_rate.is_some(), &[media], "media controllers")?;
        needs("min_rate", flow.min_rate.is_some(), &[media], "media controllers")?;
        needs("start_rate", flow.start_rate.is_some(), &[media], "media controllers")?;
        self.tcp(flow, family, field)?;
        let low = flow.class == crate::Priority::Low;
        needs("class", low, &[media, constant], "media controllers and `constant`")?;
        if family == constant && flow.rate.is_none() {
            return self.missing(field("rate"), "`constant` needs it, as in `rate = \"100 pkt/s\"`");
        }
        if flow.on_off.is_some() && flow.transfer.is_some() {
            return self.conflict(field("transfer"), "stands beside `on_off`", "keep one of them");
        }
        if let Some(source) = &flow.source {
            match (source.kind, &source.rate) {
                (SourceKind::Saturated | SourceKind::Adus, Some(_)) => {
                    return self.conflict(field("source.rate"), "has no effect on a saturated source", "leave it out");
                }
                (SourceKind::Constant, None) => {
                    return self
                        .missing(field("source.rate"), "a constant source needs it, as in `rate = \"1 Mbit/s\"`");
                }
                _ => {}
            }
            match (source.kind, source.packets) {
                (SourceKind::Adus, None) => {
                    return self.missing(field("source.packets"), "data units need it, as in `packets = 10`");
                }
                (SourceKind::Adus, Some(_)) | (_, None) => {}
                (_, Some(_)) => {
                    let wrong = "has no effect on a source without data units of one size";
                    return self.conflict(field("source.packets"), wrong, "write `kind = \"adus\"`, or leave it out");
                }
            }
            if let Some(rate) = &source.rate {
                let size = flow.packet_size.as_ref().map_or(self.packet_size, Size::get);
                self.sending_rate(&field("source.rate"), rate, size)?;
            }
        }
        if flow.source.as_ref().is_none_or(|s| matches!(s.kind, SourceKind::Saturated | SourceKind::Adus)) {
            for (name, given) in
                [("send_buffer", flow.send_buffer.is_some()), ("tolerable_delay", flow.tolerable_delay.is_some())]
            {
                if given {
                    let wrong = "has no effect on a saturated source, which makes a packet when one may be sent";
                    return self.conflict(field(name), wrong, "give the flow a `source` with a rate, or leave it out");
                }
            }
        }
        Ok(())
    }

    /// TCP's parameters, and what of them belongs to a flow's TCP half only.
    fn tcp(&self, flow: &FlowSpec, family: Family, field: &dyn Fn(&str) -> String) -> Checked {
        let Some(tcp) = &flow.tcp else { return Ok(()) };
        let is_tcp = family == Family::Tcp;
        if !is_tcp && !controllers::has_tcp(&flow.controller) {
            let wrong = format!("has no effect on controller `{}`", flow.controller);
            return self.conflict(field("tcp"), wrong, "it belongs to `tcp-` controllers and `tpba`; leave it out");
        }
        for (name, given, instead) in [
            ("tcp.variant", tcp.variant.is_some(), "the controller's name says it, as in `tcp-sack`"),
            ("tcp.segment_size", tcp.segment_size.is_some(), "`packet_size` says it"),
        ] {
            if is_tcp && given {
                let wrong = format!("has no effect on controller `{}`", flow.controller);
                return self.conflict(field(name), wrong, format!("{instead}; leave it out"));
            }
        }
        if !is_tcp && tcp.handshake.is_some() {
            let wrong =
                format!("has no effect on controller `{}`, whose connection is there before it sends", flow.controller);
            return self.conflict(field("tcp.handshake"), wrong, "leave it out");
        }
        if let Some(size) = &tcp.segment_size {
            let least = LEAST_SEGMENT;
            let packet = flow.packet_size.as_ref().map_or(self.packet_size, Size::get);
            if packet < least {
                let wrong =
                    format!("shares segments among packets of {packet}, which have no room for headers of 40 B");
                return self.bad(field("tcp.segment_size"), size.text(), wrong, "a `packet_size` of at least 41 B");
            }
        }
        Ok(())
    }

    /// Where a flow enters and leaves the satellite.
    fn terminals(&self, s: &RawScenario, flow: &FlowSpec, field: &dyn Fn(&str) -> String) -> Checked {
        let Some(satellite) = &s.satellite else {
            if flow.terminals.is_some() {
                let remedy = "write `[satellite]` in place of `[path]`, or leave it out";
                return self.conflict(field("terminals"), "has no effect without a satellite", remedy);
            }
            return Ok(());
        };
        if !s.passes(flow, HopKind::Satellite) {
            if flow.terminals.is_some() {
                let remedy = "let the flow pass the satellite's hop, or leave it out";
                return self.conflict(field("terminals"), "has no effect: no satellite is on the flow's way", remedy);
            }
            return Ok(());
        }
        let n = satellite.terminals.get();
        let Some(terminals) = flow.terminals else {
            let allowed = "say where data enters and leaves, as in `terminals = [1, 2]`, or `\"random\"`";
            return self.missing(field("terminals"), allowed);
        };
        if n == 1 {
            let wrong = "is the only terminal, and a flow goes from one to another";
            return self.bad("satellite.terminals", "1", wrong, "at least 2");
        }
        let Terminals::Fixed([from, to]) = terminals else { return Ok(()) };
        let found = format!("[{from}, {to}]");
        if from.max(to) >= n {
            let wrong = format!("names a terminal that there is not: there are {n}, numbered from 0");
            return self.bad(field("terminals"), found, wrong, format!("from 0 to {}", n - 1));
        }
        if from == to {
            return self.bad(field("terminals"), found, "is one terminal twice", "two different terminals");
        }
        Ok(())
    }

    fn arrivals(&self, flow: &FlowSpec, field: &dyn Fn(&str) -> String) -> Checked {
        let Some(arrivals) = &flow.arrivals else { return Ok(()) };
        for (name, given) in [
            ("start_spread", !flow.start_spread.get().is_zero()),
            ("stop", flow.stop.is_some()),
            ("on_off", flow.on_off.is_some()),
            ("transfer", flow.transfer.is_some()),
        ] {
            if given {
                let wrong = "stands beside `arrivals`, which says when flows start and stop";
                return self.conflict(field(name), wrong, "keep one of them");
            }
        }
        for (name, time) in [("interval", &arrivals.interval), ("length", &arrivals.length)] {
            let field = field(&format!("arrivals.{name}"));
            if time.is_none() {
                return self.missing(field, "a mean time, such as `\"60 s\"`; only a kind of stream has its own");
            }
        }
        Ok(())
    }

    fn flow_times(&self, s: &RawScenario, flow: &FlowSpec, field: &dyn Fn(&str) -> String) -> Checked {
        let latest = flow.start.get() + flow.start_spread.get();
        if latest >= s.duration.get() {
            let name = if flow.start.get() >= s.duration.get() { "start" } else { "start_spread" };
            let text = if name == "start" { flow.start.text() } else { flow.start_spread.text() };
            return self.bad(
                field(name),
                text,
                format!("begins after the end at `{}`", s.duration),
                "a time within the run",
            );
        }
        if let Some(stop) = &flow.stop
            && stop.get() <= latest
        {
            return self.bad(
                field("stop"),
                stop.text(),
                "is not after the start",
                "later than `start` and `start_spread`",
            );
        }
        if let Some(tcp) = &flow.tcp
            && let (Some(min), Some(max)) = (&tcp.min_rto, &tcp.max_rto)
            && min.get() > max.get()
        {
            return self.bad(field("tcp.min_rto"), min.text(), "is above `max_rto`", "at most `max_rto`");
        }
        Ok(())
    }

    fn access(&self, access: &AccessSpec, field: &str) -> Checked {
        self.capacity(&format!("{field}.rate"), &access.rate)?;
        self.queue(field, &access.queue, Some(&access.rate))?;
        self.loss(&format!("{field}.loss"), &access.loss)?;
        self.loss(&format!("{field}.reverse_loss"), &access.reverse_loss)
    }

    fn parameter_error(&self, parameters: &str, error: &controllers::BadParameter) -> ScenarioError {
        let field = if controllers::is_limit(&error.name) {
            parameters.replace("parameters", &error.name)
        } else {
            format!("{parameters}.{}", error.name)
        };
        self.at(&field, error.problem(field.clone()))
    }
}
