//! Stochastic matrices, as far as the success process needs them.

/// States are handled in groups of so many, which a compiler puts into registers; the last is padded with zeros.
pub(super) const LANES: usize = 4;

/// A group of states.
pub(super) type Group = [f64; LANES];

/// A square matrix whose rows are distributions, or its transpose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    size: usize,
    /// By group of columns: the rows that have something there, and what.
    columns: Vec<Vec<(usize, Group)>>,
}

impl Matrix {
    /// `rows` that sum to 1 but for rounding; they are made to.
    pub(super) fn from_rows(rows: &[Vec<f64>]) -> Matrix {
        let mut columns = vec![Vec::new(); rows.len().div_ceil(LANES)];
        for (i, row) in rows.iter().enumerate() {
            let sum: f64 = row.iter().sum();
            for (column, part) in columns.iter_mut().zip(row.chunks(LANES)) {
                let mut group = [0.0; LANES];
                for (g, p) in group.iter_mut().zip(part) {
                    *g = p / sum;
                }
                if group != [0.0; LANES] {
                    column.push((i, group));
                }
            }
        }
        Matrix { size: rows.len(), columns }
    }

    /// Rows for columns, to multiply column vectors by.
    pub(super) fn transposed(&self) -> Matrix {
        let mut columns = vec![Vec::new(); self.columns.len()];
        for j in 0..self.size {
            let mut row = vec![0.0; self.size];
            for (i, group) in &self.columns[j / LANES] {
                row[*i] = group[j % LANES];
            }
            for (column, group) in columns.iter_mut().zip(groups(&row)) {
                if group != [0.0; LANES] {
                    column.push((j, group));
                }
            }
        }
        Matrix { size: self.size, columns }
    }

    /// Adds the row vector `v` times this to `to`.
    pub(super) fn add_product(&self, v: &[Group], to: &mut [Group]) {
        let v = v.as_flattened();
        for (to, column) in to.iter_mut().zip(&self.columns) {
            let mut sum = *to;
            for (i, group) in column {
                let v = v[*i];
                for (s, p) in sum.iter_mut().zip(group) {
                    *s += v * p;
                }
            }
            *to = sum;
        }
    }

    /// The row vector `v` times this.
    pub(super) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![[0.0; LANES]; self.columns.len()];
        self.add_product(&groups(v), &mut out);
        out.as_flattened()[..self.size].to_vec()
    }

    /// This, n times in a row; n at least 1.
    pub(super) fn power(&self, n: usize) -> Matrix {
        if n <= 1 {
            return self.clone();
        }
        let half = self.power(n / 2);
        let even = half.times(&half);
        if n.is_multiple_of(2) { even } else { even.times(self) }
    }

    fn times(&self, other: &Matrix) -> Matrix {
        let unit = |i: usize| (0..self.size).map(|j| f64::from(u8::from(i == j))).collect::<Vec<_>>();
        let rows: Vec<_> = (0..self.size).map(|i| other.apply(&self.apply(&unit(i)))).collect();
        Matrix::from_rows(&rows)
    }
}

/// In groups, padded.
pub(super) fn groups(v: &[f64]) -> Vec<Group> {
    let group = |part: &[f64]| {
        let mut group = [0.0; LANES];
        group[..part.len()].copy_from_slice(part);
        group
    };
    v.chunks(LANES).map(group).collect()
}

/// The stationary distribution of a chain whose recurrent states all reach each other; None of any other chain.
///
/// By the algorithm of Grassmann, Taksar and Heyman (1985): elimination without a subtraction, so that every
/// element is accurate to a few units in the last place however small it is.
pub(super) fn stationary(rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    let recurrent = recurrent(rows)?;
    let n = recurrent.len();
    let mut a: Vec<Vec<f64>> = recurrent.iter().map(|&i| recurrent.iter().map(|&j| rows[i][j]).collect()).collect();
    for k in (1..n).rev() {
        let (above, below) = a.split_at_mut(k);
        let row = &below[0];
        let out: f64 = row[..k].iter().sum();
        for r in above {
            r[k] /= out;
            let factor = r[k];
            for (x, y) in r[..k].iter_mut().zip(&row[..k]) {
                *x += factor * y;
            }
        }
    }
    let mut v = vec![1.0; n];
    for k in 1..n {
        v[k] = (0..k).map(|i| v[i] * a[i][k]).sum();
    }
    let sum: f64 = v.iter().sum();
    let mut all = vec![0.0; rows.len()];
    for (&i, v) in recurrent.iter().zip(&v) {
        all[i] = v / sum;
    }
    Some(all)
}

/// The one class of states that is never left; None if there are several.
fn recurrent(rows: &[Vec<f64>]) -> Option<Vec<usize>> {
    let reach = |from: usize| {
        let mut seen = vec![false; rows.len()];
        let mut open = vec![from];
        seen[from] = true;
        while let Some(i) = open.pop() {
            for (j, p) in rows[i].iter().enumerate() {
                if *p > 0.0 && !seen[j] {
                    seen[j] = true;
                    open.push(j);
                }
            }
        }
        seen
    };
    // From anywhere, go on to what is reached until nothing smaller is: a closed class.
    let mut class = reach(0);
    loop {
        let size = class.iter().filter(|s| **s).count();
        let inside = (0..rows.len()).filter(|&i| class[i]);
        let smaller = inside.map(reach).find(|c| c.iter().filter(|s| **s).count() < size);
        match smaller {
            Some(c) => class = c,
            None => break,
        }
    }
    let members: Vec<usize> = (0..rows.len()).filter(|&i| class[i]).collect();
    let first = *members.first()?;
    (0..rows.len()).all(|i| reach(i)[first]).then_some(members)
}
