//! A controller that judges reports as a whole, through the one call per report.

use fairpace_control::feedback::{Form, Message};
use fairpace_control::{
    Ack, Acked, Controller, Env, Fact, Flow, FlowParams, Loss, PacketReport, RttEstimator, SackVector, SendPoll, Sent,
    Status, Transmit, read_one_by_one,
};
use fairpace_units::{Bytes, Duration, Instant, Kind, Rate};
use proptest::prelude::*;
use std::any::Any;

/// The record of a [`Reader`] in one call.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    at: Instant,
    made_at: Option<Duration>,
    facts: Vec<Fact>,
    /// The bytes in flight before the facts were read, and after.
    in_flight: [Bytes; 2],
    /// The numbers that were missing before the facts were read, and after.
    missing: [Vec<u64>; 2],
}

/// How a [`Reader`] reads a report.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reads {
    OneByOne,
    Whole,
    Nothing,
}

/// Sends whenever there is data, and keeps what it is told.
#[derive(Debug)]
struct Reader {
    reads: Reads,
    form: Form,
    reports: Vec<Seen>,
    hooks: Vec<(Instant, Fact, Option<Duration>)>,
}

impl Controller for Reader {
    fn start(&mut self, _now: Instant, _srtt: Option<Duration>) {}
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}

    fn on_ack(&mut self, now: Instant, ack: &Acked, rtt: &RttEstimator) {
        self.hooks.push((now, Fact::Acked(*ack), rtt.srtt()));
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss, rtt: &RttEstimator) {
        self.hooks.push((now, Fact::Lost(*loss), rtt.srtt()));
    }

    fn on_packets(&mut self, report: &mut PacketReport<'_>) {
        let missing = |report: &PacketReport<'_>| report.missing().map(|m| m.seq).collect();
        match self.reads {
            Reads::OneByOne => read_one_by_one(self, report),
            Reads::Nothing => {}
            Reads::Whole => {
                let before = (report.in_flight(), missing(report));
                let facts = std::iter::from_fn(|| report.next()).collect();
                self.reports.push(Seen {
                    at: report.now(),
                    made_at: report.made_at(),
                    facts,
                    in_flight: [before.0, report.in_flight()],
                    missing: [before.1, missing(report)],
                });
            }
        }
    }

    fn on_timeout(&mut self, _now: Instant, _rtt: &RttEstimator) {}
    fn on_timer(&mut self, _now: Instant, _rtt: &RttEstimator) {}
    fn set_demand(&mut self, _now: Instant, _max: Option<Rate>) {}

    fn poll_send(&mut self, _now: Instant, has_data: bool) -> SendPoll {
        if has_data { SendPoll::Send(Kind::Data) } else { SendPoll::WaitForData }
    }

    fn poll_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn target_rate(&self) -> Rate {
        Rate::mbps(1.0)
    }

    fn status(&self) -> Status {
        Status { state: "Reading", rate: Rate::mbps(1.0), reason: "test", p: None }
    }

    fn feedback_form(&self) -> Form {
        self.form
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

/// A flow that has sent `n` packets of 100, 101, ... bytes, one each millisecond from 0 on.
fn sent(reads: Reads, form: Form, n: u64) -> Flow {
    let env = Env { max_rate: Rate::mbps(1_000.0), ..Env::default() };
    let reader = Reader { reads, form, reports: Vec::new(), hooks: Vec::new() };
    let mut flow = Flow::new(Box::new(reader), FlowParams { breaker: None, ..FlowParams::new(&env) });
    flow.start(Instant::ZERO, None);
    for i in 0..n {
        let Transmit::Send(permit) = flow.poll(ms(i), true) else { panic!("nothing holds it back") };
        flow.on_sent(ms(i), permit, Bytes::new(100 + i));
    }
    flow
}

fn reader(flow: &Flow) -> &Reader {
    let any: &dyn Any = flow.controller();
    any.downcast_ref().expect("the controller of the test")
}

/// Packet `seq` arrived 20 ms after it left.
fn ack(seq: u64) -> Ack {
    Ack { arrived_at: Some(Duration::from_millis(seq + 20)), ..Ack::immediate(Kind::Data, seq) }
}

/// The facts in brief: `+` acknowledged, `~` acknowledged late, `-` lost.
fn brief(facts: &[Fact]) -> String {
    let one = |fact: &Fact| match fact {
        Fact::Acked(a) => format!("{}{}", if a.late { '~' } else { '+' }, a.seq),
        Fact::Lost(l) => format!("-{}", l.seq),
    };
    facts.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// By hand: of packets 0 to 5 (100 to 105 B) packet 1 is lost by the third acknowledgement after it, and comes after all.
#[test]
fn one_call_tells_sizes_times_losses_late_recoveries_and_when_the_report_was_made() {
    let mut flow = sent(Reads::Whole, Form::Ccfb, 6);
    let made_at = Some(Duration::from_millis(40));
    let acks = [ack(0), ack(2), ack(3), ack(4)];
    flow.on_feedback(ms(50), Message::Acks { acks: &acks, made_at }).expect("asked for");
    flow.on_feedback(ms(60), Message::acks(&[ack(1), ack(2)])).expect("asked for");

    let [first, second] = &reader(&flow).reports[..] else { panic!("two reports, two calls") };
    assert_eq!((first.at, first.made_at, brief(&first.facts)), (ms(50), made_at, "+0 +2 +3 +4 -1".to_owned()));
    assert_eq!(first.in_flight, [Bytes::new(615), Bytes::new(105)]);
    let Fact::Acked(two) = first.facts[1] else { panic!("packet 2") };
    assert_eq!((two.size, two.sent_at, two.arrived_at), (Bytes::new(102), ms(2), Some(Duration::from_millis(22))));
    assert_eq!(two.rtt, Some(Duration::from_millis(48)));
    let Fact::Lost(one) = first.facts[4] else { panic!("packet 1") };
    assert_eq!((one.sent_at, one.highest_sent), (ms(1), 5));
    assert_eq!((second.made_at, brief(&second.facts)), (None, "~1".to_owned()), "the repetition is no fact");
    assert_eq!((flow.counters().data.lost, flow.counters().data.late, flow.counters().bad.duplicate), (0, 1, 1));
}

/// Two later acknowledgements declare nothing lost; the scheme can count the packet as missing all the same.
#[test]
fn what_a_report_skips_is_missing_before_the_ledger_gives_it_up() {
    let mut flow = sent(Reads::Whole, Form::Ccfb, 8);
    flow.on_feedback(ms(50), Message::acks(&[ack(1), ack(3)])).expect("asked for");
    flow.on_feedback(ms(51), Message::acks(&[ack(2), ack(7)])).expect("asked for");
    let missing: Vec<_> = reader(&flow).reports.iter().map(|seen| (brief(&seen.facts), seen.missing.clone())).collect();
    let expected = [("+1 +3".to_owned(), [vec![], vec![0, 2]]), ("+2 -0 +7".to_owned(), [vec![0, 2], vec![4, 5, 6]])];
    assert_eq!(missing, expected);
}

#[test]
fn what_a_controller_leaves_unread_is_credited_all_the_same() {
    let mut flow = sent(Reads::Nothing, Form::Ccfb, 6);
    let outcome = flow.on_feedback(ms(50), Message::acks(&[ack(0), ack(2), ack(3), ack(4)])).expect("asked for");
    assert_eq!((outcome.credited, outcome.ignored), (4, 0));
    let data = flow.counters().data;
    assert_eq!((data.acked, data.lost, flow.flight()), (4, 1, (1, Bytes::new(105))));
    assert!(reader(&flow).hooks.is_empty());
}

#[test]
fn a_sack_vector_is_one_report_and_only_its_newest_packet_measures() {
    let mut flow = sent(Reads::Whole, Form::SackVector, 12);
    let vector = SackVector { ack: 9, vector: 0b1001_0111, arrived_at: Some(Duration::from_millis(29)), ..sack() };
    flow.on_feedback(ms(50), Message::SackVector(&vector)).expect("asked for");
    let [seen] = &reader(&flow).reports[..] else { panic!("one vector, one call") };
    // By hand: 1, 4 and 6 to 9 arrived; of the others 5 is passed by four, 3, 2 and 0 by five and six.
    assert_eq!(brief(&seen.facts), "+1 +4 +6 -0 +7 -2 -3 +8 -5 +9");
    assert_eq!(seen.made_at, Some(Duration::from_millis(34)));
    let measured = |f: &&Fact| matches!(f, Fact::Acked(a) if a.rtt.is_some());
    assert_eq!(brief(&seen.facts.iter().filter(measured).copied().collect::<Vec<_>>()), "+9");
}

fn sack() -> SackVector {
    let Ack { ecn, .. } = ack(0);
    SackVector { ack: 0, vector: 0, rwnd: None, ecn, ack_delay: Duration::from_millis(5), arrived_at: None }
}

proptest! {
    /// A scheme that hears packets one by one cannot tell one report of many from many reports of one.
    #[test]
    fn a_report_of_many_is_many_reports_of_one(seqs in prop::collection::vec(0_u64..44, 1..60), cut in 1_usize..60) {
        let acks: Vec<Ack> = seqs.iter().map(|&seq| ack(seq)).collect();
        let (mut whole, mut single) = (sent(Reads::OneByOne, Form::Ccfb, 40), sent(Reads::OneByOne, Form::Ccfb, 40));
        let mut read = sent(Reads::Whole, Form::Ccfb, 40);
        for (i, part) in acks.chunks(cut).enumerate() {
            let now = ms(100 + i as u64);
            whole.on_feedback(now, Message::acks(part)).expect("asked for");
            read.on_feedback(now, Message::acks(part)).expect("asked for");
            for ack in part {
                single.on_feedback(now, Message::acks(core::slice::from_ref(ack))).expect("asked for");
            }
        }
        prop_assert_eq!(&reader(&whole).hooks, &reader(&single).hooks);
        let facts: Vec<Fact> = reader(&read).reports.iter().flat_map(|seen| seen.facts.clone()).collect();
        let heard: Vec<Fact> = reader(&whole).hooks.iter().map(|(_, fact, _)| *fact).collect();
        prop_assert_eq!(facts, heard);
        prop_assert_eq!(whole.counters(), single.counters());
        prop_assert_eq!(whole.counters(), read.counters());
    }
}
