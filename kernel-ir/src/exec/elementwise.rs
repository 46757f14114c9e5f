//! Elementwise functions over slices: one dispatch a slice, then a tight loop. Scalars are slices of length one.

use crate::ir::{Binary, Compare, DType, Unary};

use super::data::round_to;
use super::math;
use super::wide::wide;

/// An integer was divided by zero.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DivisionByZero;

#[inline(always)]
fn map<X: Copy, R>(x: &[X], out: &mut [R], f: impl Fn(X) -> R) {
    for (o, x) in out.iter_mut().zip(x) {
        *o = f(*x);
    }
}

#[inline(always)]
fn zip<X: Copy, R>(x: &[X], y: &[X], out: &mut [R], f: impl Fn(X, X) -> R) {
    for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
        *o = f(*x, *y);
    }
}

wide! {
    /// Applies a function of one float.
    fn unary_f32(op: Unary, x: &[f32], out: &mut [f32]) {
        match op {
            Unary::Neg => map(x, out, |x| -x),
            Unary::Abs => map(x, out, f32::abs),
            Unary::Exp => map(x, out, math::exp),
            Unary::Exp2 => map(x, out, math::exp2),
            Unary::Log => map(x, out, f32::ln),
            Unary::Log2 => map(x, out, f32::log2),
            Unary::Sqrt => map(x, out, f32::sqrt),
            Unary::Rsqrt => map(x, out, |x| 1.0 / x.sqrt()),
            Unary::Reciprocal => map(x, out, |x| 1.0 / x),
            Unary::Tanh => map(x, out, f32::tanh),
            Unary::Logistic => map(x, out, math::logistic),
            Unary::Erf => map(x, out, math::erf),
            Unary::Sin => map(x, out, f32::sin),
            Unary::Cos => map(x, out, f32::cos),
            Unary::Floor => map(x, out, f32::floor),
            Unary::Ceil => map(x, out, f32::ceil),
            Unary::Log1p => map(x, out, f32::ln_1p),
            Unary::Tan => map(x, out, f32::tan),
            Unary::Round => map(x, out, f32::round),
            Unary::RoundEven => map(x, out, f32::round_ties_even),
            // The planner refuses these of floats.
            Unary::Not | Unary::LeadingZeros | Unary::PopCount => out.copy_from_slice(x),
        }
    }
}

/// Whether a function of one operand is defined on integers.
pub(super) const fn takes_ints(op: Unary) -> bool {
    matches!(op, Unary::Neg | Unary::Abs | Unary::Not | Unary::LeadingZeros | Unary::PopCount)
}

wide! {
    /// Applies a function of one integer of `dtype`; [`takes_ints`] says which there are.
    fn unary_i32(op: Unary, dtype: DType, x: &[i32], out: &mut [i32]) {
        let (unused, mask) = (32 - dtype.bits() as i32, unsigned_mask(dtype));
        match op {
            Unary::LeadingZeros => map(x, out, |x| (x & mask).leading_zeros() as i32 - unused),
            Unary::PopCount => map(x, out, |x| (x & mask).count_ones() as i32),
            Unary::Neg => map(x, out, i32::wrapping_neg),
            Unary::Abs => map(x, out, i32::wrapping_abs),
            _ => map(x, out, |x| !x),
        }
    }
}

/// The bits of an integer of `dtype` in its register.
const fn unsigned_mask(dtype: DType) -> i32 {
    match dtype {
        DType::I4 => 0xf,
        DType::I8 => 0xff,
        DType::I16 => 0xffff,
        _ => -1,
    }
}

/// The larger one; NaN if either is.
#[inline(always)]
pub(super) fn maximum(x: f32, y: f32) -> f32 {
    // `x` wins when it is larger or NaN; a NaN in `y` loses no comparison, so test it by itself.
    let larger = if x > y { x } else { y };
    if x.is_nan() { x } else { larger }
}

/// The smaller one; NaN if either is.
#[inline(always)]
pub(super) fn minimum(x: f32, y: f32) -> f32 {
    let smaller = if x < y { x } else { y };
    if x.is_nan() { x } else { smaller }
}

/// Whether a function of two operands is defined on floats.
pub(super) const fn takes_floats(op: Binary) -> bool {
    matches!(
        op,
        Binary::Add
            | Binary::Sub
            | Binary::Mul
            | Binary::Div
            | Binary::Rem
            | Binary::Min
            | Binary::Max
            | Binary::Pow
            | Binary::Atan2
    )
}

wide! {
    /// Applies a function of two floats.
    fn binary_f32(op: Binary, x: &[f32], y: &[f32], out: &mut [f32]) {
        match op {
            Binary::Add => zip(x, y, out, |x, y| x + y),
            Binary::Sub => zip(x, y, out, |x, y| x - y),
            Binary::Mul => zip(x, y, out, |x, y| x * y),
            Binary::Div => zip(x, y, out, |x, y| x / y),
            Binary::Rem => zip(x, y, out, |x, y| x % y),
            Binary::Min => zip(x, y, out, minimum),
            Binary::Max => zip(x, y, out, maximum),
            Binary::Pow => zip(x, y, out, f32::powf),
            Binary::Atan2 => zip(x, y, out, f32::atan2),
            // The planner refuses the functions of integers.
            _ => out.copy_from_slice(x),
        }
    }

    /// Applies a function of two integers of `dtype`. Overflow wraps; a shift by the width or more leaves zeros or the sign.
    fn binary_i32(
        op: Binary,
        dtype: DType,
        x: &[i32],
        y: &[i32],
        out: &mut [i32],
    ) -> Result<(), DivisionByZero> {
        let divides = matches!(op, Binary::Div | Binary::Rem | Binary::DivUnsigned | Binary::RemUnsigned);
        if divides && y.contains(&0) {
            return Err(DivisionByZero);
        }
        let mask = unsigned_mask(dtype);
        let unsigned = |x: i32| (x & mask) as u32;
        match op {
            Binary::DivUnsigned => zip(x, y, out, |x, y| (unsigned(x) / unsigned(y)) as i32),
            Binary::RemUnsigned => zip(x, y, out, |x, y| (unsigned(x) % unsigned(y)) as i32),
            Binary::MinUnsigned => zip(x, y, out, |x, y| if unsigned(x) <= unsigned(y) { x } else { y }),
            Binary::MaxUnsigned => zip(x, y, out, |x, y| if unsigned(x) >= unsigned(y) { x } else { y }),
            Binary::ShrUnsigned => {
                zip(x, y, out, |x, y| if (0..32).contains(&y) { (unsigned(x) >> y) as i32 } else { 0 });
            }
            Binary::MulHigh => zip(x, y, out, |x, y| ((i64::from(x) * i64::from(y)) >> 32) as i32),
            Binary::MulHighUnsigned => {
                zip(x, y, out, |x, y| ((u64::from(x as u32) * u64::from(y as u32)) >> 32) as i32);
            }
            Binary::Add => zip(x, y, out, i32::wrapping_add),
            Binary::Sub => zip(x, y, out, i32::wrapping_sub),
            Binary::Mul => zip(x, y, out, i32::wrapping_mul),
            Binary::Div => zip(x, y, out, i32::wrapping_div),
            Binary::Rem => zip(x, y, out, i32::wrapping_rem),
            Binary::Min => zip(x, y, out, i32::min),
            Binary::Max => zip(x, y, out, i32::max),
            Binary::And => zip(x, y, out, |x, y| x & y),
            Binary::Or => zip(x, y, out, |x, y| x | y),
            Binary::Xor => zip(x, y, out, |x, y| x ^ y),
            Binary::Shl => zip(x, y, out, |x, y| if (0..32).contains(&y) { x << y } else { 0 }),
            Binary::Shr => zip(x, y, out, |x, y| x >> if (0..32).contains(&y) { y } else { 31 }),
            // The planner refuses the functions of floats.
            Binary::Pow | Binary::Atan2 => out.copy_from_slice(x),
        }
        Ok(())
    }

    /// Applies a logical function; arithmetic on truth values is refused by the planner.
    fn binary_bool(op: Binary, x: &[bool], y: &[bool], out: &mut [bool]) {
        match op {
            Binary::Or | Binary::Max => zip(x, y, out, |x, y| x | y),
            Binary::Xor => zip(x, y, out, |x, y| x ^ y),
            _ => zip(x, y, out, |x, y| x & y),
        }
    }

    /// Compares; with NaN on a side only `Ne` holds.
    fn compare<X: Copy + PartialOrd>(op: Compare, x: &[X], y: &[X], out: &mut [bool]) {
        match op {
            Compare::Eq => zip(x, y, out, |x, y| x == y),
            Compare::Ne => zip(x, y, out, |x, y| x != y),
            Compare::Lt => zip(x, y, out, |x, y| x < y),
            Compare::Le => zip(x, y, out, |x, y| x <= y),
            Compare::Gt => zip(x, y, out, |x, y| x > y),
            Compare::Ge => zip(x, y, out, |x, y| x >= y),
            // The planner refuses these of anything but integers, which `compare_i32` takes.
            Compare::LtUnsigned | Compare::LeUnsigned | Compare::GtUnsigned | Compare::GeUnsigned => {
                out.fill(false);
            }
        }
    }

    /// Compares integers of one element type: sign extension keeps the unsigned order of narrow ones.
    fn compare_i32(op: Compare, x: &[i32], y: &[i32], out: &mut [bool]) {
        match op {
            Compare::LtUnsigned => zip(x, y, out, |x, y| (x as u32) < y as u32),
            Compare::LeUnsigned => zip(x, y, out, |x, y| x as u32 <= y as u32),
            Compare::GtUnsigned => zip(x, y, out, |x, y| x as u32 > y as u32),
            Compare::GeUnsigned => zip(x, y, out, |x, y| x as u32 >= y as u32),
            _ => compare(op, x, y, out),
        }
    }

    /// `x` where `mask` holds, `y` elsewhere.
    fn select<X: Copy>(mask: &[bool], x: &[X], y: &[X], out: &mut [X]) {
        for (((o, m), x), y) in out.iter_mut().zip(mask).zip(x).zip(y) {
            *o = if *m { *x } else { *y };
        }
    }

    /// Converts floats: toward zero, saturating at the ends of `to`; NaN gives 0.
    fn float_to_int(to: DType, x: &[f32], out: &mut [i32]) {
        match to {
            DType::I4 => map(x, out, |x| (x as i32).clamp(-8, 7)),
            DType::I8 => map(x, out, |x| i32::from(x as i8)),
            DType::I16 => map(x, out, |x| i32::from(x as i16)),
            _ => map(x, out, |x| x as i32),
        }
    }
}

/// Converts floats to unsigned integers of `to`: toward zero, saturating; NaN gives 0.
pub(super) fn float_to_unsigned(to: DType, x: &[f32], out: &mut [i32]) {
    match to {
        DType::I4 => map(x, out, |x| i32::from((x as u8).min(15))),
        DType::I8 => map(x, out, |x| i32::from(x as u8)),
        DType::I16 => map(x, out, |x| i32::from(x as u16)),
        _ => map(x, out, |x| x as u32 as i32),
    }
}

/// Converts integers of `from`, read as unsigned, to the nearest float.
pub(super) fn unsigned_to_float(from: DType, x: &[i32], out: &mut [f32]) {
    let mask = unsigned_mask(from);
    map(x, out, |x| (x & mask) as u32 as f32);
}

/// Widens integers of `from`, read as unsigned.
pub(super) fn zero_extend(from: DType, x: &[i32], out: &mut [i32]) {
    let mask = unsigned_mask(from);
    map(x, out, |x| x & mask);
}

wide! {
    /// Converts integers to the nearest float.
    fn int_to_float(x: &[i32], out: &mut [f32]) {
        map(x, out, |x| x as f32);
    }
}

/// Converts between register types through `f`.
pub(super) fn convert<X: Copy, R>(x: &[X], out: &mut [R], f: impl Fn(X) -> R) {
    map(x, out, f);
}

wide! {
    /// Rounds to what `dtype` can hold.
    fn narrow_f32(dtype: DType, x: &mut [f32]) {
        round_to(dtype, x);
    }

    /// Wraps to what `dtype` can hold.
    fn narrow_i32(dtype: DType, x: &mut [i32]) {
        match dtype {
            DType::I4 => x.iter_mut().for_each(|x| *x = (*x << 28) >> 28),
            DType::I8 => x.iter_mut().for_each(|x| *x = i32::from(*x as i8)),
            DType::I16 => x.iter_mut().for_each(|x| *x = i32::from(*x as i16)),
            _ => {}
        }
    }
}
