//! Transcendental functions in `f32`: branch-free where loops over tiles must run at vector speed. Sums of products are
//! rounded once (`mul_add`) on every machine, so that all give the same bits; those without the instruction are slower.

use std::f32::consts::LOG2_E;

/// Adding and taking away this number rounds to an integer, for numbers below 2^22.
const ROUND: f32 = 12_582_912.0;

/// `2^n` for `-126 <= n <= 127`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// `e^x`, within 1.5 units in the last place; Cody and Waite's reduction by `ln 2`, then a polynomial.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Beyond these the result is 0 or infinite; comparisons keep NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let t = x.mul_add(LOG2_E, ROUND);
    let n = t - ROUND;
    // ln 2 in two parts: the first has few bits, so that its product with `n` is exact.
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let n = (t.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    scale(exp_small(r), n)
}

/// `e^r` for `|r| <= ln(2) / 2`; Taylor's series, seven terms, is exact to 2^-27 there.
#[inline(always)]
fn exp_small(r: f32) -> f32 {
    let mut p = 1.0_f32 / 5040.0;
    p = p.mul_add(r, 1.0 / 720.0);
    p = p.mul_add(r, 1.0 / 120.0);
    p = p.mul_add(r, 1.0 / 24.0);
    p = p.mul_add(r, 1.0 / 6.0);
    p = p.mul_add(r, 0.5);
    (p * r).mul_add(r, r) + 1.0
}

/// `m * 2^n` for `|n| <= 160`, in two steps so that neither factor leaves the normal range.
#[inline(always)]
fn scale(m: f32, n: i32) -> f32 {
    // A NaN carries a meaningless `n`, and stays NaN whatever the factors are.
    let half = n >> 1;
    m * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `2^x`, within 1.5 units in the last place.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    let x = if x > 129.0 { 129.0 } else { x };
    let x = if x < -151.0 { -151.0 } else { x };
    let t = x + ROUND;
    let r = (x - (t - ROUND)) * std::f32::consts::LN_2;
    let n = (t.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    scale(exp_small(r), n)
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The error function, correctly rounded in all but rare cases: the series of positive terms in `f64`
/// (Abramowitz and Stegun 7.1.6).
pub(super) fn erf(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    if x.abs() >= 4.0 {
        // 1 - erf(4) is below half a unit in the last place of 1.
        return x.signum();
    }
    let z = f64::from(x);
    let (mut term, mut sum, mut n) = (z, z, 0.0);
    while term.abs() > sum.abs() * 1e-12 {
        n += 1.0;
        term *= 2.0 * z * z / (2.0 * n + 1.0);
        sum += term;
    }
    (std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp() * sum) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(a: f32, b: f64) -> f64 {
        let near = b as f32;
        if a == near {
            return 0.0;
        }
        let unit = f64::from(f32::from_bits(near.abs().to_bits() + 1)) - f64::from(near.abs());
        (f64::from(a) - b).abs() / unit
    }

    #[test]
    fn exponentials_are_within_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        for i in -1_000_000..=1_000_000 {
            let x = i as f32 * 1e-4;
            if x.abs() < 87.0 {
                worst = worst.max(ulps(exp(x), f64::from(x).exp()));
            }
            worst = worst.max(ulps(exp2(x), f64::from(x).exp2()));
        }
        assert!(worst < 2.0, "{worst}");
    }

    #[test]
    fn exponentials_keep_the_extremes() {
        for f in [exp, exp2] {
            assert_eq!(f(f32::NEG_INFINITY), 0.0);
            assert_eq!(f(f32::MIN), 0.0);
            assert_eq!(f(f32::INFINITY), f32::INFINITY);
            assert_eq!(f(f32::MAX), f32::INFINITY);
            assert_eq!(f(0.0), 1.0);
            assert!(f(f32::NAN).is_nan());
            assert!(f(-f32::NAN).is_nan());
        }
        // The smallest numbers lose bits, not all of them.
        assert_eq!(exp2(-149.0), f32::from_bits(1));
        assert_eq!(exp2(127.0), 2.0_f32.powi(127));
    }

    #[test]
    fn the_error_function_matches_published_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, want) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916),
            (0.5, 0.520_499_878),
            (1.0, 0.842_700_793),
            (1.5, 0.966_105_146),
            (2.0, 0.995_322_265),
        ] {
            assert!((f64::from(erf(x)) - want).abs() < 6e-8, "{x}");
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!(erf(5.0), 1.0);
        assert!(erf(f32::NAN).is_nan());
    }
}
