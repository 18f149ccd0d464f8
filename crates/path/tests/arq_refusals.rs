//! Every way in which a wireless link can be refused, in its exact words.

use fairpace_path::{Arq, ArqError, ArqSpec, ArqUser, Capacity, Channel, ChannelError, Plain};
use fairpace_units::{Bytes, Duration, Packets};

fn fine() -> ArqSpec {
    ArqSpec::downlink(Channel::memoryless(0.1).unwrap(), Capacity::Unlimited)
}

fn with_user(change: impl Fn(&mut ArqUser)) -> ArqSpec {
    let mut spec = fine();
    spec.users.push(spec.users[0].clone());
    change(&mut spec.users[1]);
    spec
}

#[test]
fn every_refusal_names_the_field_what_was_found_and_what_is_allowed() {
    let dead = Channel { transition: vec![vec![1.0]], error: vec![1.0] };
    for (spec, message) in [
        (ArqSpec { slot: Duration::from_nanos(999), ..fine() }, "`slot` is 999 ns; it must be from 1 us to 60 s"),
        (ArqSpec { slot: Duration::from_secs(61), ..fine() }, "`slot` is 61 s; it must be from 1 us to 60 s"),
        (ArqSpec { slot_size: Bytes::ZERO, ..fine() }, "`slot_size` is 0 B; it must be from 1 B to 1000000 B"),
        (ArqSpec { retry_delay: 10_001, ..fine() }, "`retry_delay` is 10001; it must be from 0 to 10000"),
        (
            ArqSpec { delay: Duration::from_secs(2_000_000_000), ..fine() },
            "`delay` is 2000000000 s; it must be at most 1000000000 s",
        ),
        (ArqSpec { users: Vec::new(), ..fine() }, "`users` is 0; it must be from 1 to 1000"),
        (with_user(|user| user.weight = 0), "`users[1].weight` is 0; the least is 1"),
        (
            with_user(|user| user.weight = 10_000),
            "the weights of `users` add up to 10001; at most 10000: divide them by a common factor",
        ),
        (
            with_user(|user| user.buffer = Capacity::Packets(Packets::ZERO)),
            "`users[1].buffer` is 0; the least is 1 packet or 1 byte (the packet under way counts)",
        ),
        (
            with_user(|user| user.buffer = Capacity::Bytes(Bytes::ZERO)),
            "`users[1].buffer` is 0; the least is 1 packet or 1 byte (the packet under way counts)",
        ),
        (
            with_user(|user| user.channel = dead.clone()),
            "`users[1].channel`: `error` is 1 in every state: nothing would ever pass",
        ),
    ] {
        assert_eq!(spec.validate().unwrap_err().to_string(), message);
        assert_eq!(Arq::<Plain>::new(&spec, 1, "wlan").unwrap_err().to_string(), message);
    }
    let mut arq = Arq::<Plain>::new(&fine(), 1, "wlan").unwrap();
    assert_eq!(arq.set_buffer(0, Capacity::Packets(Packets::ZERO)), Err(ArqError::NoBuffer { user: 0 }));
}

#[test]
fn every_channel_that_is_none_is_refused() {
    let of = |transition: &[&[f64]], error: &[f64]| {
        let transition = transition.iter().map(|row| row.to_vec()).collect();
        Channel { transition, error: error.to_vec() }.validate().unwrap_err().to_string()
    };
    let many = Channel { transition: vec![vec![1.0 / 65.0; 65]; 65], error: vec![0.0; 65] };
    assert_eq!(of(&[], &[]), "`states` is 0; it must be from 1 to 64");
    assert_eq!(many.validate().unwrap_err().to_string(), "`states` is 65; it must be from 1 to 64");
    assert_eq!(of(&[&[1.0]], &[0.0, 1.0]), "`transition` has 1 entries for 2 states (as many as `error` has)");
    assert_eq!(
        of(&[&[0.5, 0.5], &[1.0]], &[0.0, 1.0]),
        "`transition[1]` has 1 entries for 2 states (as many as `error` has)"
    );
    assert_eq!(of(&[&[0.5, 0.5], &[1.5, -0.5]], &[0.0, 1.0]), "`transition[1][0]` is 1.5; it must be from 0 to 1");
    assert_eq!(of(&[&[f64::NAN]], &[0.0]), "`transition[0][0]` is NaN; it must be from 0 to 1");
    assert_eq!(of(&[&[0.5, 0.5], &[0.25, 0.74]], &[0.0, 1.0]), "`transition[1]` sums to 0.99, not to 1 (within 1e-9)");
    assert_eq!(of(&[&[1.0]], &[-0.1]), "`error[0]` is -0.1; it must be from 0 to 1");
    // State 1 is left for ever; and two states that are each for themselves.
    assert_eq!(
        of(&[&[1.0, 0.0], &[0.5, 0.5]], &[0.0, 1.0]),
        "state 1 cannot be reached from state 0 by `transition`; leave out the states that do not come back"
    );
    assert_eq!(
        of(&[&[0.5, 0.5], &[0.0, 1.0]], &[0.0, 1.0]),
        "state 0 cannot be reached from state 1 by `transition`; leave out the states that do not come back"
    );
    // A row may be off by less than 1e-9.
    let nearly = Channel { transition: vec![vec![0.5, 0.5 + 9e-10], vec![1.0, 0.0]], error: vec![0.0, 1.0] };
    assert_eq!(nearly.validate(), Ok(()));
}

#[test]
fn a_probability_or_a_memory_out_of_range_is_refused_with_the_nearest_that_is_not() {
    let message = |result: Result<Channel, ChannelError>| result.unwrap_err().to_string();
    for p_e in ["-0.1", "1", "NaN"] {
        let expected = format!("`error_probability` is {p_e}; it must be from 0 to below 1");
        let p_e = p_e.parse().unwrap();
        assert_eq!(message(Channel::memoryless(p_e)), expected);
        assert_eq!(message(Channel::two_state(p_e, 0.5)), expected);
    }
    // p_e = 0.2: P(bad -> bad) = 0.2 + 0.8 lambda is 0 at lambda = -0.25.
    for (found, lambda) in [("1", 1.0), ("-0.3", -0.3), ("NaN", f64::NAN)] {
        assert_eq!(
            message(Channel::two_state(0.2, lambda)),
            format!("`memory` is {found}; with an error probability of 0.2 it must be from -0.25 to below 1")
        );
    }
    assert_eq!(Channel::two_state(0.2, -0.25).map(|channel| channel.transition[1][1]), Ok(0.0));
    // p_e = 0.5: they alternate.
    assert_eq!(Channel::two_state(0.5, -1.0).map(|channel| channel.transition[0][1]), Ok(1.0));
}
