//! The pacing quantum of the send driver: whole batches, no more bytes than the rate allows.

mod common;

use common::{loopback, run_beside};
use fairpace_media::ConstantSource;
use fairpace_net::send::{self, SendConfig, SendEnd, SendReport};
use fairpace_net::{Clock, NetError};
use fairpace_units::{Bytes, Duration, Rate};
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;

const SIZE: Bytes = Bytes::new(1_000);

fn rate() -> Rate {
    Rate::packets_per_second(5_000.0, SIZE)
}

/// A second over loopback, more media than the flow allows.
fn run(quantum: Duration) -> Result<SendReport, NetError> {
    let (receiver, mut config, clock) = loopback();
    config.session.packet_size = SIZE;
    config.scheme = "fixed".to_owned();
    config.settings.insert("rate".to_owned(), "5000 pkt/s".to_owned());
    config.max_rate = rate() * 2.0;
    config.duration = Some(Duration::from_secs(1));
    config.quantum = quantum;
    let mut source = ConstantSource::new(rate() * 1.2, Duration::from_millis(10));
    let (sent, received) = run_beside(receiver, |stop| send::run(&config, clock, &mut source, &mut (), stop))?;
    assert!(received.stats.media.received <= sent.flow.data.sent);
    Ok(sent)
}

#[test]
fn packets_of_a_quantum_leave_in_one_batch_and_the_rate_is_the_same() {
    let sent = run(Duration::from_millis(2)).unwrap();
    assert!(matches!(sent.end, SendEnd::Finished), "{:?}", sent.end);
    assert_eq!((sent.not_sent, sent.socket.batch_failures), (0, 0));
    // Eleven at a time (0, 0.2 ... 2 ms); frames' ends and their odd sizes part some. A busy machine makes them larger.
    let batch = sent.flow.data.sent as f64 / sent.pacing.count as f64;
    assert!(batch > 5.0 && sent.socket.batched * 10 > sent.socket.sent * 8, "{batch} {:?}", sent.socket);
    // Never more than the rate, the quantum and what may be made up for have room for.
    let most = rate().as_packets_per_second(SIZE) * (sent.elapsed.as_secs_f64() + 0.027) + 2.0;
    assert!(sent.flow.data.sent as f64 <= most, "{} > {most}", sent.flow.data.sent);
    assert!(sent.flow.data.acked > 100, "feedback is heard: {:?}", sent.flow.data);
}

#[test]
fn a_quantum_that_would_be_a_burst_is_refused() {
    let clock = Clock::start();
    let mut config = SendConfig::new((Ipv4Addr::LOCALHOST, 9).into());
    config.quantum = send::MAX_QUANTUM + Duration::from_nanos(1);
    let mut source = ConstantSource::new(rate(), Duration::from_millis(10));
    let error = send::run(&config, clock, &mut source, &mut (), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, NetError::Config { field: "quantum", .. }), "{error}");
}
