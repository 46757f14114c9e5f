//! Typed storage: what arrays, windows and scratch are made of, and the value that stands for "never written".

use half::bf16;

use crate::ir::DType;

use super::tile::Lane;

/// A Rust type that array elements may have.
///
/// Implemented for `f32`, [`bf16`], `i32`, `i16`, `i8` and `bool`.
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
            $crate::exec::data::Data::Bool($v) => $body,
        }
    };
}
pub(crate) use each_data;

impl Default for Data {
    fn default() -> Self {
        Self::F32(vec![])
    }
}

impl Data {
    /// `n` elements that were never written.
    pub(crate) fn poison(dtype: DType, n: usize) -> Self {
        match dtype {
            DType::F32 => Self::F32(vec![f32::POISON; n]),
            DType::Bf16 => Self::Bf16(vec![bf16::POISON; n]),
            DType::I32 => Self::I32(vec![i32::POISON; n]),
            DType::I16 => Self::I16(vec![i16::POISON; n]),
            DType::I8 => Self::I8(vec![i8::POISON; n]),
            DType::Bool => Self::Bool(vec![bool::POISON; n]),
        }
    }

    /// `n` zeros.
    pub(crate) fn zeros(dtype: DType, n: usize) -> Self {
        match dtype {
            DType::F32 => Self::F32(vec![0.0; n]),
            DType::Bf16 => Self::Bf16(vec![bf16::ZERO; n]),
            DType::I32 => Self::I32(vec![0; n]),
            DType::I16 => Self::I16(vec![0; n]),
            DType::I8 => Self::I8(vec![0; n]),
            DType::Bool => Self::Bool(vec![false; n]),
        }
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
            Self::Bool(_) => DType::Bool,
        }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        each_data!(self, v => v.len())
    }
}

macro_rules! element {
    ($t:ty, $variant:ident, $lane:ty, $poison:expr, $to_lane:expr, $of:expr, $to_f64:expr, $from_f64:expr,
     $bits:expr, $from_bits:expr) => {
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

element!(f32, F32, f32, f32::NAN, |x| x, |x| x, f64::from, |x: f64| x as f32, f32::to_bits, f32::from_bits);
element!(
    bf16,
    Bf16,
    f32,
    bf16::NAN,
    widen,
    narrow,
    bf16::to_f64,
    bf16::from_f64,
    |x: bf16| x.to_bits().into(),
    |b| bf16::from_bits(b as u16)
);
element!(i32, I32, i32, POISON_I32, |x| x, |x| x, f64::from, |x: f64| x as i32, |x| x as u32, |b| b as i32);
element!(
    i16,
    I16,
    i32,
    -29_779,
    i32::from,
    |x| x as i16,
    f64::from,
    |x: f64| x as i16,
    |x| u32::from(x as u16),
    |b| b as i16
);
element!(
    i8,
    I8,
    i32,
    -85,
    i32::from,
    |x| x as i8,
    f64::from,
    |x: f64| x as i8,
    |x| u32::from(x as u8),
    |b| b as i8
);
element!(
    bool,
    Bool,
    bool,
    true,
    |x| x,
    |x| x,
    |x| f64::from(u8::from(x)),
    |x: f64| x != 0.0,
    u32::from,
    |b| b != 0
);

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
