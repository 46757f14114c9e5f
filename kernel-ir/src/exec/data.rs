//! Typed storage: what arrays, windows and scratch are made of, and the value that stands for "never written".

use half::bf16;

use crate::ir::DType;

use super::tile::Lane;
use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};

/// A Rust type that array elements may have.
///
/// Implemented for `f32`, [`bf16`], `i32`, `i16`, `i8`, `bool`, and the narrow types of this module's parent.
#[allow(private_interfaces, reason = "sealed: only the executor calls these")]
pub trait Element: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// The elements, if they are of this type.
    #[doc(hidden)]
    fn elements_of(data: &Data) -> Option<&[Self]>;
    /// The elements, if they are of this type.
    #[doc(hidden)]
    fn elements_of_mut(data: &mut Data) -> Option<&mut [Self]>;
    /// Storage made of these elements.
    #[doc(hidden)]
    fn into_storage(elements: Vec<Self>) -> Data;
}

/// What the executor needs to know of an element type.
pub(crate) trait Stored: Element {
    /// What memory holds before it is written: NaN, or a recognisable number.
    const POISON: Self;
    const ZERO: Self;
    /// The register type.
    type Lane: Lane;
    /// Widens; exact.
    fn lane(self) -> Self::Lane;
    /// Narrows a value that the type can hold.
    fn of(lane: Self::Lane) -> Self;
    /// The value as a number.
    fn to_f64(self) -> f64;
    /// The nearest value.
    fn from_f64(x: f64) -> Self;
    /// The bits, in the lowest places.
    fn bits(self) -> u32;
    /// The value with these bits; higher ones are dropped.
    fn from_bits(bits: u32) -> Self;
}

/// The elements of an array or of a piece of on-chip memory, row-major.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Data {
    F32(Vec<f32>),
    Bf16(Vec<bf16>),
    I32(Vec<i32>),
    I16(Vec<i16>),
    I8(Vec<i8>),
    F8E4M3Fn(Vec<F8E4M3Fn>),
    F8E5M2(Vec<F8E5M2>),
    F8E4M3B11Fnuz(Vec<F8E4M3B11Fnuz>),
    I4(Vec<I4>),
    Bool(Vec<bool>),
}

/// Runs an expression with `$v` bound to the vector inside, whatever its type.
macro_rules! each_data {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            $crate::exec::data::Data::F32($v) => $body,
            $crate::exec::data::Data::Bf16($v) => $body,
            $crate::exec::data::Data::I32($v) => $body,
            $crate::exec::data::Data::I16($v) => $body,
            $crate::exec::data::Data::I8($v) => $body,
            $crate::exec::data::Data::F8E4M3Fn($v) => $body,
            $crate::exec::data::Data::F8E5M2($v) => $body,
            $crate::exec::data::Data::F8E4M3B11Fnuz($v) => $body,
            $crate::exec::data::Data::I4($v) => $body,
            $crate::exec::data::Data::Bool($v) => $body,
        }
    };
}
pub(crate) use each_data;

/// Runs an expression with `$T` the Rust type of the elements of a [`DType`].
macro_rules! each_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};
        match $dtype {
            $crate::ir::DType::F32 => each_dtype!(@ f32, $T => $body),
            $crate::ir::DType::Bf16 => each_dtype!(@ half::bf16, $T => $body),
            $crate::ir::DType::I32 => each_dtype!(@ i32, $T => $body),
            $crate::ir::DType::I16 => each_dtype!(@ i16, $T => $body),
            $crate::ir::DType::I8 => each_dtype!(@ i8, $T => $body),
            $crate::ir::DType::F8E4M3Fn => each_dtype!(@ F8E4M3Fn, $T => $body),
            $crate::ir::DType::F8E5M2 => each_dtype!(@ F8E5M2, $T => $body),
            $crate::ir::DType::F8E4M3B11Fnuz => each_dtype!(@ F8E4M3B11Fnuz, $T => $body),
            $crate::ir::DType::I4 => each_dtype!(@ I4, $T => $body),
            $crate::ir::DType::Bool => each_dtype!(@ bool, $T => $body),
        }
    }};
    (@ $t:ty, $T:ident => $body:expr) => {{
        type $T = $t;
        $body
    }};
}
pub(crate) use each_dtype;

impl Default for Data {
    fn default() -> Self {
        Self::F32(vec![])
    }
}

impl Data {
    /// `n` elements that were never written.
    pub(crate) fn poison(dtype: DType, n: usize) -> Self {
        each_dtype!(dtype, T => T::into_storage(vec![T::POISON; n]))
    }

    /// `n` zeros.
    pub(crate) fn zeros(dtype: DType, n: usize) -> Self {
        each_dtype!(dtype, T => T::into_storage(vec![T::ZERO; n]))
    }

    /// Makes all of it look never written.
    pub(crate) fn fill_poison(&mut self) {
        fn fill<T: Stored>(v: &mut [T]) {
            v.fill(T::POISON);
        }
        each_data!(self, v => fill(v));
    }

    /// The element type.
    pub(crate) const fn dtype(&self) -> DType {
        match self {
            Self::F32(_) => DType::F32,
            Self::Bf16(_) => DType::Bf16,
            Self::I32(_) => DType::I32,
            Self::I16(_) => DType::I16,
            Self::I8(_) => DType::I8,
            Self::F8E4M3Fn(_) => DType::F8E4M3Fn,
            Self::F8E5M2(_) => DType::F8E5M2,
            Self::F8E4M3B11Fnuz(_) => DType::F8E4M3B11Fnuz,
            Self::I4(_) => DType::I4,
            Self::Bool(_) => DType::Bool,
        }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        each_data!(self, v => v.len())
    }
}

/// An element type: what it holds before it is written, zero, its register type, and how it converts.
macro_rules! element {
    ($t:ty, $variant:ident, poison $poison:expr, zero $zero:expr, lane $lane:ty: $to_lane:expr, $of:expr,
     f64: $to_f64:expr, $from_f64:expr, bits: $bits:expr, $from_bits:expr) => {
        #[allow(private_interfaces, reason = "sealed: only the executor calls these")]
        impl Element for $t {
            fn elements_of(data: &Data) -> Option<&[Self]> {
                if let Data::$variant(v) = data { Some(v) } else { None }
            }
            fn elements_of_mut(data: &mut Data) -> Option<&mut [Self]> {
                if let Data::$variant(v) = data { Some(v) } else { None }
            }
            fn into_storage(elements: Vec<Self>) -> Data {
                Data::$variant(elements)
            }
        }
        impl Stored for $t {
            const POISON: Self = $poison;
            const ZERO: Self = $zero;
            type Lane = $lane;
            #[inline(always)]
            fn lane(self) -> $lane {
                $to_lane(self)
            }
            #[inline(always)]
            fn of(lane: $lane) -> Self {
                $of(lane)
            }
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
            fn from_f64(x: f64) -> Self {
                $from_f64(x)
            }
            fn bits(self) -> u32 {
                $bits(self)
            }
            fn from_bits(bits: u32) -> Self {
                $from_bits(bits)
            }
        }
    };
}

element!(f32, F32, poison f32::NAN, zero 0.0, lane f32: |x| x, |x| x,
    f64: f64::from, |x: f64| x as f32, bits: f32::to_bits, f32::from_bits);
element!(bf16, Bf16, poison bf16::NAN, zero bf16::ZERO, lane f32: widen, narrow,
    f64: bf16::to_f64, bf16::from_f64, bits: |x: bf16| x.to_bits().into(), |b| bf16::from_bits(b as u16));
element!(i32, I32, poison POISON_I32, zero 0, lane i32: |x| x, |x| x,
    f64: f64::from, |x: f64| x as i32, bits: |x| x as u32, |b| b as i32);
element!(i16, I16, poison -29_779, zero 0, lane i32: i32::from, |x| x as i16,
    f64: f64::from, |x: f64| x as i16, bits: |x| u32::from(x as u16), |b| b as i16);
element!(i8, I8, poison -85, zero 0, lane i32: i32::from, |x| x as i8,
    f64: f64::from, |x: f64| x as i8, bits: |x| u32::from(x as u8), |b| b as i8);
element!(I4, I4, poison I4::new(-5), zero I4::new(0), lane i32: |x: I4| x.get().into(), |x| I4::new(x as i8),
    f64: |x: I4| x.get().into(), |x: f64| I4::new(x.clamp(-8.0, 7.0) as i8),
    bits: |x: I4| (x.get() as u8 & 15).into(), |b| I4::new(b as i8));
element!(bool, Bool, poison true, zero false, lane bool: |x| x, |x| x,
    f64: |x| f64::from(u8::from(x)), |x: f64| x != 0.0, bits: u32::from, |b| b != 0);

macro_rules! small_float {
    ($($t:ident)*) => { $(
        element!($t, $t, poison $t::NAN, zero $t(0), lane f32: $t::to_f32, $t::from_f32,
            f64: |x: $t| x.to_f32().into(), |x: f64| $t::from_f32(to_odd(x)),
            bits: |x: $t| x.0.into(), |b| $t(b as u8));
    )* };
}
small_float!(F8E4M3Fn F8E5M2 F8E4M3B11Fnuz);

/// An `f32` that rounds to the same narrower number as `x`: cut off, with its last bit set if anything was lost.
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || !near.is_finite() || near == 0.0 {
        return near;
    }
    let bits = near.to_bits();
    let cut = if f64::from(near).abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(cut | 1)
}

/// The `i32` that never-written memory holds: rare enough that reading it as a scalar is taken for a mistake.
pub(crate) const POISON_I32: i32 = -1_951_535_091;

/// `bf16` to `f32`, exact.
#[inline(always)]
pub(crate) fn widen(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// The upper half of an `f32` that is already a bfloat16 value.
#[inline(always)]
fn narrow(x: f32) -> bf16 {
    bf16::from_bits((x.to_bits() >> 16) as u16)
}

/// Rounds to the nearest bfloat16 value, ties to even; NaN stays NaN.
#[inline(always)]
pub(crate) fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    let quiet = (bits | 0x0040_0000) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { quiet } else { rounded })
}

/// Rounds to the nearest value of a float type.
#[inline(always)]
pub(crate) fn round_to(dtype: DType, x: &mut [f32]) {
    fn round<T: Stored<Lane = f32>>(x: &mut [f32]) {
        x.iter_mut().for_each(|x| *x = T::of(*x).lane());
    }
    match dtype {
        DType::Bf16 => x.iter_mut().for_each(|x| *x = round_bf16(*x)),
        DType::F8E4M3Fn => round::<F8E4M3Fn>(x),
        DType::F8E5M2 => round::<F8E5M2>(x),
        DType::F8E4M3B11Fnuz => round::<F8E4M3B11Fnuz>(x),
        _ => {}
    }
}
