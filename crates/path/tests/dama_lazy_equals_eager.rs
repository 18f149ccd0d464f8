//! The lazy return link and one that goes from slot to slot agree on every exit, drop, queue, request, grant
//! and plan, however often the lazy one is asked; and what must hold of any plan and any terminal holds.

mod dama_eager;

use dama_eager::{Arrival, Seen};
use fairpace_path::{Dama, DamaSpec, DropReason, Plain, ReleaseOf, SlotLayout};
use fairpace_units::{Bytes, Duration, Instant, Packets, Rate};
use proptest::prelude::*;

/// Slots per multi-frame, multi-frames, units, terminals: a small frame that can be scheduled.
fn spec() -> impl Strategy<Value = DamaSpec> {
    let shape = (1_u32..=3, 1_u32..=4, 1_u32..=3, 1_u32..=30, 1_u32..=7, prop::option::of(1_u32..=3));
    let speed = (prop_oneof![Just(8_000_000_u32), 100_000_u32..20_000_000], 1_u64..=400, 0_u64..60);
    let asking = (any::<bool>(), prop::option::of(1_u64..200), any::<bool>(), 0.0..1.2_f64, 0_u32..=3);
    let rest = (0.0..=1.0_f64, 0.0..=1.0_f64, 1_u64..=8, any::<[bool; 2]>(), 0_u32..=3);
    (shape, speed, asking, rest).prop_filter_map(
        "a plan that can be scheduled",
        |(
            (slots, frames, multi_frames, units, terminals, carriers),
            (capacity, slot_size, propagation_ms),
            (rbdc, vbdc_ms, fca, cra, minimum),
            (a, b, queue, [spread, in_force], more_delay),
        )| {
            let capacity = Rate::bps(f64::from(capacity));
            let mut spec = DamaSpec {
                terminals,
                carriers: carriers.map(|carriers| carriers.min(terminals)),
                capacity,
                slot_size: Bytes::new(slot_size),
                slots_per_frame: slots,
                slots_per_multi_frame: slots * frames,
                slots_per_super_frame: slots * frames * multi_frames,
                granularity: capacity / f64::from(units),
                minimum,
                cra: if cra < 0.6 { Rate::ZERO } else { capacity * ((cra - 0.6) / f64::from(terminals)) },
                rbdc,
                vbdc: vbdc_ms.map(Duration::from_millis),
                fca,
                // Half the time the paper's.
                release_a: if a < 0.5 { 1.0 } else { a },
                release_b: if a < 0.5 { 0.5 } else { a * b },
                release_of: if in_force { ReleaseOf::InForce } else { ReleaseOf::Decided },
                queue: Packets::new(queue),
                layout: if spread { SlotLayout::Spread } else { SlotLayout::Contiguous },
                ..DamaSpec::large()
            };
            // So many super-frames that few are empty.
            spec.propagation = Duration::from_millis(propagation_ms).min(spec.super_frame() * 3);
            spec.allocation_delay = 1_000;
            let least = 2 * (spec.propagation.as_nanos().div_ceil(spec.super_frame().as_nanos()) as u32 + 1);
            spec.allocation_delay = (0..=least).find(|&n| {
                spec.allocation_delay = n;
                spec.validate().is_ok()
            })?;
            spec.allocation_delay += more_delay;
            Some(spec)
        },
    )
}

/// Times in hundredths of a super-frame, of which many are the same or whole.
fn arrivals() -> impl Strategy<Value = Vec<(u64, usize, u64)>> {
    let after = prop_oneof![3 => Just(0_u64), 3 => 0_u64..40, 2 => 0_u64..300, 1 => Just(100), 1 => 0_u64..4_000];
    let size = prop_oneof![2 => 1_u64..100, 1 => 100_u64..1_500, 1 => Just(0), 1 => Just(400)];
    prop::collection::vec((after, 0_usize..7, size), 1..80)
}

fn place(spec: &DamaSpec, steps: &[(u64, usize, u64)]) -> Vec<Arrival> {
    // The exact length of a super-frame: k of them are a whole boundary.
    let bits = u128::from(spec.slot_size.get()) * 8 * u128::from(spec.slots_per_super_frame);
    let at =
        |hundredths: u64| (u128::from(hundredths) * bits * 10_000_000).div_ceil(spec.capacity.as_bps() as u128) as u64;
    let mut time = 0;
    steps
        .iter()
        .map(|&(after, terminal, size)| {
            time += after;
            Arrival { at: at(time), terminal: terminal % spec.terminals as usize, size }
        })
        .collect()
}

/// Drives the link on time, and asks it besides at `extra` instants.
fn lazy(spec: &DamaSpec, arrivals: &[Arrival], until: u64, extra: &[u64]) -> Seen {
    let mut dama = Dama::new(spec, 1, "dama").unwrap();
    dama.record_drops(true);
    let mut seen = Seen::default();
    let mut extra = extra.iter().copied().peekable();
    let mut take_until = |dama: &mut Dama<Plain>, until: u64, seen: &mut Seen| {
        loop {
            let next = dama.next().as_nanos();
            if let Some(at) = extra.next_if(|&at| at < until.min(next)) {
                dama.advance(Instant::from_nanos(at));
                conserved(dama);
                continue;
            }
            if next >= until {
                return;
            }
            while let Some((from, packet)) = dama.pop(Instant::from_nanos(next)) {
                assert_eq!(packet.flow, u64::from(from));
                seen.out.push((next, packet.id as usize));
            }
        }
    };
    for (number, arrival) in arrivals.iter().enumerate() {
        take_until(&mut dama, arrival.at, &mut seen);
        let terminal = arrival.terminal as u32;
        let packet = Plain { id: number as u64, flow: u64::from(terminal), ..Plain::new(Bytes::new(arrival.size)) };
        dama.push(Instant::from_nanos(arrival.at), terminal, packet);
        let (len, bytes) = (dama.queue_len(terminal) as u64, dama.queue_bytes(terminal).get());
        let units = |rate: Rate| rate.as_bps() / spec.granularity.as_bps();
        seen.at_arrival.push((len, bytes, units(dama.granted(terminal)), units(dama.requested(terminal))));
        let plans = (0..dama.carriers()).map(|carrier| dama.plan(carrier));
        seen.plans.push(plans.map(|plan| plan.owners).collect());
        conserved(&dama);
    }
    take_until(&mut dama, until, &mut seen);
    let dropped = std::iter::from_fn(|| dama.take_dropped());
    seen.dropped = dropped
        .map(|(at, reason, _, packet)| {
            assert_eq!(reason, DropReason::QueueFull);
            (at.as_nanos(), packet.id as usize)
        })
        .collect();
    seen
}

/// offered = delivered + dropped + inside, for each terminal in bytes and packets.
fn conserved(dama: &Dama<Plain>) {
    let mut inside = 0;
    for terminal in 0..dama.terminals() {
        let c = dama.counters(terminal);
        let sent = c.transmitted.packets - c.delivered.packets;
        let waiting = Packets::new(dama.queue_len(terminal) as u64);
        assert_eq!(c.offered.packets, c.delivered.packets + c.dropped.packets + sent + waiting);
        let sent = c.transmitted.bytes - c.delivered.bytes;
        assert_eq!(c.offered.bytes, c.delivered.bytes + c.dropped.bytes + sent + dama.queue_bytes(terminal));
        assert!(c.max_queue <= dama.spec().queue);
        inside += (c.offered.packets - c.delivered.packets - c.dropped.packets).get();
    }
    assert_eq!(inside, dama.inside() as u64);
}

proptest! {
    #[test]
    fn the_lazy_link_sees_what_the_eager_one_sees(
        spec in spec(),
        steps in arrivals(),
        extra in prop::collection::vec(0_u64..1_000_000, 0..40),
    ) {
        let arrivals = place(&spec, &steps);
        let last = arrivals.last().map_or(0, |arrival| arrival.at);
        let super_frame = spec.super_frame().as_nanos() as u64;
        let super_frames = last / super_frame + 4 * u64::from(spec.allocation_delay) + 60;
        let eager = dama_eager::run(&spec, &arrivals, super_frames);
        let until = super_frames * super_frame;
        let mut extra: Vec<u64> = extra.iter().map(|&x| (x as f64 / 1e6 * until as f64) as u64).collect();
        extra.sort_unstable();
        for extra in [&extra[..], &[]] {
            let lazy = lazy(&spec, &arrivals, until, extra);
            let before = |out: &[(u64, usize)]| -> Vec<(u64, usize)> {
                let mut out: Vec<_> = out.iter().copied().filter(|&(at, _)| at < until - super_frame).collect();
                // Slots of different carriers end at the same time.
                out.sort_by_key(|&(at, number)| (at, arrivals[number].terminal));
                out
            };
            prop_assert_eq!(before(&lazy.out), before(&eager.out));
            prop_assert_eq!(&lazy.dropped, &eager.dropped);
            for (number, (ours, theirs)) in lazy.at_arrival.iter().zip(&eager.at_arrival).enumerate() {
                prop_assert_eq!((ours.0, ours.1), (theirs.0, theirs.1), "the queue at arrival {}", number);
                prop_assert!((ours.2 - theirs.2).abs() < 1e-6, "the grant at arrival {}", number);
                prop_assert!((ours.3 - theirs.3).abs() < 1e-6, "the request at arrival {}", number);
                let now = Instant::from_nanos(arrivals[number].at);
                let k = (0..super_frames).rev().find(|&k| eager_boundary(&spec, k) <= now).unwrap();
                prop_assert_eq!(&lazy.plans[number], &eager.plans[k as usize], "the plan at arrival {}", number);
            }
        }
        // First in, first out, and never before T_p and its slots.
        let mut last_of = vec![None; spec.terminals as usize];
        for &(at, number) in &eager.out {
            let Arrival { at: came, terminal, size } = arrivals[number];
            prop_assert!(last_of[terminal] < Some(number));
            last_of[terminal] = Some(number);
            let slots = u128::from(size.div_ceil(spec.slot_size.get()).max(1));
            let bits = slots * u128::from(spec.slot_size.get()) * 8;
            let sending = (bits * 1_000_000_000 / spec.capacity.as_bps() as u128) as u64;
            prop_assert!(at >= came + spec.propagation.as_nanos() as u64 + sending);
        }
    }
}

fn eager_boundary(spec: &DamaSpec, k: u64) -> Instant {
    let bits = u128::from(spec.slot_size.get()) * 8 * u128::from(spec.slots_per_super_frame) * u128::from(k);
    Instant::from_nanos((bits * 1_000_000_000).div_ceil(spec.capacity.as_bps() as u128) as u64)
}
