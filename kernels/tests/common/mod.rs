//! What the tests share: numbers that any language can make again, routings, and comparing with float64.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use half::bf16;
use kernel_ir::exec::{Array, Element};

/// Element `i` of a reproducible array in [-1, 1): a mix of MurmurHash3's finaliser, the same in `oracle.py`.
pub fn noise(seed: u32, i: usize) -> f32 {
    let mut h = (i as u32).wrapping_mul(0x9e37_79b1) ^ seed.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^= h >> 16;
    (h >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// The element types of the kernels.
pub trait Number: Element + Copy {
    /// As the tests name it.
    const NAME: &'static str;
    /// Rounded to the nearest.
    fn of(x: f32) -> Self;
}
impl Number for f32 {
    const NAME: &'static str = "float32";
    fn of(x: f32) -> Self {
        x
    }
}
impl Number for bf16 {
    const NAME: &'static str = "bfloat16";
    fn of(x: f32) -> Self {
        Self::from_f32(x)
    }
}

/// A reproducible array.
pub fn array<T: Number>(seed: u32, shape: &[usize]) -> Array {
    Array::from_fn(shape, |i| T::of(noise(seed, i)))
}

/// How rows are spread over groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routing {
    /// Every row to a random group; some rows to none.
    Random,
    /// Every third group has no rows.
    Empty,
    /// All rows to the last group.
    AllInOne,
    /// No rows at all.
    None,
}

impl Routing {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Random, Self::Empty, Self::AllInOne, Self::None];

    /// Group sizes that add up to at most `m`.
    pub fn sizes(self, m: usize, g: usize) -> Vec<i32> {
        let mut sizes = vec![0; g];
        let group = |row: usize| ((noise(77, row) + 1.0) / 2.0 * g as f32) as usize;
        match self {
            Self::Random => (0..m - m / 10).for_each(|r| sizes[group(r)] += 1),
            Self::Empty => (0..m).for_each(|r| {
                let g = group(r);
                sizes[if g % 3 == 1 { g - 1 } else { g }] += 1;
            }),
            Self::AllInOne => sizes[g - 1] = m as i32,
            Self::None => {}
        }
        sizes
    }
}

/// The largest difference, as a part of the largest number expected; NaN anywhere fails.
pub fn error(got: &Array, want: &[f64]) -> f64 {
    let got = got.to_f64();
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(0.0, |a: f64, b| a.max(b.abs())).max(1e-30);
    got.iter().zip(want).fold(0.0, |worst: f64, (a, b)| {
        let e = (a - b).abs() / scale;
        if e.is_nan() { f64::INFINITY } else { worst.max(e) }
    })
}

/// What rounding explains: sums of f32 products, or one bfloat16 rounding at the end.
pub fn tolerance<T: Number>() -> f64 {
    if T::NAME == "float32" { 2e-6 } else { 4e-3 }
}
