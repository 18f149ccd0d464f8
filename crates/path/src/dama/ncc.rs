//! The arithmetic of asking and giving, without time: eq. (1), eq. (2), the shares of a full carrier,
//! and the fraction of a slot that is carried on. All in units.
//!
//! Read first: the head of `crates/path/src/dama.rs`.

/// The tolerance for binary fractions: a unit counts as begun only if more than this of it is used.
const BEGUN: f64 = 1e-9;

/// R_req(t) = max{ R(t) + q(t)/T_s + F, C } [qsd eq. (1)].
pub(crate) fn requested(r: f64, q_by_t_s: f64, f: f64, c: f64) -> f64 {
    (r + q_by_t_s + f).max(c)
}

/// How a grant falls when less is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) a: f64,
    pub(super) b: f64,
    /// The capacity that every terminal keeps.
    pub(super) minimum: f64,
}

impl Release {
    /// The NCC's grant to a terminal that asks for `request`, had `n_b` and sent `n_l`: a rise at once, and
    /// N_B(t_{n+1}) = a N_B(t_n) + b [N_L(t_n) - N_B(t_n)] if it is less [qsd eq. (2)]; never more than before, and
    /// never below the request or the minimum.
    pub(super) fn wanted(self, request: f64, n_b: f64, n_l: f64) -> f64 {
        let kept = if request < n_b { (self.a * n_b + self.b * (n_l - n_b)).min(n_b) } else { request };
        // Who keeps next to nothing keeps nothing: halving would never end.
        let kept = if kept < BEGUN { 0.0 } else { kept };
        kept.max(request).max(self.minimum)
    }
}

/// That many whole units hold it; of more than can be counted, as many as can.
pub(super) fn whole_units(wanted: f64) -> u32 {
    let whole = (wanted - BEGUN) as u32;
    whole.saturating_add(u32::from(f64::from(whole) < wanted - BEGUN))
}

/// Shares `units` among those who want more than that together: everyone's minimum first, the rest in
/// proportion to what they want beyond it, the last ones by the largest remainder, of equals the first.
/// `wanted` becomes what each is given. `order` is scratch.
pub(super) fn share(wanted: &mut [u32], minimum: u32, units: u32, order: &mut Vec<(u64, u32)>) {
    let beyond = |want: u32| u64::from(want.saturating_sub(minimum));
    let asked: u64 = wanted.iter().map(|&want| beyond(want)).sum();
    let left = u64::from(units).saturating_sub(u64::from(minimum) * wanted.len() as u64);
    if asked <= left {
        return;
    }
    order.clear();
    let mut given = 0;
    for (i, want) in wanted.iter_mut().enumerate() {
        let product = beyond(*want) * left;
        *want = minimum + (product / asked) as u32;
        given += product / asked;
        order.push((asked - product % asked, i as u32));
    }
    for &(_, i) in least(order, (left - given) as usize) {
        wanted[i as usize] += 1;
    }
}

/// The `count` least of `order`, which are all different.
pub(super) fn least(order: &mut [(u64, u32)], count: usize) -> &[(u64, u32)] {
    if count < order.len() {
        order.select_nth_unstable(count);
    }
    &order[..count.min(order.len())]
}
