//! When reports were made, as the one call per report tells a controller.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_control::{
    Acked, Controller, Env, Flow, FlowParams, Loss, PacketReport, RttEstimator, SendPoll, Sent, Status, build,
    read_one_by_one,
};
use fairpace_rtp::{ReceiverConfig, SenderConfig};
use fairpace_units::{Duration, Instant, Rate};
use pair::{Pair, at, ms, sender_config};
use std::any::Any;

/// `fixed`, with a list of when each report was made and when it came.
#[derive(Debug)]
struct Listening {
    scheme: Box<dyn Controller>,
    /// When the report came, when it was made, and the newest arrival that it tells of for the first time.
    reports: Vec<(Instant, Duration, Option<Duration>)>,
    newest: Option<Duration>,
}

impl Controller for Listening {
    fn on_packets(&mut self, report: &mut PacketReport<'_>) {
        self.newest = None;
        read_one_by_one(self, report);
        self.reports.push((report.now(), report.made_at().expect("both forms tell"), self.newest));
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        self.newest = self.newest.max(ack.arrived_at);
        self.scheme.on_ack(now, ack, rtt);
    }

    fn start(&mut self, now: Instant, srtt: Option<Duration>) {
        self.scheme.start(now, srtt);
    }
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.scheme.on_sent(now, sent);
    }
    fn on_loss(&mut self, now: Instant, loss: &Loss, rtt: &RttEstimator) {
        self.scheme.on_loss(now, loss, rtt);
    }
    fn on_timeout(&mut self, now: Instant, rtt: &RttEstimator) {
        self.scheme.on_timeout(now, rtt);
    }
    fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        self.scheme.on_timer(now, rtt);
    }
    fn set_demand(&mut self, now: Instant, max: Option<Rate>) {
        self.scheme.set_demand(now, max);
    }
    fn poll_send(&mut self, now: Instant, has_data: bool) -> SendPoll {
        self.scheme.poll_send(now, has_data)
    }
    fn poll_timer(&self) -> Instant {
        self.scheme.poll_timer()
    }
    fn target_rate(&self) -> Rate {
        self.scheme.target_rate()
    }
    fn status(&self) -> Status {
        self.scheme.status()
    }
}

/// The way back takes 50 ms. The stated time of making is therefore equally long before the arrival in every report,
/// on another clock, to the resolution of the form: 1/65,536 s, or a tick of 250 us.
#[test]
fn a_report_says_when_it_was_made() {
    for (form, resolution) in [(Form::Ccfb, Duration::from_micros(16)), (Form::Twcc, Duration::from_micros(250))] {
        let env = Env { max_rate: Rate::mbps(2.0), ..Env::default() };
        let scheme = build("fixed", &Default::default(), &env).unwrap();
        let listening = Listening { scheme, reports: Vec::new(), newest: None };
        let flow = Flow::new(Box::new(listening), FlowParams::new(&env));
        let config = SenderConfig { form: Some(form), ..sender_config() };
        let mut p = Pair::new(config, ReceiverConfig::default(), flow, ms(50));
        p.run_until(at(5.0));
        let any: &dyn Any = p.sender.flow().controller();
        let reports = &any.downcast_ref::<Listening>().expect("the test's").reports;
        assert!(reports.len() > 50, "{form}: {}", reports.len());
        let since_made: Vec<i128> =
            reports.iter().map(|(came, made, _)| i128::from(came.as_nanos()) - made.as_nanos() as i128).collect();
        let (least, most) = (since_made.iter().min().unwrap(), since_made.iter().max().unwrap());
        assert!(most - least <= resolution.as_nanos() as i128, "{form}: {least} to {most} ns");
        for (_, made, newest) in reports {
            let held = made.checked_sub(newest.expect("something arrived"));
            assert!(held.is_some_and(|held| held <= ms(40)), "{form}: {made:?} {newest:?}");
        }
    }
}
