//! Matrix products: one function over every element type, on the `matrixmultiply` crate.
//!
//! Narrow operands are widened a panel at a time, so that the panel is still in the cache when it is multiplied.
//! Integers are multiplied as floats in panels short enough to be exact.

use std::cell::RefCell;

use half::bf16;

use super::data::{Stored, round_bf16};

/// Depth of a panel. A product of `i8` is at most 2^14: 512 of them fit the 24 bits that `f32` holds exactly.
const DEPTH: usize = 512;
/// Columns of a panel of the right side.
const WIDTH: usize = 512;
/// Below this many multiplications a second thread does not pay.
const SHARE: usize = 1 << 21;

/// The elements of one side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elements<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    I32(&'a [i32]),
    I16(&'a [i16]),
    I8(&'a [i8]),
}

/// One side of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    pub(super) elements: Elements<'a>,
    /// Position of the first element.
    pub(super) offset: usize,
    /// Distance between rows.
    pub(super) row: usize,
    /// Distance between columns.
    pub(super) col: usize,
    /// Round `f32` to bfloat16.
    pub(super) round: bool,
}

impl<'a> Matrix<'a> {
    /// The matrix from this row and column on.
    const fn from(self, row: usize, col: usize) -> Self {
        Self { offset: self.offset + row * self.row + col * self.col, ..self }
    }

    /// The elements, when the multiplication can read them in place.
    const fn in_place(&self) -> Option<&'a [f32]> {
        match self.elements {
            Elements::F32(v) if !self.round => Some(v),
            _ => None,
        }
    }

    /// Writes `rows x cols` elements as `f32`, in the order in which they lie, and says with which strides.
    fn widen(&self, rows: usize, cols: usize, out: &mut Vec<f32>) -> (usize, usize) {
        out.clear();
        let by_rows = self.col <= self.row;
        let (outer, inner, step, stride) =
            if by_rows { (rows, cols, self.row, self.col) } else { (cols, rows, self.col, self.row) };
        for i in 0..outer {
            let at = self.offset + i * step;
            match self.elements {
                Elements::F32(v) if self.round => {
                    out.extend(line(v, at, stride, inner).map(|x| round_bf16(*x)));
                }
                Elements::F32(v) => out.extend(line(v, at, stride, inner).copied()),
                Elements::Bf16(v) => out.extend(line(v, at, stride, inner).map(|x| x.lane())),
                Elements::I32(v) => out.extend(line(v, at, stride, inner).map(|x| *x as f32)),
                Elements::I16(v) => out.extend(line(v, at, stride, inner).map(|x| f32::from(*x))),
                Elements::I8(v) => out.extend(line(v, at, stride, inner).map(|x| f32::from(*x))),
            }
        }
        if by_rows { (cols, 1) } else { (1, rows) }
    }

    fn int(&self, row: usize, col: usize) -> i32 {
        let at = self.offset + row * self.row + col * self.col;
        match self.elements {
            Elements::F32(v) => v[at] as i32,
            Elements::Bf16(v) => v[at].lane() as i32,
            Elements::I32(v) => v[at],
            Elements::I16(v) => i32::from(v[at]),
            Elements::I8(v) => i32::from(v[at]),
        }
    }
}

fn line<T>(v: &[T], at: usize, stride: usize, n: usize) -> impl Iterator<Item = &T> {
    v[at..].iter().step_by(stride.max(1)).take(n)
}

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
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    if threads > 1 && m * n * k >= 2 * SHARE && m >= 2 {
        // Rows of the result are split: each part is a slice of its own. The right side is packed by both.
        let parts = threads.min(m * n * k / SHARE);
        let top = (m * (parts / 2) / parts).next_multiple_of(8).min(m);
        let (above, below) = c.split_at_mut(top * n);
        rayon::join(
            || multiply(Size { m: top, ..size }, a, b, accumulate, above, parts / 2),
            || {
                let size = Size { m: m - top, ..size };
                multiply(size, a.from(top, 0), b, accumulate, below, parts - parts / 2);
            },
        );
        return;
    }
    panels(size, a, b, accumulate, c);
}

thread_local! {
    /// Widened panels of the two sides; kept, because fresh pages cost more than the multiplication of a small block.
    static PANELS: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((vec![], vec![])) };
}

fn panels(size: Size, a: Matrix<'_>, b: Matrix<'_>, accumulate: bool, c: &mut [f32]) {
    let Size { m, k, n } = size;
    if let (Some(x), Some(y)) = (a.in_place(), b.in_place()) {
        let (x, y) = (Dense::new(x, a, m, k), Dense::new(y, b, k, n));
        return sgemm(size, x, y, accumulate, c, 0);
    }
    PANELS.with_borrow_mut(|(left, right)| {
        for k0 in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - k0);
            let part = a.from(0, k0);
            let x = if let Some(v) = a.in_place() {
                Dense::new(v, part, m, depth)
            } else {
                let (row, col) = part.widen(m, depth, left);
                Dense { data: left, row, col }
            };
            for n0 in (0..n).step_by(WIDTH) {
                let width = WIDTH.min(n - n0);
                let part = b.from(k0, n0);
                let y = if let Some(v) = b.in_place() {
                    Dense::new(v, part, depth, width)
                } else {
                    let (row, col) = part.widen(depth, width, right);
                    Dense { data: right, row, col }
                };
                let size = Size { m, k: depth, n: width };
                sgemm(size, x, y, accumulate || k0 > 0, c, n0);
            }
        }
    });
}

/// One side, as `f32` in place, from its first element on.
#[derive(Clone, Copy)]
struct Dense<'a> {
    data: &'a [f32],
    row: usize,
    col: usize,
}

impl<'a> Dense<'a> {
    fn new(data: &'a [f32], m: Matrix<'_>, rows: usize, cols: usize) -> Self {
        let last = (rows - 1) * m.row + (cols - 1) * m.col;
        Self { data: &data[m.offset..=m.offset + last], row: m.row, col: m.col }
    }
}

/// Multiplies into the columns of `c` from `column` on; `c` has `c.len() / m` columns.
#[allow(unsafe_code, reason = "matrixmultiply takes pointers")]
fn sgemm(size: Size, a: Dense<'_>, b: Dense<'_>, accumulate: bool, c: &mut [f32], column: usize) {
    let Size { m, k, n } = size;
    let columns = c.len() / m;
    let reach = |x: &Dense<'_>, rows: usize, cols: usize| (rows - 1) * x.row + (cols - 1) * x.col;
    assert!(
        reach(&a, m, k) < a.data.len() && reach(&b, k, n) < b.data.len() && column + n <= columns,
        "both sides and the result are inside their slices"
    );
    let beta = if accumulate { 1.0 } else { 0.0 };
    let c = &mut c[column..];
    // SAFETY: the assertion bounds every address that the strides reach in `a` and `b`. In `c` they reach at most
    // `(m - 1) * columns + n - 1`, which is inside since `column + n <= columns`; `c` is borrowed mutably, so it
    // overlaps neither side, and its elements do not overlap one another since `n <= columns`.
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
            c.as_mut_ptr(),
            columns as isize,
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
    if let (Elements::I8(_), Elements::I8(_)) = (a.elements, b.elements) {
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
