//! PIE in a link [RFC 8033]: 8 Mbit/s and 1,000 bytes, so one packet leaves each millisecond.

mod common;

use common::*;
use fairpace_path::DropReason::Early;
use fairpace_path::{Capacity, Link, LinkSpec, PieParams, Plain, QueueModel, RateModel};
use fairpace_units::{Bytes, Rate};

fn link(params: PieParams) -> Link<Plain> {
    let rate = RateModel::Fixed(Rate::mbps(8.0));
    let mut link =
        Link::new(&LinkSpec { rate, queue: QueueModel::Pie(params), ..LinkSpec::default() }, 1, "p").unwrap();
    link.record_drops(true);
    link
}

fn usual() -> PieParams {
    PieParams::new(Capacity::Unlimited, Bytes::new(1_000))
}

//= 8033-4.3-2
#[test]
fn the_delay_is_that_of_the_packet_that_began_last() {
    // Gains so that the chance is 1 as soon as the delay is above the target at an update. 31 packets at
    // 0 ms: at 15 ms number 15 begins after 15 ms, which is the target; at 30 ms number 30 does after 30.
    let params = PieParams { alpha: 1e9, beta: 0.0, max_burst: span(0.0), ..usual() };
    let arrivals = |n: u64| {
        let later = [28.0, 31.0, 31.5].map(|t| (ms(t), normal(100 + t as u64)));
        (0..n).map(|id| (ms(0.0), normal(id))).chain(later)
    };
    let mut long = link(params);
    run(&mut long, arrivals(60));
    assert_eq!(drops(&mut long), [(ms(31.0), Early, 131), (ms(31.5), Early, 131)]);
    // Fifteen packets: nobody has waited longer than 14 ms, and none is dropped.
    let mut short = link(params);
    run(&mut short, arrivals(15));
    assert_eq!(drops(&mut short), []);
}

#[test]
fn an_idle_time_does_not_drive_the_chance() {
    let params = PieParams { alpha: 1e9, beta: 0.0, max_burst: span(0.0), ..usual() };
    let mut link = link(params);
    // The last of 60 packets has waited 59 ms; then the link is idle from 60 to 100 ms.
    let second = (200..230).map(|id| (ms(100.0), normal(id)));
    run(&mut link, (0..60).map(|id| (ms(0.0), normal(id))).chain(second));
    assert_eq!(drops(&mut link), []);
}

#[test]
fn an_overload_settles_near_the_target() {
    // 10 % too much for two minutes: PIE must drop one in eleven, and the delay is 15 ms on average.
    let mut link = link(usual());
    let arrivals = (0..132_000_u64).map(|id| (ms(id as f64 / 1.1), normal(id)));
    let (mut count, mut waited) = (0, 0.0);
    for (exit, id) in run(&mut link, arrivals) {
        if exit > ms(60_000.0) {
            count += 1;
            waited += exit.as_secs_f64() * 1e3 - id as f64 / 1.1 - 1.0;
        }
    }
    let mean = waited / f64::from(count);
    assert!((10.0..20.0).contains(&mean), "{mean} ms");
    let dropped = drops(&mut link).iter().filter(|d| d.0 > ms(60_000.0)).count() as f64 / 66_000.0;
    assert!((dropped - 1.0 / 11.0).abs() < 0.01, "{dropped}");
}
