//! Matrix products: one function over every element type, on the best that the machine has: `bf16_pairs` for what
//! bfloat16 holds, [`super::fma`], or the `matrixmultiply` crate.
//!
//! Narrow operands are widened a panel at a time, so that the panel is still in the cache when it is multiplied.
//! Integers are multiplied as floats in panels short enough to be exact.

use std::cell::RefCell;
use std::marker::PhantomData;

use half::bf16;

#[cfg(target_arch = "x86_64")]
use super::bf16_pairs;
#[cfg(target_arch = "x86_64")]
use super::fma;
use super::matrix::{Dense, Elements, Matrix};

/// Depth of a panel. A product of `i8` is at most 2^14: 512 of them fit the 24 bits that `f32` holds exactly.
const DEPTH: usize = 512;
/// Columns of a panel of the right side: with [`DEPTH`], half a MiB of `f32`.
const WIDTH: usize = 256;
/// The fewest rows or columns that a thread is given.
const LEAST: usize = 32;
/// Fewer multiplications than this do not pay for a thread.
const SHARE: usize = 1 << 20;

/// Sizes of a product `[m, k] x [k, n]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// `c = a b`, or `c += a b` when `accumulate`; `c` is dense, row-major. Uses up to `threads` threads.
pub(super) fn multiply(
    size: Size,
    a: Matrix<'_>,
    b: Matrix<'_>,
    accumulate: bool,
    c: &mut [f32],
    threads: usize,
) {
    let Size { m, k, n } = size;
    assert_eq!(c.len(), m * n, "the result is dense");
    if k == 0 && !accumulate {
        c.fill(0.0);
    }
    if m > 0 && n > 0 && k > 0 {
        let parts = threads.min(m * n * k / SHARE).max(1);
        share(size, a, b, accumulate, Target::new(c, n), parts);
    }
}

/// Splits the result among threads.
fn share(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, c: Target<'_>, parts: usize) {
    let Size { m, n, .. } = size;
    // Each part packs the side that is not split: split the longer one.
    if parts < 2 || m.max(n) < 2 * LEAST {
        return panels(size, a, b, accumulate, c);
    }
    let (half, rest) = (parts / 2, parts - parts / 2);
    let cut = |len: usize| (len * half / parts).next_multiple_of(LEAST).min(len);
    if n >= m {
        let at = cut(n);
        let (left, right) = c.split_columns(at);
        rayon::join(
            || share(Size { n: at, ..size }, a, b, accumulate, left, half),
            || share(Size { n: n - at, ..size }, a, b.from(0, at), accumulate, right, rest),
        );
    } else {
        let at = cut(m);
        let (above, below) = c.split_rows(at);
        rayon::join(
            || share(Size { m: at, ..size }, a, b, accumulate, above, half),
            || share(Size { m: m - at, ..size }, a.from(at, 0), b, accumulate, below, rest),
        );
    }
}

thread_local! {
    /// Widened panels of the two sides; kept, because fresh pages cost more than the multiplication of a small block.
    static PANELS: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((vec![], vec![])) };
}

#[cfg(target_arch = "x86_64")]
thread_local! {
    /// The same for [`bf16_pairs`].
    static PAIRS: RefCell<(Vec<bf16>, Vec<bf16_pairs::Line>)> = const { RefCell::new((vec![], vec![])) };
}

/// Depth of a panel for [`bf16_pairs`]: half of the first-level cache for a strip of 32 columns.
#[cfg(target_arch = "x86_64")]
const PAIRS_DEPTH: usize = 256;

/// Depth of a panel for [`fma`]: a strip of 16 columns then fits the first-level cache beside what it meets.
#[cfg(target_arch = "x86_64")]
const FMA_DEPTH: usize = 256;

#[cfg(target_arch = "x86_64")]
fn fma_panels(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, mut c: Target<'_>) {
    let Size { m, k, n } = size;
    PANELS.with_borrow_mut(|(left, right)| {
        for k0 in (0..k).step_by(FMA_DEPTH) {
            let depth = FMA_DEPTH.min(k - k0);
            let x = Dense::of(a.from(0, k0), m, depth, left);
            for n0 in (0..n).step_by(WIDTH) {
                let width = WIDTH.min(n - n0);
                b.from(k0, n0).pack(depth, width, right);
                fma::multiply(depth, x, right, accumulate || k0 > 0, &c.columns(n0, width));
            }
        }
    });
}

#[cfg(target_arch = "x86_64")]
fn pair_panels(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, mut c: Target<'_>) {
    let Size { m, k, n } = size;
    PAIRS.with_borrow_mut(|(left, right)| {
        for k0 in (0..k).step_by(PAIRS_DEPTH) {
            let depth = PAIRS_DEPTH.min(k - k0);
            let x = a.from(0, k0).rows_of_pairs(m, depth, left);
            for n0 in (0..n).step_by(WIDTH) {
                let width = WIDTH.min(n - n0);
                b.from(k0, n0).pack_pairs(depth, width, right);
                bf16_pairs::multiply(depth, x, right, accumulate || k0 > 0, &c.columns(n0, width));
            }
        }
    });
}

fn panels(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, c: Target<'_>) {
    #[cfg(target_arch = "x86_64")]
    if a.fits_bf16() && b.fits_bf16() && bf16_pairs::available() {
        return pair_panels(size, a, b, accumulate, c);
    }
    #[cfg(target_arch = "x86_64")]
    if fma::available() {
        return fma_panels(size, a, b, accumulate, c);
    }
    portable_panels(size, a, b, accumulate, c);
}

fn portable_panels(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, mut c: Target<'_>) {
    let Size { m, k, n } = size;
    if let (Some(x), Some(y)) = (a.in_place(), b.in_place()) {
        let (x, y) = (Dense::new(x, a, m, k), Dense::new(y, b, k, n));
        return sgemm(k, x, y, accumulate, c);
    }
    PANELS.with_borrow_mut(|(left, right)| {
        for k0 in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - k0);
            let x = Dense::of(a.from(0, k0), m, depth, left);
            for n0 in (0..n).step_by(WIDTH) {
                let width = WIDTH.min(n - n0);
                let y = Dense::of(b.from(k0, n0), depth, width, right);
                sgemm(depth, x, y, accumulate || k0 > 0, c.columns(n0, width));
            }
        }
    });
}

/// Some rows and columns of a result.
pub(super) struct Target<'a> {
    pub(super) first: *mut f32,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Distance between rows.
    pub(super) stride: usize,
    whole: PhantomData<&'a mut [f32]>,
}

// SAFETY: a target is a mutable borrow of its elements; no other target has any of them.
#[allow(unsafe_code, reason = "parts of one result go to several threads")]
unsafe impl Send for Target<'_> {}

impl<'a> Target<'a> {
    fn new(c: &'a mut [f32], cols: usize) -> Self {
        let rows = c.len() / cols;
        Self { first: c.as_mut_ptr(), rows, cols, stride: cols, whole: PhantomData }
    }

    /// The columns before `at`, and the others.
    fn split_columns(self, at: usize) -> (Self, Self) {
        assert!(at < self.cols, "both parts have columns");
        let right = Self { first: self.first.wrapping_add(at), cols: self.cols - at, ..self };
        (Self { cols: at, ..right.beside(self.first) }, right)
    }

    /// The rows before `at`, and the others.
    fn split_rows(self, at: usize) -> (Self, Self) {
        assert!(at < self.rows, "both parts have rows");
        let below = Self { first: self.first.wrapping_add(at * self.stride), rows: self.rows - at, ..self };
        (Self { rows: at, ..below.beside(self.first) }, below)
    }

    /// Another part of the same result.
    const fn beside(&self, first: *mut f32) -> Self {
        Self { first, rows: self.rows, cols: self.cols, stride: self.stride, whole: PhantomData }
    }

    /// Some of the columns, while the others are not touched.
    fn columns(&mut self, at: usize, cols: usize) -> Target<'_> {
        assert!(at + cols <= self.cols, "the columns are part of the target");
        Target { cols, ..self.beside(self.first.wrapping_add(at)) }
    }
}

/// `c = a b` or `c += a b`, on this thread.
#[allow(unsafe_code, reason = "matrixmultiply takes pointers")]
fn sgemm(k: usize, a: Dense<'_>, b: Dense<'_>, accumulate: bool, c: Target<'_>) {
    let (m, n) = (c.rows, c.cols);
    let reach = |x: &Dense<'_>, rows: usize, cols: usize| (rows - 1) * x.row + (cols - 1) * x.col;
    assert!(
        reach(&a, m, k) < a.data.len() && reach(&b, k, n) < b.data.len(),
        "both sides are inside their slices"
    );
    let beta = if accumulate { 1.0 } else { 0.0 };
    // SAFETY: the assertion bounds every address that the strides reach in `a` and `b`. A target holds `rows` rows of
    // `cols` elements, `stride >= cols` apart, of a slice that it borrows mutably (`new`, and splits that only shrink
    // it), so the result is inside its allocation, overlaps neither side, and no other thread has these elements.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.data.as_ptr(),
            a.row as isize,
            a.col as isize,
            b.data.as_ptr(),
            b.row as isize,
            b.col as isize,
            beta,
            c.first,
            c.stride as isize,
            1,
        );
    }
}

/// `c = a b` or `c += a b` in 32-bit integers; overflow wraps.
pub(super) fn multiply_int(
    size: Size,
    a: Matrix<'_>,
    b: Matrix<'_>,
    accumulate: bool,
    c: &mut [i32],
    threads: usize,
) {
    let Size { m, k, n } = size;
    assert_eq!(c.len(), m * n, "the result is dense");
    if !accumulate {
        c.fill(0);
    }
    let narrow = |m: &Matrix<'_>| matches!(m.elements, Elements::I8(_) | Elements::I4(_));
    if narrow(&a) && narrow(&b) {
        let mut part = vec![0.0; m * n];
        for k0 in (0..k).step_by(DEPTH) {
            let size = Size { k: DEPTH.min(k - k0), ..size };
            multiply(size, a.from(0, k0), b.from(k0, 0), false, &mut part, threads);
            for (c, p) in c.iter_mut().zip(&part) {
                *c = c.wrapping_add(*p as i32);
            }
        }
        return;
    }
    for i in 0..m {
        for j in 0..n {
            let products = (0..k).map(|p| a.int(i, p).wrapping_mul(b.int(p, j)));
            c[i * n + j] = products.fold(c[i * n + j], i32::wrapping_add);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrix::Rounding;
    use super::*;

    /// Small integers, as good as random: every product and sum of them is exact.
    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 17) as f32 - 8.0).collect()
    }

    #[test]
    fn both_ways_to_multiply_are_exact_for_any_size_order_and_type() {
        type Way = fn(Size, Matrix<'_>, Matrix<'_>, bool, Target<'_>);
        let mut ways: Vec<Way> = vec![portable_panels];
        #[cfg(target_arch = "x86_64")]
        {
            if fma::available() {
                ways.push(fma_panels);
            }
            if bf16_pairs::available() {
                ways.push(pair_panels);
            }
        }
        for [m, k, n] in [[1, 1, 1], [6, 8, 16], [7, 9, 17], [13, 300, 40], [5, 520, 270], [64, 24, 8]] {
            for turn in 0..16 {
                // A margin around the block: what is beside it must not be read.
                let matrix = |rows: usize, cols: usize, by_rows: bool, seed: usize| {
                    let (row, col) = if by_rows { (cols + 3, 1) } else { (1, rows + 2) };
                    let offset = 5;
                    let mut data = vec![f32::NAN; offset + rows.max(cols) * (rows.max(cols) + 3)];
                    let values = numbers(rows * cols, seed);
                    for (i, x) in values.iter().enumerate() {
                        data[offset + i / cols * row + i % cols * col] = *x;
                    }
                    (data, values, offset, row, col)
                };
                let (x, a, xo, xr, xc) = matrix(m, k, turn & 1 == 0, 1);
                let (y, b, yo, yr, yc) = matrix(k, n, turn & 2 == 0, 2);
                let accumulate = turn & 4 == 0;
                let narrow: Vec<bf16> = y.iter().map(|y| bf16::from_f32(*y)).collect();
                let short: Vec<bf16> = x.iter().map(|x| bf16::from_f32(*x)).collect();
                let half = turn & 8 == 0;
                let left = if half { Elements::Bf16(&short) } else { Elements::F32(&x) };
                let right = if half { Elements::Bf16(&narrow) } else { Elements::F32(&y) };
                let lhs = Matrix { elements: left, offset: xo, row: xr, col: xc, rounding: Rounding::Done };
                let rhs = Matrix { elements: right, offset: yo, row: yr, col: yc, rounding: Rounding::Done };
                let start = numbers(m * n, 3);
                let want: Vec<f32> = (0..m * n)
                    .map(|i| {
                        let sum: f32 = (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
                        if accumulate { start[i] + sum } else { sum }
                    })
                    .collect();
                for (which, way) in ways.iter().enumerate() {
                    let mut c = start.clone();
                    way(Size { m, k, n }, lhs, rhs, accumulate, Target::new(&mut c, n));
                    assert!(c == want, "way {which} of {m}x{k}x{n}, turn {turn}");
                }
            }
        }
    }
}
