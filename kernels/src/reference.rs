//! What the kernels compute, in naive `f64`: the numbers that tests and the demo compare with.
//!
//! Arrays are row-major slices; sizes are given where a slice does not say them.

/// `x[m, k] y[k, n] -> [m, n]`
pub fn matmul(x: &[f64], y: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        add_row(&mut out[i * n..(i + 1) * n], &x[i * k..(i + 1) * k], y, Layout::Kn);
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Kn,
    Nk,
}

/// `out[n] += x[k] w`, with `w` as `[k, n]` or `[n, k]`.
fn add_row(out: &mut [f64], x: &[f64], w: &[f64], layout: Layout) {
    let (k, n) = (x.len(), out.len());
    match layout {
        Layout::Kn => {
            for (row, x) in w.chunks_exact(n).zip(x) {
                for (o, w) in out.iter_mut().zip(row) {
                    *o += x * w;
                }
            }
        }
        Layout::Nk => {
            for (row, o) in w.chunks_exact(k).zip(out) {
                *o += row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
            }
        }
    }
}

/// The group that each of `m` rows belongs to; `None` for rows after the last group.
pub fn group_of_rows(group_sizes: &[i32], m: usize) -> Vec<Option<usize>> {
    let sizes = group_sizes.iter().enumerate();
    let rows = sizes.flat_map(|(g, n)| std::iter::repeat_n(Some(g), usize::try_from(*n).unwrap_or(0)));
    rows.chain(std::iter::repeat(None)).take(m).collect()
}

/// `lhs[m, k] rhs[g] -> [m, n]` by row; rhs is `[g, n, k]`, or `[g, k, n]` when `gkn`. Rows of no group are zero.
pub fn ragged_dot(
    lhs: &[f64],
    rhs: &[f64],
    group_sizes: &[i32],
    [m, k, n]: [usize; 3],
    gkn: bool,
) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for (i, g) in group_of_rows(group_sizes, m).into_iter().enumerate() {
        if let Some(g) = g {
            let w = &rhs[g * n * k..(g + 1) * n * k];
            let layout = if gkn { Layout::Kn } else { Layout::Nk };
            add_row(&mut out[i * n..(i + 1) * n], &lhs[i * k..(i + 1) * k], w, layout);
        }
    }
    out
}

/// `lhs[m, k], grad[m, n] -> [g, k, n]`: for each group the sum over its rows of their outer products.
pub fn tgmm(lhs: &[f64], grad: &[f64], group_sizes: &[i32], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; group_sizes.len() * k * n];
    for (i, g) in group_of_rows(group_sizes, m).into_iter().enumerate() {
        let Some(g) = g else { break };
        let row = &grad[i * n..(i + 1) * n];
        for (c, x) in lhs[i * k..(i + 1) * k].iter().enumerate() {
            let at = (g * k + c) * n;
            for (o, y) in out[at..at + n].iter_mut().zip(row) {
                *o += x * y;
            }
        }
    }
    out
}

/// The sizes of an attention problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttentionSizes {
    /// Query heads.
    pub hq: usize,
    /// Key heads; a divisor of `hq`.
    pub hkv: usize,
    /// Query rows.
    pub s: usize,
    /// Keys.
    pub t: usize,
    /// Length of a head.
    pub d: usize,
}

/// `softmax(q k^T scale) v` with `q[hq, s, d]`, `k` and `v` `[hkv, t, d]`; `causal` hides keys after the row's index.
pub fn attention(q: &[f64], k: &[f64], v: &[f64], a: AttentionSizes, scale: f64, causal: bool) -> Vec<f64> {
    let AttentionSizes { hq, hkv, s, t, d } = a;
    let mut out = vec![0.0; hq * s * d];
    for (row, (q, out)) in q.chunks_exact(d).zip(out.chunks_exact_mut(d)).enumerate() {
        let (h, i) = (row / s, row % s);
        let head = h * hkv / hq;
        let rows =
            |x: &[f64], j: usize| -> Vec<f64> { x[(head * t + j) * d..(head * t + j + 1) * d].to_vec() };
        let seen = if causal { t.min(i + 1) } else { t };
        let score = |j| scale * rows(k, j).iter().zip(q).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<f64> = (0..seen).map(score).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        for (j, w) in weights.iter().enumerate() {
            for (o, x) in out.iter_mut().zip(rows(v, j)) {
                *o += w / total * x;
            }
        }
    }
    out
}
