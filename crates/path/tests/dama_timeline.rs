//! Requests, TBTPs and grants of the two configurations of [qsd Table I] as tables that a person can check.
//! `FAIRPACE_BLESS=1 cargo test -p fairpace-path --test dama_timeline` writes them anew.
//!
//! All packets fill one slot (1,504 bytes), so that everything can be counted in slots.

use fairpace_path::dama::DamaEventKind;
use fairpace_path::{Dama, DamaSpec, Plain};
use fairpace_units::{Bytes, Instant, Rate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The doings of one terminal at one boundary.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    at: Instant,
    traffic: f64,
    queue: u64,
    asked: f64,
    answered: f64,
    from: Instant,
    grant: f64,
    slots: u32,
}

/// Pushes `(terminal, super-frame, packets)`, evenly over the super-frame, and gives the rows of the terminals
/// by boundary.
fn run(spec: &DamaSpec, traffic: &[(u32, u64, u64)], super_frames: u64) -> BTreeMap<(u32, u64), Row> {
    let mut dama = Dama::new(spec, 1, "dama").unwrap();
    dama.record_events(true);
    let t_b = spec.super_frame().as_nanos() as u64;
    let mut pushes: Vec<(u64, u32)> = traffic
        .iter()
        .flat_map(|&(terminal, k, packets)| {
            // In the middle of each part, so that none is near a boundary.
            (0..packets).map(move |i| (k * t_b + (2 * i + 1) * t_b / (2 * packets), terminal))
        })
        .collect();
    pushes.sort_unstable();
    for (at, terminal) in pushes {
        dama.push(Instant::from_nanos(at), terminal, Plain::new(Bytes::new(1_504)));
    }
    dama.advance(Instant::from_nanos(super_frames * t_b + t_b / 2));
    let units = |rate: Rate| rate.as_bps() / spec.granularity.as_bps();
    let mut rows: BTreeMap<(u32, u64), Row> = BTreeMap::new();
    while let Some(event) = dama.take_event() {
        let k = (event.at.as_nanos() + t_b / 2) / t_b;
        let row = rows.entry((event.terminal, k)).or_default();
        row.at = event.at;
        match event.what {
            DamaEventKind::Request { traffic, queue, rate, .. } => {
                (row.traffic, row.queue, row.asked) = (units(traffic), queue.get() / 1_504, units(rate));
            }
            DamaEventKind::Tbtp { rate, from } => (row.answered, row.from) = (units(rate), from),
            DamaEventKind::Grant { rate, slots } => (row.grant, row.slots) = (units(rate), slots),
            DamaEventKind::QuickStart(_) => {}
        }
    }
    assert_eq!(dama.events_lost(), 0);
    rows
}

fn table(title: &str, rows: &BTreeMap<(u32, u64), Row>) -> String {
    let ms = |at: Instant| at.as_nanos() as f64 / 1e6;
    let mut text = format!(
        "# {title}\n\
         # In units of 44 kbit/s, the queue in slots. At boundary k: the traffic of the interval that ends and the\n\
         # request for it are told; the TBTP of the super-frame that begins at `from` is sent; grant and slots are\n\
         # those of the super-frame that begins. Terminals without traffic have their minimum, one unit.\n\
         terminal    k      at/ms  traffic  queue  request     TBTP    from/ms    grant    slots\n"
    );
    let rest = |row: &Row| (row.traffic, row.queue, row.answered, row.grant, row.slots);
    let active = |of: u32| rows.iter().any(|(&(terminal, _), row)| terminal == of && row.traffic > 0.0);
    let mut last = None;
    for (&(terminal, k), row) in rows {
        if !active(terminal) {
            continue;
        }
        // Once nothing changes any more there is nothing to see.
        if last == Some((terminal, rest(row))) && row.traffic == 0.0 && row.queue == 0 && row.grant == row.answered {
            continue;
        }
        last = Some((terminal, rest(row)));
        let (at, from) = (ms(row.at), ms(row.from));
        let Row { traffic, queue, asked, answered, grant, slots, .. } = row;
        let _ = writeln!(
            text,
            "{terminal:>8} {k:>4} {at:>10.2} {traffic:>8.2} {queue:>6} {asked:>8.2} {answered:>8.0} {from:>10.2} {grant:>8.0} {slots:>8}"
        );
    }
    text
}

/// Compares with `tests/golden/<name>`, or writes it.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("FAIRPACE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "{} differs; FAIRPACE_BLESS=1 writes it anew:\n{text}", path.display());
}

/// The values of one column over `k`.
fn column<T>(
    rows: &BTreeMap<(u32, u64), Row>,
    terminal: u32,
    ks: std::ops::RangeInclusive<u64>,
    of: fn(&Row) -> T,
) -> Vec<T> {
    ks.map(|k| of(&rows[&(terminal, k)])).collect()
}

#[test]
fn large_frame_a_request_is_answered_two_super_frames_later_and_released_by_halves() {
    // One unit is 144 slots / 144 = 1 slot per multi-frame, 3 per super-frame. 24 slots of traffic in each of
    // the super-frames 0, 1, 2: R = 8 units, asked for at the boundaries 1, 2, 3. T_p = 252 ms is less than
    // T_b = 820 ms, so the TBTP goes out one boundary before it holds (d = 1), and n = 2.
    let rows = run(&DamaSpec::large(), &[(0, 0, 24), (0, 1, 24), (0, 2, 24)], 16);
    golden("dama-large.txt", &table("large frame: 24 slots of traffic in each of three super-frames", &rows));
    assert_eq!(column(&rows, 0, 1..=4, |r| r.asked.round()), [8.0, 8.0, 8.0, 0.0]);
    assert_eq!(column(&rows, 0, 1..=4, |r| r.answered.round()), [1.0, 8.0, 8.0, 8.0]);
    // Granted at 1 + 2 .. 3 + 2. Then nothing is asked for: 8 -> 4 -> 2 -> 1, which is the minimum too.
    assert_eq!(column(&rows, 0, 1..=8, |r| r.grant.round()), [1.0, 1.0, 8.0, 8.0, 8.0, 4.0, 2.0, 1.0]);
    assert_eq!(column(&rows, 0, 3..=8, |r| r.slots), [24, 24, 24, 12, 6, 3]);
    // In: 24 in each of 0, 1, 2. Out: the 3 slots of terminal 0 are the first of each multi-frame, the first
    // of super-frame 0 before any packet. So 2, 3, 3, then 24, 24, and the remaining 16 of 72.
    assert_eq!(column(&rows, 0, 1..=6, |r| r.queue), [22, 43, 64, 40, 16, 0]);
}

#[test]
fn small_frame_a_request_is_answered_six_super_frames_later_and_fractions_of_slots_are_carried_on() {
    // One unit is 72 slots / 144 = half a slot per super-frame. 12 slots in each of 0, 1, 2: R = 24 units.
    // T_p = 252 ms takes d = 2 super-frames of 137 ms, n = 6: asked at 1, sent at 5, in force at 7.
    let rows = run(&DamaSpec::small(), &[(0, 0, 12), (0, 1, 12), (0, 2, 12)], 24);
    golden("dama-small.txt", &table("small frame: 12 slots of traffic in each of three super-frames", &rows));
    assert_eq!(column(&rows, 0, 1..=4, |r| r.asked.round()), [24.0, 24.0, 24.0, 0.0]);
    assert_eq!(column(&rows, 0, 4..=8, |r| r.answered.round()), [1.0, 24.0, 24.0, 24.0, 12.0]);
    let grants = column(&rows, 0, 6..=15, |r| r.grant.round());
    // 24 -> 12 -> 6 -> 3 -> 1.5 -> 0.75; rounded up to whole units.
    assert_eq!(grants, [1.0, 24.0, 24.0, 24.0, 12.0, 6.0, 3.0, 2.0, 1.0, 1.0]);
    // Half a slot per unit. The odd unit of the super-frames 0 to 6 leaves half a slot, so that 3 units of 12
    // make 2 slots; 2 units of 13 make 1; the two of 14 and 15 make one together.
    assert_eq!(column(&rows, 0, 7..=15, |r| r.slots), [12, 12, 12, 6, 3, 2, 1, 0, 1]);
}

#[test]
fn over_capacity_everyone_has_the_minimum_and_the_rest_is_shared_in_proportion() {
    // A carrier of 10 units, 3 slots each. Asked for: 9, 6, 3, together 18. Minimum 1 each; 7 are left for
    // the 8, 5, 2 wanted beyond it: 3.73, 2.33, 0.93. Whole ones 3, 2, 0; the two left go to the largest
    // remainders, those of terminals 2 and 0. So 1 + 4, 1 + 2, 1 + 1.
    let spec = DamaSpec {
        terminals: 3,
        capacity: Rate::kbps(440.0),
        slots_per_multi_frame: 30,
        slots_per_super_frame: 30,
        ..DamaSpec::large()
    };
    let traffic = [(0, 0, 27), (1, 0, 18), (2, 0, 9), (0, 1, 27), (1, 1, 18), (2, 1, 9), (0, 2, 3)];
    let rows = run(&spec, &traffic, 8);
    golden(
        "dama-over-capacity.txt",
        &table("a carrier of ten units, three slots each; 9, 6 and 3 units wanted", &rows),
    );
    for (terminal, asked, granted) in [(0, 9.0, 5.0), (1, 6.0, 3.0), (2, 3.0, 2.0)] {
        assert_eq!(column(&rows, terminal, 1..=2, |r| r.asked.round()), [asked, asked]);
        assert_eq!(column(&rows, terminal, 3..=4, |r| r.grant.round()), [granted, granted]);
    }
    // Then 1, 0, 0 are asked for. Released from what was granted: 5 + (1 - 5)/2 = 3, 3/2 = 1.5, 2/2 = 1.
    let at_5: Vec<f64> = (0..3).map(|terminal| rows[&(terminal, 5)].grant.round()).collect();
    assert_eq!(at_5, [3.0, 2.0, 1.0]);
}
