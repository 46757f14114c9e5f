//! Products of `f32` blocks on machines with AVX2 and FMA.
//!
//! The right side is packed into strips of 16 columns, whatever its element type and order, so that it is converted
//! once and then read in sequence. A tile of 6 rows by 16 columns of the result stays in registers while it runs along a
//! strip; the left side is read where it lies, one element at a time for 16 columns.
#![allow(unsafe_code, reason = "vector intrinsics, and pointers into blocks whose bounds are asserted")]

use std::arch::x86_64::{
    _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};

use super::gemm::Target;
use super::matrix::{Dense, Source, grown};
use super::transpose::transpose_8x8;

/// Columns of a strip: two vectors.
const STRIP: usize = 16;
/// Rows of a tile: with [`STRIP`], 12 of the 16 vector registers.
const ROWS: usize = 6;

/// Whether this machine can.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// Writes `depth x width` elements through `f` as strips. What is missing of the last strip is 0.
///
/// # Panics
/// If the elements reach past the data, or the machine has no AVX2.
pub(super) fn pack<T: Copy>(
    from: Source<'_, T>,
    depth: usize,
    width: usize,
    out: &mut Vec<f32>,
    f: impl Fn(T) -> f32 + Copy,
) {
    assert!(available(), "the caller has asked");
    assert!(depth > 0 && width > 0, "there is something to pack");
    assert!(
        (depth - 1) * from.row + (width - 1) * from.col < from.data.len(),
        "the block is inside its data"
    );
    let len = width.div_ceil(STRIP) * STRIP * depth;
    // SAFETY: the machine has AVX2.
    unsafe { pack_avx2(from, depth, width, grown(out, len, 0.0), f) }
}

#[target_feature(enable = "avx2")]
fn pack_avx2<T: Copy>(
    from: Source<'_, T>,
    depth: usize,
    width: usize,
    out: &mut [f32],
    f: impl Fn(T) -> f32 + Copy,
) {
    let Source { data, row, col } = from;
    for (s, strip) in out.chunks_exact_mut(STRIP * depth).enumerate() {
        let columns = STRIP.min(width - s * STRIP);
        let first = s * STRIP * col;
        let (eights, whole) = (depth / 8 * 8, columns == STRIP);
        if col == 1 && whole {
            for (p, to) in strip.chunks_exact_mut(STRIP).enumerate() {
                let from = &data[first + p * row..][..STRIP];
                to.iter_mut().zip(from).for_each(|(to, x)| *to = f(*x));
            }
            continue;
        }
        if !whole {
            strip.fill(0.0);
        }
        let mut start = 0;
        if row == 1 && whole {
            // Squares of 8 are turned in registers: scattered stores would cost more than the product of a small block.
            for p in (0..eights).step_by(8) {
                for half in [0, 8] {
                    let mut square = [[0.0; 8]; 8];
                    for (j, line) in square.iter_mut().enumerate() {
                        let from = &data[first + (half + j) * col + p..][..8];
                        line.iter_mut().zip(from).for_each(|(to, x)| *to = f(*x));
                    }
                    for (i, line) in transpose_8x8(&square).iter().enumerate() {
                        strip[(p + i) * STRIP + half..][..8].copy_from_slice(line);
                    }
                }
            }
            start = eights;
        }
        for p in start..depth {
            for j in 0..columns {
                strip[p * STRIP + j] = f(data[first + p * row + j * col]);
            }
        }
    }
}

/// `c = a b` or `c += a b`, where `b` was packed with this depth and as many columns as `c` has.
///
/// # Panics
/// If a side is too small, or the machine has no AVX2 and FMA.
pub(super) fn multiply(depth: usize, a: Dense<'_>, b: &[f32], accumulate: bool, c: &Target<'_>) {
    let (rows, width) = (c.rows, c.cols);
    assert!(available(), "the caller has asked");
    assert!(rows > 0 && width > 0 && depth > 0, "there is something to multiply");
    assert!((rows - 1) * a.row + (depth - 1) * a.col < a.data.len(), "the left side is inside its data");
    assert!(width.div_ceil(STRIP) * STRIP * depth <= b.len(), "the right side was packed");
    for (s, strip) in b.chunks_exact(STRIP * depth).enumerate().take(width.div_ceil(STRIP)) {
        let columns = STRIP.min(width - s * STRIP);
        for i in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - i);
            // SAFETY: the machine has AVX2 and FMA. The assertions bound what is read of `a` (rows below `rows`, depth below
            // `depth`) and a strip has `depth` lines of 16. A target holds `rows` rows of `cols` elements, `stride` apart, that
            // nothing else refers to; the tile writes `count` of them from row `i` on, and `columns` from column `16 s`.
            unsafe {
                let (a, b) = (a.data.as_ptr().add(i * a.row), Strides { row: a.row, col: a.col });
                let to = c.first.add(i * c.stride + s * STRIP);
                let tile = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>][count - 1];
                tile(depth, a, b, strip.as_ptr(), accumulate, to, c.stride, columns);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Strides {
    row: usize,
    col: usize,
}

/// One tile of the result.
///
/// # Safety
/// The machine has AVX2 and FMA; `a` has `N` rows of `depth` elements at these strides, `b` has `depth` lines of 16, and
/// `c` has `N` rows of `columns` elements, `stride` apart, that nothing else refers to.
#[target_feature(enable = "avx2,fma")]
#[allow(clippy::too_many_arguments, reason = "they are registers")]
unsafe fn tile<const N: usize>(
    depth: usize,
    a: *const f32,
    strides: Strides,
    b: *const f32,
    accumulate: bool,
    c: *mut f32,
    stride: usize,
    columns: usize,
) {
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    let (mut a, mut b) = (a, b);
    for _ in 0..depth {
        // SAFETY: one line of `b`, and one element of each row of `a`.
        unsafe {
            let (left, right) = (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8)));
            for (i, [low, high]) in sums.iter_mut().enumerate() {
                let x = _mm256_broadcast_ss(&*a.add(i * strides.row));
                *low = _mm256_fmadd_ps(x, left, *low);
                *high = _mm256_fmadd_ps(x, right, *high);
            }
            // Past the end after the last round, where nothing is read any more.
            a = a.wrapping_add(strides.col);
            b = b.wrapping_add(STRIP);
        }
    }
    for (i, [low, high]) in sums.into_iter().enumerate() {
        // SAFETY: row `i` of `c`, of which nothing is touched but its `columns` elements.
        unsafe {
            let to = c.add(i * stride);
            if columns == STRIP {
                let (mut low, mut high) = (low, high);
                if accumulate {
                    low = _mm256_add_ps(low, _mm256_loadu_ps(to));
                    high = _mm256_add_ps(high, _mm256_loadu_ps(to.add(8)));
                }
                _mm256_storeu_ps(to, low);
                _mm256_storeu_ps(to.add(8), high);
                continue;
            }
            let mut line = [0.0; STRIP];
            _mm256_storeu_ps(line.as_mut_ptr(), low);
            _mm256_storeu_ps(line.as_mut_ptr().add(8), high);
            for (j, x) in line[..columns].iter().enumerate() {
                let to = to.add(j);
                *to = if accumulate { *to + x } else { *x };
            }
        }
    }
}
