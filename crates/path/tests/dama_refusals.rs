//! Every way in which a return link can be refused, in its exact words.

use fairpace_path::quick_start::Agent;
use fairpace_path::{Dama, DamaSpec, Plain};
use fairpace_units::{Bytes, Duration, Packets, Rate};

#[test]
fn every_refusal_names_the_field_what_was_found_what_is_allowed_and_what_to_do() {
    let large = DamaSpec::large;
    let mut agent = large().with_agent(Agent::Qs);
    agent.quick_start.router.threshold = 1.5;
    for (spec, message) in [
        (DamaSpec { terminals: 0, ..large() }, "`terminals` is 0; it must be from 1 to 1000000"),
        (DamaSpec { capacity: Rate::ZERO, ..large() }, "`capacity` is 0 bit/s; it must be from 1 bit/s to 1000 Gbit/s"),
        (DamaSpec { slot_size: Bytes::ZERO, ..large() }, "`slot_size` is 0 B; it must be from 1 B to 1000000 B"),
        (
            DamaSpec { slot_size: Bytes::new(1), capacity: Rate::mbps(100.0), ..large() },
            "`slot_size` (1 B) at `capacity` (100 Mbit/s) makes a slot of 0.08 us; it must last from 1 us to 60 s: \
             give a larger or smaller `slot_size`",
        ),
        (DamaSpec { slots_per_frame: 0, ..large() }, "`slots_per_frame` is 0; it must be from 1 to 1000000"),
        (
            DamaSpec { slots_per_multi_frame: 0, ..large() },
            "`slots_per_multi_frame` is 0; it must be from 1 to 1000000",
        ),
        (
            DamaSpec { slots_per_multi_frame: 100, ..large() },
            "`slots_per_multi_frame` is 100, not a whole number of times `slots_per_frame` (6); the nearest that can be \
             scheduled are 96 and 102",
        ),
        (
            DamaSpec { slots_per_super_frame: 100, ..large() },
            "`slots_per_super_frame` is 100, not a whole number of times `slots_per_multi_frame` (144); the nearest \
             that can be scheduled are 144 and 288",
        ),
        (
            DamaSpec { propagation: Duration::from_secs(11), ..large() },
            "`propagation` is 11 s; it must be at most 10 s",
        ),
        (DamaSpec { granularity: Rate::ZERO, ..large() }, "`granularity` is 0 bit/s; it must be at least 1 bit/s"),
        (
            DamaSpec { granularity: Rate::mbps(7.0), ..large() },
            "`granularity` is 7 Mbit/s, more than the carrier's `capacity` of 6.336 Mbit/s; give at most that",
        ),
        (
            DamaSpec { granularity: Rate::kbps(50.0), ..large() },
            "`granularity` is 50 kbit/s, of which `capacity` (6.336 Mbit/s) holds 126.720, not a whole number; give \
             49.89 kbit/s or 50.29 kbit/s",
        ),
        (
            DamaSpec { granularity: Rate::bps(1.0), ..large() },
            "`capacity / granularity` is 6336000; it must be from 1 to 1000000",
        ),
        (DamaSpec { carriers: Some(0), ..large() }, "`carriers` is 0; it must be from 1 to 1000000"),
        (
            DamaSpec { carriers: Some(6), ..large() },
            "`carriers` is 6 for 5 terminals spread evenly; give at most 5, or leave it out",
        ),
        (
            DamaSpec { carriers: Some(4), ..large() },
            "`carriers` is 4 for 5 terminals spread evenly; give at most 3, or leave it out",
        ),
        (
            DamaSpec { minimum: 145, ..large() },
            "`minimum` is 145 units for each of 1 terminals on a carrier of 144 units; give at most 144, fewer \
             terminals or more carriers",
        ),
        (
            DamaSpec { terminals: 200, carriers: Some(1), ..large() },
            "`minimum` is 1 units for each of 200 terminals on a carrier of 144 units; give at most 0, fewer terminals \
             or more carriers",
        ),
        (
            DamaSpec { cra: Rate::mbps(2.0), carriers: Some(1), ..large() },
            "`cra` is 2 Mbit/s for each of 5 terminals on a carrier of 6.336 Mbit/s; give at most 1.267 Mbit/s, fewer \
             terminals or more carriers",
        ),
        (DamaSpec { vbdc: Some(Duration::ZERO), ..large() }, "`vbdc` is 0 s; it must be above 0 s"),
        (DamaSpec { release_a: 1.5, ..large() }, "`release_a` is 1.5; it must be from 0 to 1"),
        (DamaSpec { release_a: 0.3, ..large() }, "`release_b` is 0.5; it must be from 0 to 0.3"),
        (DamaSpec { release_a: f64::NAN, ..large() }, "`release_a` is NaN; it must be from 0 to 1"),
        (DamaSpec { queue: Packets::ZERO, ..large() }, "`queue` is 0; it must be from 1 to 1000000000"),
        (
            DamaSpec { minimum: 0, rbdc: false, ..large() },
            "`minimum` is 0, `cra` is 0, and `rbdc`, `vbdc` and `fca` are off: no terminal would ever get a slot; \
             switch one of them on",
        ),
        (
            DamaSpec { allocation_delay: 1, ..large() },
            "`allocation_delay` is 1 super-frames; a request needs 1 to the NCC and the TBTP 1 back (`propagation` \
             0.252 s, super-frame 0.820364 s): give at least 2",
        ),
        (
            DamaSpec { propagation: Duration::ZERO, allocation_delay: 0, ..large() },
            "`allocation_delay` is 0 super-frames; a request needs 0 to the NCC and the TBTP 0 back (`propagation` 0 s, \
             super-frame 0.820364 s): give at least 1",
        ),
        (
            DamaSpec { allocation_delay: 3, ..DamaSpec::small() },
            "`allocation_delay` is 3 super-frames; a request needs 2 to the NCC and the TBTP 2 back (`propagation` \
             0.252 s, super-frame 0.136727 s): give at least 4",
        ),
        (DamaSpec { allocation_delay: 100_000, ..large() }, "`allocation_delay` is 100000; it must be from 1 to 1000"),
        (agent, "`quick_start.threshold` is 1.5; it must be above 0 and at most 1"),
    ] {
        let found = spec.validate().map_err(|refusal| refusal.to_string());
        assert_eq!(found, Err(message.to_owned()));
        assert!(Dama::<Plain>::new(&spec, 1, "dama").is_err());
    }
}

#[test]
fn what_is_proposed_instead_is_accepted() {
    let large = DamaSpec::large;
    for spec in [
        large(),
        DamaSpec::small(),
        DamaSpec { carriers: Some(3), ..large() },
        DamaSpec { allocation_delay: 4, ..DamaSpec::small() },
        DamaSpec { granularity: Rate::kbps(49.89), ..large() },
        DamaSpec { granularity: Rate::kbps(50.29), ..large() },
        DamaSpec { slots_per_multi_frame: 96, slots_per_super_frame: 480, ..large() },
        DamaSpec { propagation: Duration::ZERO, allocation_delay: 1, ..large() },
        DamaSpec { terminals: 200, carriers: Some(1), minimum: 0, ..large() },
        // 88 and 264 kbit/s in the small frame: a slot per super-frame, and one per multi-frame.
        DamaSpec { granularity: Rate::kbps(88.0), ..DamaSpec::small() },
        DamaSpec { granularity: Rate::kbps(264.0), ..DamaSpec::small() },
    ] {
        assert_eq!(spec.validate(), Ok(()), "{spec:?}");
    }
}
