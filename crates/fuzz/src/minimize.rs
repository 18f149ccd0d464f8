//! Smaller inputs that show the same.

/// The input with pieces left out and bytes set to zero for as long as `shows` holds, in at most so many tries.
pub(crate) fn minimize(input: &[u8], tries: usize, mut shows: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let (mut best, mut left) = (input.to_vec(), tries);
    let mut attempt = |smaller: Vec<u8>, best: &mut Vec<u8>| {
        if left == 0 || smaller == *best {
            return false;
        }
        left -= 1;
        let good = shows(&smaller);
        if good {
            *best = smaller;
        }
        good
    };
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            let end = (at + size).min(best.len());
            if !attempt([&best[..at], &best[end..]].concat(), &mut best) {
                at = end;
            }
        }
        size /= 2;
    }
    for at in 0..best.len() {
        let mut plain = best.clone();
        plain[at] = if plain[at].is_ascii_graphic() && plain[at] != b'0' { b'0' } else { 0 };
        attempt(plain, &mut best);
    }
    best
}
