//! Four codes for forward error correction on the same paths: residual loss and delay. The table of
//! `docs/rtp/fec.md`.
//!
//!     cargo run --release -p fairpace-rtp --example fec_table [MEDIA-PACKETS]
//!
//! Every code is a list of linear equations over GF(2^8), coefficients 1 where the code is XOR, and one solver solves
//! all. The path loses media and repair packets alike. Time is counted in media packets: a packet recovered later than
//! `window` packets after its own place is lost.
use fairpace_units::RandomStream;
use std::collections::{BTreeMap, BTreeSet};

/// Powers and logarithms of 2 in GF(2^8) by x^8 + x^4 + x^3 + x^2 + 1 [RFC 5510 §8.1, which RFC 8681 §3.7.2 takes over].
struct Field {
    power: [u8; 510],
    log: [usize; 256],
}

impl Field {
    fn new() -> Self {
        let (mut f, mut x) = (Field { power: [0; 510], log: [0; 256] }, 1_u16);
        for i in 0..255 {
            (f.power[i], f.power[i + 255], f.log[usize::from(x)]) = (x as u8, x as u8, i);
            x = if x & 0x80 != 0 { x << 1 ^ 0x11d } else { x << 1 };
        }
        f
    }

    fn times(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 { 0 } else { self.power[self.log[usize::from(a)] + self.log[usize::from(b)]] }
    }

    fn inverse(&self, a: u8) -> u8 {
        self.power[255 - self.log[usize::from(a)]]
    }
}

type Row = BTreeMap<u64, u8>;

/// The missing packets of the equations, reduced: no pivot stands in another row.
struct Solver<'f> {
    field: &'f Field,
    rows: Vec<Row>,
}

impl Solver<'_> {
    fn subtract(&self, row: &mut Row, factor: u8, other: &Row) {
        for (&n, &c) in other {
            let sum = row.get(&n).copied().unwrap_or(0) ^ self.field.times(factor, c);
            if sum == 0 {
                row.remove(&n)
            } else {
                row.insert(n, sum)
            };
        }
    }

    /// Adds an equation over missing packets; the packets that follow.
    fn add(&mut self, mut row: Row) -> Vec<u64> {
        for other in &self.rows {
            let pivot = *other.keys().next().expect("rows are not empty");
            if let Some(&c) = row.get(&pivot) {
                self.subtract(&mut row, c, other);
            }
        }
        let Some((&pivot, &c)) = row.iter().next() else { return Vec::new() };
        let inverse = self.field.inverse(c);
        row.values_mut().for_each(|v| *v = self.field.times(*v, inverse));
        let mut rows = std::mem::take(&mut self.rows);
        for other in &mut rows {
            if let Some(&c) = other.get(&pivot) {
                self.subtract(other, c, &row);
            }
        }
        rows.push(row);
        let (solved, rest): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|r| r.len() == 1);
        self.rows = rest;
        solved.into_iter().filter_map(|r| r.into_keys().next()).collect()
    }
}

#[derive(Clone, Copy)]
enum Code {
    /// Non-interleaved: each run of 1/overhead packets.
    Rows,
    /// Interleaved: 1/overhead rows, as many columns as the window holds; a column's repair follows its last packet.
    Columns,
    /// Flexible masks, as `fec::Encoder` chooses them.
    Masks,
    /// RFC 8681: coefficients drawn from 1 to 255, over the window.
    Rlc,
}

/// Loses with probability `rate`, in bursts of `burst` packets on average; 1: each packet on its own.
struct Path {
    rate: f64,
    burst: f64,
    bad: bool,
    random: RandomStream,
}

impl Path {
    fn loses(&mut self) -> bool {
        let u = self.random.uniform();
        if self.burst <= 1.0 {
            return u < self.rate;
        }
        let change = if self.bad { 1.0 / self.burst } else { self.rate / (self.burst * (1.0 - self.rate)) };
        self.bad ^= u < change;
        self.bad
    }
}

/// Residual loss, and the mean delay of what was recovered, in media packets.
fn run(field: &Field, code: Code, window: u64, every: u64, path: &mut Path, media: u64) -> (f64, f64) {
    let mut random = RandomStream::named(1, "code");
    let mut solver = Solver { field, rows: Vec::new() };
    let mut missing: BTreeSet<u64> = BTreeSet::new();
    let (mut recovered, mut delay, mut lost) = (0_u64, 0_u64, 0_u64);
    let columns = (window / every).max(1);
    let reach = if matches!(code, Code::Masks) { window.min(110) } else { window };
    for n in 0..media {
        if path.loses() {
            missing.insert(n);
            lost += 1;
        }
        let place = n % (columns * every);
        let due = match code {
            Code::Columns => place >= columns * (every - 1),
            _ => n % every == every - 1,
        };
        if due && !path.loses() {
            let oldest = (n + 1).saturating_sub(reach);
            let cover: Vec<u64> = match code {
                Code::Rows => (n + 1 - every..=n).collect(),
                Code::Columns => (0..every).map(|d| n - d * columns).collect(),
                Code::Masks => (oldest..=n).filter(|i| n - i < every || random.bits() & 1 == 1).collect(),
                Code::Rlc => (oldest..=n).collect(),
            };
            let xor = !matches!(code, Code::Rlc);
            let mut coefficient = || if xor { 1 } else { 1 + random.below(255) as u8 };
            let row = cover.iter().map(|i| (*i, coefficient())).filter(|(i, _)| missing.contains(i)).collect();
            for solved in solver.add(row) {
                missing.remove(&solved);
                if n - solved <= window {
                    recovered += 1;
                    delay += n - solved;
                }
            }
        }
        // The decoder remembers twice the window; beyond that nothing covers a packet.
        solver.rows.retain(|r| r.keys().next().is_some_and(|first| first + 2 * window > n));
    }
    ((lost - recovered) as f64 / media as f64, delay as f64 / recovered.max(1) as f64)
}

fn main() {
    let media = std::env::args().nth(1).map_or(100_000, |n| n.parse().expect("a number of media packets"));
    let field = Field::new();
    println!("residual loss in % (mean delay of repair, in media packets), {media} media packets each\n");
    println!("| window | overhead % | loss % | burst | rows | columns | masks | RLC |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for window in [6, 25, 100, 400] {
        for every in [20, 10, 5, 3] {
            for (burst, rates) in [
                (1.0, &[0.001, 0.01, 0.03, 0.1][..]),
                (2.0, &[0.01, 0.03]),
                (5.0, &[0.01, 0.03]),
                (20.0, &[0.01, 0.03]),
            ] {
                if window < every {
                    continue;
                }
                for &rate in rates {
                    let cells = [Code::Rows, Code::Columns, Code::Masks, Code::Rlc].map(|code| {
                        let mut path = Path { rate, burst, bad: false, random: RandomStream::named(1, "path") };
                        let (residual, delay) = run(&field, code, window, every, &mut path, media);
                        format!("{:.3} ({delay:.0})", 100.0 * residual)
                    });
                    println!(
                        "| {window} | {:.0} | {:.1} | {burst} | {} |",
                        100.0 / every as f64,
                        100.0 * rate,
                        cells.join(" | ")
                    );
                }
            }
        }
    }
}
