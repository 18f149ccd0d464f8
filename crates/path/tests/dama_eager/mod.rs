//! A satellite's return link written from the definitions, slot by slot: requests and TBTPs are messages
//! that travel, the NCC keeps nothing but what it was told, and nothing is skipped.

use fairpace_path::{DamaSpec, ReleaseOf, SlotLayout};
use std::collections::VecDeque;

/// A packet that comes to a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    pub(crate) terminal: usize,
    pub(crate) size: u64,
}

/// The observations of the link.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Instant and number of each arrival that came out.
    pub(crate) out: Vec<(u64, usize)>,
    /// Of each that was dropped.
    pub(crate) dropped: Vec<(u64, usize)>,
    /// At each arrival, after it: the terminal's packets and bytes in the queue, its units, its request.
    pub(crate) at_arrival: Vec<(u64, u64, f64, f64)>,
    /// The owners of the slots, super-frame by super-frame, carrier by carrier.
    pub(crate) plans: Vec<Vec<Vec<Option<u32>>>>,
}

#[derive(Clone, Debug, Default)]
struct Terminal {
    /// Number, bytes left, size.
    queue: VecDeque<(usize, u64, u64)>,
    arrived: u64,
    requested: f64,
    credit: u64,
    grant: u64,
    free: u64,
    slots: u64,
}

#[derive(Clone, Debug)]
struct Request {
    of: i64,
    at: u64,
    /// Per terminal: rate asked for and traffic, in units.
    told: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
struct Tbtp {
    of: i64,
    at: u64,
    given: Vec<u64>,
    free: Vec<u64>,
}

struct Carrier {
    first: usize,
    terminals: Vec<Terminal>,
    requests: Vec<Request>,
    tbtps: Vec<Tbtp>,
    n_b: Vec<f64>,
    turn: usize,
}

/// Everything that happens in `super_frames`, and what comes out in them.
pub(crate) fn run(spec: &DamaSpec, arrivals: &[Arrival], super_frames: u64) -> Seen {
    let bits = u128::from(spec.slot_size.get()) * 8;
    let capacity = spec.capacity.as_bps() as u128;
    let start = |slot: u64| (u128::from(slot) * bits * 1_000_000_000).div_ceil(capacity) as u64;
    let per = u64::from(spec.slots_per_super_frame);
    let propagation = spec.propagation.as_nanos() as u64;
    let each = spec.terminals_per_carrier() as usize;
    let units = u64::from(spec.units());
    let mut seen = Seen::default();
    let mut carriers: Vec<Carrier> =
        (0..spec.terminals as usize).step_by(each).map(|first| carrier(spec, first, each, units)).collect();
    let mut pending = arrivals.iter().copied().enumerate().peekable();
    let mut ended: Vec<(usize, usize, usize)> = Vec::new();
    for slot in 0..super_frames * per {
        let now = start(slot);
        // 1. The arrivals while the slot before lasts.
        while let Some((number, arrival)) = pending.next_if(|(_, arrival)| arrival.at < now) {
            arrive(spec, &mut carriers, each, number, arrival, &mut seen);
        }
        // 2. That slot's end.
        for (c, i, packets) in ended.drain(..) {
            for _ in 0..packets {
                let (number, _, _) = carriers[c].terminals[i].queue.pop_front().unwrap();
                seen.out.push((now + propagation, number));
            }
        }
        // 3. The boundary.
        if slot % per == 0 {
            let k = (slot / per) as i64;
            let boundary = |k: i64| start(k as u64 * per);
            seen.plans.push(carriers.iter_mut().map(|c| c.boundary(spec, k, now, &boundary)).collect());
        }
        // 4. The arrivals as the slot begins, and 5. the slot.
        while let Some((number, arrival)) = pending.next_if(|(_, arrival)| arrival.at == now) {
            arrive(spec, &mut carriers, each, number, arrival, &mut seen);
        }
        for (c, carrier) in carriers.iter_mut().enumerate() {
            let owner = seen.plans.last().unwrap()[c][(slot % per) as usize];
            let Some(owner) = owner else { continue };
            let i = owner as usize - carrier.first;
            let mut room = spec.slot_size.get();
            let mut complete = 0;
            for (_, left, _) in &mut carrier.terminals[i].queue {
                let burst = room.min(*left);
                *left -= burst;
                room -= burst;
                if *left > 0 {
                    break;
                }
                complete += 1;
                if room == 0 {
                    break;
                }
            }
            if complete > 0 {
                ended.push((c, i, complete));
            }
        }
    }
    seen
}

fn carrier(spec: &DamaSpec, first: usize, each: usize, units: u64) -> Carrier {
    let count = each.min(spec.terminals as usize - first);
    let least = (spec.cra.as_bps() / spec.granularity.as_bps()).max(f64::from(spec.minimum));
    let given = share(&vec![round_up(least); count], u64::from(spec.minimum), units);
    let (mut before, mut turn) = (0, 0);
    let free = if spec.fca { equally(&mut turn, count, units - given.iter().sum::<u64>()) } else { vec![0; count] };
    let terminals = given.iter().zip(free).map(|(&grant, free)| {
        let credit = before * u64::from(spec.slots_per_super_frame) % units;
        before += grant + free;
        let requested = spec.cra.as_bps() / spec.granularity.as_bps();
        Terminal { grant, free, credit, requested, ..Terminal::default() }
    });
    Carrier {
        first,
        terminals: terminals.collect(),
        requests: Vec::new(),
        tbtps: Vec::new(),
        n_b: given.iter().map(|&g| least.min(g as f64)).collect(),
        turn,
    }
}

fn arrive(spec: &DamaSpec, carriers: &mut [Carrier], each: usize, number: usize, arrival: Arrival, seen: &mut Seen) {
    let terminal = &mut carriers[arrival.terminal / each].terminals[arrival.terminal % each];
    terminal.arrived += arrival.size;
    if (terminal.queue.len() as u64) < spec.queue.get() {
        terminal.queue.push_back((number, arrival.size, arrival.size));
    } else {
        seen.dropped.push((arrival.at, number));
    }
    let bytes = terminal.queue.iter().map(|&(_, _, size)| size).sum();
    let units = (terminal.grant + terminal.free) as f64;
    seen.at_arrival.push((terminal.queue.len() as u64, bytes, units, terminal.requested));
}

/// The traffic that came in T_r, in units.
fn traffic(spec: &DamaSpec, bytes: u64) -> f64 {
    let bits = bytes as f64 * 8.0;
    let t_r = f64::from(spec.slots_per_super_frame) * spec.slot_size.as_f64() * 8.0 / spec.capacity.as_bps();
    bits / t_r / spec.granularity.as_bps()
}

impl Carrier {
    fn boundary(&mut self, spec: &DamaSpec, k: i64, now: u64, boundary: &dyn Fn(i64) -> u64) -> Vec<Option<u32>> {
        let propagation = spec.propagation.as_nanos() as u64;
        let units = u64::from(spec.units());
        let n = i64::from(spec.allocation_delay);
        // The NCC answers the requests of boundary `asked` at the last boundary from which the TBTP is at
        // the terminals when super-frame `asked + n` begins.
        for asked in (k - n).max(1)..k {
            let effect = asked + n;
            let last = (0..=effect).rev().find(|&m| boundary(m) + propagation <= boundary(effect));
            if last == Some(k) && spec.release_of == ReleaseOf::Decided {
                let request = self.requests.iter().find(|request| request.of == asked).unwrap().clone();
                assert!(request.at <= now, "the request of {asked} comes too late");
                self.decide(spec, units, effect, now + propagation, &request.told);
            }
        }
        // Or when it takes effect, by the traffic of the interval that ends here.
        if spec.release_of == ReleaseOf::InForce && k > n {
            let asked = self.requests.iter().find(|request| request.of == k - n).unwrap().told.clone();
            let told: Vec<(f64, f64)> = asked
                .iter()
                .zip(&self.terminals)
                .map(|(&(request, _), terminal)| (request, traffic(spec, terminal.arrived)))
                .collect();
            self.decide(spec, units, k, now, &told);
        }
        // The TBTP of this super-frame has come.
        if let Some(tbtp) = self.tbtps.iter().find(|tbtp| tbtp.of == k) {
            assert!(tbtp.at <= now, "the TBTP of {k} comes too late");
            for (i, terminal) in self.terminals.iter_mut().enumerate() {
                (terminal.grant, terminal.free) = (tbtp.given[i], tbtp.free[i]);
            }
        }
        let plan = self.plan(spec, units);
        if k == 0 {
            return plan;
        }
        // The terminals ask.
        let mut told = Vec::new();
        for terminal in &mut self.terminals {
            let traffic = traffic(spec, terminal.arrived);
            let r = if spec.rbdc { traffic } else { 0.0 };
            let bytes: u64 = terminal.queue.iter().map(|&(_, _, size)| size).sum();
            let q = bytes as f64 * 8.0;
            let v = spec.vbdc.map_or(0.0, |t_s| q / t_s.as_secs_f64() / spec.granularity.as_bps());
            let c = spec.cra.as_bps() / spec.granularity.as_bps();
            terminal.requested = (r + v + terminal.free as f64).max(c);
            terminal.arrived = 0;
            told.push((terminal.requested, traffic));
        }
        self.requests.push(Request { of: k, at: now + propagation, told });
        plan
    }

    fn decide(&mut self, spec: &DamaSpec, units: u64, of: i64, at: u64, told: &[(f64, f64)]) {
        let minimum = f64::from(spec.minimum);
        let wanted: Vec<f64> = told
            .iter()
            .zip(&self.n_b)
            .map(|(&(request, n_l), &n_b)| {
                if request >= n_b {
                    return request.max(minimum);
                }
                let mut kept = spec.release_a * n_b + spec.release_b * (n_l - n_b);
                if kept < 1e-9 {
                    kept = 0.0;
                }
                kept.min(n_b).max(request).max(minimum)
            })
            .collect();
        let rounded: Vec<u64> = wanted.iter().map(|&w| round_up(w)).collect();
        let given = share(&rounded, u64::from(spec.minimum), units);
        self.n_b = wanted.iter().zip(&given).map(|(&w, &g)| w.min(g as f64)).collect();
        let left = units - given.iter().sum::<u64>();
        let free = if spec.fca { equally(&mut self.turn, given.len(), left) } else { vec![0; given.len()] };
        self.tbtps.push(Tbtp { of, at, given, free });
    }

    /// Fractions of slots are carried on; who came to a whole slot last waits if there are too many.
    fn plan(&mut self, spec: &DamaSpec, units: u64) -> Vec<Option<u32>> {
        let (all, per) = (spec.slots_per_super_frame, spec.slots_per_multi_frame);
        for terminal in &mut self.terminals {
            terminal.credit += (terminal.grant + terminal.free) * u64::from(all);
            terminal.slots = terminal.credit / units;
            terminal.credit %= units;
        }
        while self.terminals.iter().map(|t| t.slots).sum::<u64>() > u64::from(all) {
            let candidates = self.terminals.iter_mut().filter(|t| t.slots > 0);
            let last = candidates.min_by_key(|t| t.credit).unwrap();
            last.slots -= 1;
            last.credit += units;
        }
        // Dealt to the multi-frames in turn; in each, one after the other or in steps.
        let multi_frames = all / per;
        let mut owners = vec![None; all as usize];
        let mut place = 0;
        for (i, terminal) in self.terminals.iter().enumerate() {
            for _ in 0..terminal.slots {
                let (multi_frame, turn) = (place % multi_frames, place / multi_frames);
                let slot = match spec.layout {
                    SlotLayout::Contiguous => turn,
                    SlotLayout::Spread => (u64::from(turn) * u64::from(step(per)) % u64::from(per)) as u32,
                };
                let owner = &mut owners[(multi_frame * per + slot) as usize];
                assert_eq!(*owner, None, "a slot is given twice");
                *owner = Some((self.first + i) as u32);
                place += 1;
            }
        }
        owners
    }
}

fn step(slots: u32) -> u32 {
    let coprime = |step: u32| (2..=step).all(|d| !(step.is_multiple_of(d) && slots.is_multiple_of(d)));
    let golden = (f64::from(slots) * (5_f64.sqrt() - 1.0) / 2.0).round() as u32;
    (golden.max(1)..).find(|&step| coprime(step)).unwrap()
}

fn round_up(units: f64) -> u64 {
    (units - 1e-9).ceil() as u64
}

/// Unit by unit, all in turn; whole rounds begin with the first.
fn equally(turn: &mut usize, count: usize, left: u64) -> Vec<u64> {
    let mut free = vec![0; count];
    for unit in 0..left {
        if unit < left / count as u64 * count as u64 {
            free[unit as usize % count] += 1;
        } else {
            free[*turn] += 1;
            *turn = (*turn + 1) % count;
        }
    }
    free
}

/// The minimum for all; then unit by unit to whoever is furthest below its share of the rest.
fn share(wanted: &[u64], minimum: u64, units: u64) -> Vec<u64> {
    if wanted.iter().sum::<u64>() <= units {
        return wanted.to_vec();
    }
    let beyond: Vec<u64> = wanted.iter().map(|&want| want - minimum).collect();
    let (asked, left) = (beyond.iter().sum::<u64>(), units - minimum * wanted.len() as u64);
    let mut given: Vec<u64> = beyond.iter().map(|&want| want * left / asked).collect();
    while given.iter().sum::<u64>() < left {
        // Largest remainder first; each has at most one.
        let missing = |i: usize| (beyond[i] * left) as i64 - (given[i] * asked) as i64;
        let next = (0..given.len()).max_by_key(|&i| (missing(i), std::cmp::Reverse(i))).unwrap();
        given[next] += 1;
    }
    given.iter().map(|&more| minimum + more).collect()
}
