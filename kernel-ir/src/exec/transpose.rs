//! Turns a square of 8 by 8 elements in vector registers: scattered stores would cost more than the product of a small
//! block.
#![allow(unsafe_code, reason = "vector intrinsics on arrays whose length is in their type")]

use std::arch::x86_64::{
    _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
    _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

/// Line `i` of the result is column `i`.
#[target_feature(enable = "avx2")]
pub(super) fn transpose_8x8(square: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    // SAFETY: each line has 8 elements.
    let line = |i: usize| unsafe { _mm256_loadu_ps(square[i].as_ptr()) };
    let pairs = |i: usize| (line(2 * i), line(2 * i + 1));
    let mut halves = [_mm256_setzero_ps(); 8];
    for i in 0..4 {
        let (a, b) = pairs(i);
        (halves[2 * i], halves[2 * i + 1]) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    }
    let mut quarters = [_mm256_setzero_ps(); 8];
    for i in 0..2 {
        for j in 0..2 {
            let (a, b) = (halves[4 * i + j], halves[4 * i + j + 2]);
            quarters[4 * i + 2 * j] = _mm256_shuffle_ps::<0x44>(a, b);
            quarters[4 * i + 2 * j + 1] = _mm256_shuffle_ps::<0xee>(a, b);
        }
    }
    let mut out = [[0.0; 8]; 8];
    for i in 0..4 {
        let (a, b) = (quarters[i], quarters[4 + i]);
        let (low, high) = (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
        // SAFETY: each line has 8 elements.
        unsafe {
            _mm256_storeu_ps(out[i].as_mut_ptr(), low);
            _mm256_storeu_ps(out[4 + i].as_mut_ptr(), high);
        }
    }
    out
}
