//! T6, the property: whatever the receiver has sent, sent again at any later time, changes nothing but the counts of what
//! was refused. Over every scheme, and every form of feedback that serves it.

mod pair;

use fairpace_control::feedback::Form;
use fairpace_control::{FlowCounters, schemes};
use fairpace_rtp::{ReceiverConfig, SenderConfig, StopReason, What};
use fairpace_units::{Duration, Instant, RandomStream, Rate};
use pair::{Disturb, Left, Pair, Wire, at, flow, lossy, ms, sender_config, undisturbed};

const FORMS: [Form; 5] = [Form::Ccfb, Form::SackVector, Form::RtpTfrc, Form::Reports, Form::Twcc];
const LONG: f64 = 30.0;

/// Everything that must stay as it is.
type Trace = (Vec<Left>, Vec<(Instant, Rate)>, FlowCounters, Option<(Instant, StopReason)>);

/// Each scheme as it is, and where its receiver measures.
fn set_ups() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let mut all: Vec<_> = schemes().iter().map(|scheme| (scheme.name, vec![])).collect();
    all.push(("tfrc", vec![("measured_by", "receiver")]));
    all
}

fn run(scheme: &str, settings: &[(&str, &str)], form: Form, disturb: Disturb) -> Option<Trace> {
    let flow = flow(scheme, settings, Rate::mbps(2.0));
    if !form.serves(flow.form()) || flow.via() != fairpace_units::Via::Udp {
        return None;
    }
    let config = SenderConfig { form: Some(form), ..sender_config() };
    let mut p = Pair::new(config, ReceiverConfig::default(), flow, ms(50));
    p.forward.disturb = lossy(3, 0.01);
    p.back.disturb = disturb;
    let mut rates = Vec::new();
    for step in 0..(LONG * 10.0) as u32 {
        p.run_until(at(f64::from(step) / 10.0));
        rates.push((p.now, p.sender.target_rate()));
    }
    let counters = FlowCounters { bad: Default::default(), ..*p.sender.flow().counters() };
    Some((p.sent, rates, counters, p.stopped))
}

/// Each datagram comes again up to five times, one in a hundred 1,000 times, whenever that may be.
fn replay(seed: u64) -> Disturb {
    let mut stream = RandomStream::named(seed, "replay");
    Box::new(move |_, w: Wire| {
        let copies = if stream.uniform() < 0.01 { 1_000 } else { (stream.uniform() * 6.0) as usize };
        let mut all = vec![(Duration::ZERO, w.clone())];
        let longest = Duration::from_secs_f64(LONG);
        all.extend((0..copies).map(|_| (Duration::from_nanos(1) + stream.duration_below(longest), w.clone())));
        all
    })
}

#[test]
fn whatever_comes_again_changes_nothing() {
    for (n, (scheme, settings)) in set_ups().into_iter().enumerate() {
        let mut served = 0;
        for form in FORMS {
            let Some(clean) = run(scheme, &settings, form, undisturbed()) else { continue };
            served += 1;
            assert!(clean.0.len() > 100, "{scheme}, {form:?}: {} packets", clean.0.len());
            let replayed = run(scheme, &settings, form, replay(n as u64)).unwrap();
            let differs = clean.0.iter().zip(&replayed.0).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{scheme}, {form:?}: {:?}", replayed.3);
            assert!(clean == replayed, "{scheme}, {form:?}: {:?} became {:?}", clean.2, replayed.2);
        }
        assert!(served > 0 || scheme == "tpba", "{scheme}");
    }
}

/// One report, five times, 150 ms apart: so an attacker that has seen a single datagram ended every flow.
#[test]
fn one_report_five_times_stops_nothing() {
    for (scheme, settings) in set_ups() {
        let mut done = false;
        let disturb: Disturb = Box::new(move |_, w| {
            let copies = if w.what == What::Report && !core::mem::replace(&mut done, true) { 5 } else { 0 };
            let mut all = vec![(Duration::ZERO, w.clone())];
            all.extend((1..=copies).map(|n| (ms(150 * n), w.clone())));
            all
        });
        let Some((form, clean)) =
            FORMS.into_iter().find_map(|form| Some((form, run(scheme, &settings, form, undisturbed())?)))
        else {
            continue;
        };
        let replayed = run(scheme, &settings, form, disturb).unwrap();
        assert_eq!(replayed.3, clean.3, "{scheme}, {form:?}");
    }
}

/// A number that is damaged where UDP has no checksum, and believed: those of the reports that follow look old for minutes. The echo of the next
/// question tells where the receiver is.
#[test]
fn a_damaged_report_number_costs_no_more_than_a_question() {
    for scheme in schemes().iter().map(|info| info.name).filter(|name| *name != "tpba") {
        let mut p = Pair::new(sender_config(), ReceiverConfig::default(), flow(scheme, &[], Rate::mbps(1.0)), ms(50));
        let mut damaged = false;
        p.back.disturb = Box::new(move |now, mut w| {
            if !damaged && now > at(5.0) && w.what == What::Feedback {
                damaged = true;
                let number = u32::from_be_bytes(w.bytes[12..16].try_into().unwrap());
                w.bytes[12..16].copy_from_slice(&number.wrapping_add(30_000).to_be_bytes());
            }
            vec![(Duration::ZERO, w)]
        });
        p.run_until(at(12.0));
        let media =
            |from: f64, to: f64| p.received.iter().filter(|g| g.arrived > at(from) && g.arrived < at(to)).count();
        let (before, after) = (media(4.0, 5.0), media(11.0, 12.0));
        assert_eq!(p.stopped, None, "{scheme}");
        assert!(2 * after > before, "{scheme}: {before} packets in a second before, {after} after");
        assert!(p.sender.stats().rejected.replayed < 200, "{scheme}: {:?}", p.sender.stats().rejected);
    }
}
