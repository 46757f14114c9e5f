//! Products of bfloat16 blocks on machines with AVX-512 BF16, whose one instruction adds two products to each of 16 sums.
//!
//! A product of two bfloat16 numbers is exact in `f32`, so this rounds where [`super::fma`] does, and differs only in the
//! order of the sum and in taking subnormal numbers for 0, as a matrix unit does. Both sides hold pairs of elements that
//! follow each other in depth: the right side is packed into strips of 32 columns, the left side is read where it lies if
//! its pairs lie side by side.
#![allow(unsafe_code, reason = "vector intrinsics, and pointers into blocks whose bounds are asserted")]

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_loadu_si512, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_epi32, _mm512_setzero_ps,
};

use half::bf16;

use super::gemm::Target;
use super::matrix::{Source, grown};
use super::transpose::transpose_8x8;

/// Columns of a strip: two vectors.
const STRIP: usize = 32;
/// Columns of a vector.
const VECTOR: usize = 16;

/// One pair of each column of a strip. Aligned, because a vector that crosses a cache line costs two accesses.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line([u32; STRIP]);

/// Rows of a tile: with [`STRIP`], 16 of the 32 vector registers, enough for the latency of the instruction.
const ROWS: usize = 8;

/// Whether this machine can.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512bf16")
}

/// A left side whose rows hold pairs side by side, from its first element on.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) data: &'a [bf16],
    /// Distance between rows.
    pub(super) row: usize,
}

/// Writes `rows x depth` elements through `bits` row by row; a last element that has no partner is followed by 0.
pub(super) fn pack_left<T: Copy>(
    from: Source<'_, T>,
    rows: usize,
    depth: usize,
    out: &mut Vec<bf16>,
    bits: impl Fn(T) -> u16 + Copy,
) -> usize {
    let stride = depth.next_multiple_of(2);
    assert!(available(), "the caller has asked");
    // SAFETY: the machine has these features.
    unsafe { pack_rows(from, depth, grown(out, rows * stride, bf16::ZERO), bits) };
    stride
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
fn pack_rows<T: Copy>(from: Source<'_, T>, depth: usize, out: &mut [bf16], bits: impl Fn(T) -> u16 + Copy) {
    let stride = depth.next_multiple_of(2);
    for (i, out) in out.chunks_exact_mut(stride).enumerate() {
        let from_row = &from.data[i * from.row..];
        let (out, odd) = out.split_at_mut(depth);
        if from.col == 1 {
            out.iter_mut().zip(&from_row[..depth]).for_each(|(o, x)| *o = bf16::from_bits(bits(*x)));
        } else {
            let elements = from_row.iter().step_by(from.col.max(1));
            out.iter_mut().zip(elements).for_each(|(o, x)| *o = bf16::from_bits(bits(*x)));
        }
        odd.fill(bf16::ZERO);
    }
}

/// Writes `depth x width` elements through `bits` as strips of pairs. What is missing of the last strip is 0.
pub(super) fn pack_right<T: Copy>(
    from: Source<'_, T>,
    depth: usize,
    width: usize,
    out: &mut Vec<Line>,
    bits: impl Fn(T) -> u16 + Copy,
) {
    let len = width.div_ceil(STRIP) * depth.div_ceil(2);
    assert!(available(), "the caller has asked");
    // SAFETY: the machine has these features.
    unsafe { pack_strips(from, depth, width, grown(out, len, Line([0; STRIP])), bits) };
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
fn pack_strips<T: Copy>(
    from: Source<'_, T>,
    depth: usize,
    width: usize,
    out: &mut [Line],
    bits: impl Fn(T) -> u16 + Copy,
) {
    let (pairs, whole_pairs) = (depth.div_ceil(2), depth / 2);
    for (s, strip) in out.chunks_exact_mut(pairs).enumerate() {
        let columns = STRIP.min(width - s * STRIP);
        let data = &from.data[s * STRIP * from.col..];
        let one = |p: usize, j: usize| u32::from(bits(data[p * from.row + j * from.col]));
        let pair = |p: usize, j: usize| one(2 * p, j) | one(2 * p + 1, j) << 16;
        if columns < STRIP {
            strip.fill(Line([0; STRIP]));
        }
        let mut start = 0;
        if from.col == 1 {
            for (p, line) in strip.iter_mut().enumerate().take(whole_pairs) {
                let (low, high) = (&data[2 * p * from.row..], &data[(2 * p + 1) * from.row..]);
                for ((to, low), high) in line.0.iter_mut().zip(&low[..columns]).zip(&high[..columns]) {
                    *to = u32::from(bits(*low)) | u32::from(bits(*high)) << 16;
                }
            }
            start = whole_pairs;
        } else if from.row == 1 && columns == STRIP {
            // Squares of 8 are turned in registers: scattered stores would cost more than the product of a small block.
            let eights = whole_pairs / 8 * 8;
            for p in (0..eights).step_by(8) {
                for first in (0..STRIP).step_by(8) {
                    let mut square = [[0.0; 8]; 8];
                    for (j, line) in square.iter_mut().enumerate() {
                        let from = &data[(first + j) * from.col + 2 * p..][..16];
                        for (to, two) in line.iter_mut().zip(from.chunks_exact(2)) {
                            *to = f32::from_bits(u32::from(bits(two[0])) | u32::from(bits(two[1])) << 16);
                        }
                    }
                    for (i, line) in transpose_8x8(&square).iter().enumerate() {
                        let to = strip[p + i].0[first..].iter_mut();
                        to.zip(line).for_each(|(to, x)| *to = x.to_bits());
                    }
                }
            }
            start = eights;
        }
        for (p, line) in strip.iter_mut().enumerate().take(whole_pairs).skip(start) {
            for (j, to) in line.0.iter_mut().enumerate().take(columns) {
                *to = pair(p, j);
            }
        }
        if whole_pairs < pairs {
            for (j, to) in strip[whole_pairs].0.iter_mut().enumerate().take(columns) {
                *to = one(depth - 1, j);
            }
        }
    }
}

/// `c = a b` or `c += a b`, where `b` was packed with this depth and as many columns as `c` has.
///
/// # Panics
/// If a side is too small, or the machine has no AVX-512 BF16.
pub(super) fn multiply(depth: usize, a: Left<'_>, b: &[Line], accumulate: bool, c: &Target<'_>) {
    let (rows, width, pairs) = (c.rows, c.cols, depth.div_ceil(2));
    assert!(available(), "the caller has asked");
    assert!(rows > 0 && width > 0 && depth > 0, "there is something to multiply");
    assert!((rows - 1) * a.row + 2 * pairs <= a.data.len(), "the left side is inside its data");
    assert!(width.div_ceil(STRIP) * pairs <= b.len(), "the right side was packed");
    for (s, strip) in b.chunks_exact(pairs).enumerate().take(width.div_ceil(STRIP)) {
        let columns = STRIP.min(width - s * STRIP);
        for i in (0..rows).step_by(ROWS) {
            let count = ROWS.min(rows - i);
            // SAFETY: the machine has AVX-512 BF16. The assertions bound what is read of `a` (rows below `rows`, pairs below
            // `pairs`) and a strip has `pairs` lines of 32. A target holds `rows` rows of `cols` elements, `stride` apart, that
            // nothing else refers to; the tile writes `count` of them from row `i` on, and `columns` from column `32 s`.
            unsafe {
                let a = Left { data: &a.data[i * a.row..], row: a.row };
                let to = c.first.add(i * c.stride + s * STRIP);
                let tile =
                    [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>, tile::<7>, tile::<8>]
                        [count - 1];
                tile(pairs, a, strip.as_ptr(), accumulate, to, c.stride, columns);
            }
        }
    }
}

/// One tile of the result.
///
/// # Safety
/// The machine has AVX-512 BF16; `a` has `N` rows of `pairs` pairs, `b` has `pairs` lines of 32, and `c` has `N` rows of
/// `columns` elements, `stride` apart, that nothing else refers to.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn tile<const N: usize>(
    pairs: usize,
    a: Left<'_>,
    b: *const Line,
    accumulate: bool,
    c: *mut f32,
    stride: usize,
    columns: usize,
) {
    let mut sums = [[_mm512_setzero_ps(); 2]; N];
    let (mut left, mut right) = (a.data.as_ptr(), b);
    for _ in 0..pairs {
        // SAFETY: one line of `b`, and one pair of each row of `a`; a pair need not be aligned.
        unsafe {
            let (low_b, high_b) = (vector(right.cast()), vector(right.cast::<u32>().add(VECTOR)));
            for (i, [low, high]) in sums.iter_mut().enumerate() {
                let pair = left.add(i * a.row).cast::<i32>().read_unaligned();
                let x = as_pairs(_mm512_set1_epi32(pair));
                *low = _mm512_dpbf16_ps(*low, x, low_b);
                *high = _mm512_dpbf16_ps(*high, x, high_b);
            }
            // Past the end after the last round, where nothing is read any more.
            left = left.wrapping_add(2);
            right = right.wrapping_add(1);
        }
    }
    let mask = |from: usize| {
        let count = columns.saturating_sub(from).min(VECTOR);
        ((1_u32 << count) - 1) as u16
    };
    for (i, [low, high]) in sums.into_iter().enumerate() {
        for (sum, from) in [(low, 0), (high, VECTOR)] {
            // SAFETY: row `i` of `c`, of which the mask lets nothing be touched but its `columns` elements.
            unsafe {
                let to = c.add(i * stride).wrapping_add(from);
                let sum: __m512 =
                    if accumulate { _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask(from), to)) } else { sum };
                _mm512_mask_storeu_ps(to, mask(from), sum);
            }
        }
    }
}

/// A vector of pairs.
///
/// # Safety
/// There are 16 at `from`.
#[target_feature(enable = "avx512f")]
unsafe fn vector(from: *const u32) -> __m512bh {
    // SAFETY: the caller's.
    as_pairs(unsafe { _mm512_loadu_si512(from.cast()) })
}

/// The same bits, as pairs of bfloat16.
fn as_pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both types are 64 bytes of which every pattern is a value.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}
