//! Tiles: what vector registers hold, dense, in the register type of the elements; and the buffers they reuse.

use half::bf16;

use crate::ir::DType;

use super::data::{Data, Stored, each_dtype};
use super::layout::{self, Layout};
use super::plan::LaneKind;
use super::scalar::Number;
use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};

/// The elements of a tile, row-major: `bf16` as rounded `f32`, narrow integers as wrapped `i32`.
#[derive(Debug)]
pub(crate) enum Tile {
    Float(Vec<f32>),
    Int(Vec<i32>),
    Bool(Vec<bool>),
}

impl Default for Tile {
    fn default() -> Self {
        Self::Float(vec![])
    }
}

impl Tile {
    /// The bits of elements of `dtype`.
    pub(super) fn bits(&self, dtype: DType) -> Vec<u32> {
        fn bits<T: Stored>(tile: &Tile) -> Vec<u32> {
            let lanes = T::Lane::of(tile).map_or(&[][..], |v| v);
            lanes.iter().map(|x| <T as Stored>::of(*x).bits()).collect()
        }
        each_dtype!(dtype, T => bits::<T>(self))
    }

    /// Makes elements of `dtype` of their bits.
    pub(super) fn set_bits(&mut self, dtype: DType, bits: &[u32]) {
        fn set<T: Stored>(tile: &mut Tile, bits: &[u32]) {
            let lanes = T::Lane::of_mut(tile).map_or(&mut [][..], |v| v);
            lanes.iter_mut().zip(bits).for_each(|(x, b)| *x = T::from_bits(*b).lane());
        }
        each_dtype!(dtype, T => set::<T>(self, bits));
    }
}

impl Clone for Tile {
    fn clone(&self) -> Self {
        match self {
            Self::Float(v) => Self::Float(v.clone()),
            Self::Int(v) => Self::Int(v.clone()),
            Self::Bool(v) => Self::Bool(v.clone()),
        }
    }
}

/// A register type: `bf16` computes in `f32`, narrow integers in `i32`.
pub(crate) trait Lane: Copy + Send + Sync + PartialEq + Default + 'static {
    /// The elements, if they are of this type.
    fn of(tile: &Tile) -> Option<&Vec<Self>>;
    /// The number of a scalar register, if it is of this type.
    fn of_number(n: Number) -> Option<Self>;
    /// The elements, if they are of this type.
    fn of_mut(tile: &mut Tile) -> Option<&mut Vec<Self>>;
    /// The elements in place, if they lie in storage as registers hold them, side by side.
    fn borrow<'a>(from: &Reading<'a>) -> Option<&'a [Self]>;
    /// Reads a range of elements in row-major order; `None` if they are of another type.
    fn gather(from: &Reading<'_>, start: usize, out: &mut [Self]) -> Option<()>;
    /// Copies all elements through `f`; `None` if they are of another type.
    fn copy<D: Copy>(
        from: &Reading<'_>,
        dst: &mut [D],
        to: &Layout,
        f: impl Fn(Self) -> D + Copy,
    ) -> Option<()>;
}

/// Elements that lie somewhere, with the layout to find them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub(super) elements: Elements<'a>,
    pub(super) layout: Layout,
}

/// Storage of some type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elements<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    I32(&'a [i32]),
    I16(&'a [i16]),
    I8(&'a [i8]),
    F8E4M3Fn(&'a [F8E4M3Fn]),
    F8E5M2(&'a [F8E5M2]),
    F8E4M3B11Fnuz(&'a [F8E4M3B11Fnuz]),
    I4(&'a [I4]),
    Bool(&'a [bool]),
    /// The position itself is the element: an index along an axis.
    Position,
}

impl<'a> Elements<'a> {
    /// The elements of a piece of memory.
    pub(super) fn of(data: &'a Data) -> Self {
        match data {
            Data::F32(v) => Self::F32(v),
            Data::Bf16(v) => Self::Bf16(v),
            Data::I32(v) => Self::I32(v),
            Data::I16(v) => Self::I16(v),
            Data::I8(v) => Self::I8(v),
            Data::F8E4M3Fn(v) => Self::F8E4M3Fn(v),
            Data::F8E5M2(v) => Self::F8E5M2(v),
            Data::F8E4M3B11Fnuz(v) => Self::F8E4M3B11Fnuz(v),
            Data::I4(v) => Self::I4(v),
            Data::Bool(v) => Self::Bool(v),
        }
    }
}

impl Reading<'_> {
    /// True when all elements are one and the same.
    pub(super) fn is_splat(&self) -> bool {
        self.layout.collapse().strides.iter().all(|s| *s == 0)
    }
}

/// The register type `$lane`, called `$kind`: it holds what is stored as `$own` as it is, and the others of `$stored`
/// widened; `$position` stands for positions.
macro_rules! lane {
    ($lane:ty, $kind:ident, $own:ident, [$($stored:ident)*] $($position:ident)?) => {
        impl Lane for $lane {
            fn of(tile: &Tile) -> Option<&Vec<Self>> {
                if let Tile::$kind(v) = tile { Some(v) } else { None }
            }

            fn of_number(n: Number) -> Option<Self> {
                if let Number::$kind(x) = n { Some(x) } else { None }
            }

            fn of_mut(tile: &mut Tile) -> Option<&mut Vec<Self>> {
                if let Tile::$kind(v) = tile { Some(v) } else { None }
            }

            fn borrow<'a>(from: &Reading<'a>) -> Option<&'a [Self]> {
                if let Elements::$own(s) = from.elements { from.layout.contiguous(s) } else { None }
            }

            fn gather(from: &Reading<'_>, start: usize, out: &mut [Self]) -> Option<()> {
                match from.elements {
                    $(Elements::$stored(s) => layout::gather(s, &from.layout, start, out, Stored::lane),)*
                    $(Elements::$position => layout::gather_positions(&from.layout, start, out),)?
                    _ => return None,
                }
                Some(())
            }

            fn copy<D: Copy>(
                from: &Reading<'_>,
                dst: &mut [D],
                to: &Layout,
                f: impl Fn(Self) -> D + Copy,
            ) -> Option<()> {
                match from.elements {
                    $(Elements::$stored(s) => layout::copy(s, &from.layout, dst, to, |x| f(x.lane())),)*
                    $(Elements::$position => {
                        let mut dense = vec![0; from.layout.len()];
                        layout::gather_positions(&from.layout, 0, &mut dense);
                        layout::copy(&dense, &Layout::dense(&from.layout.shape), dst, to, f);
                    })?
                    _ => return None,
                }
                Some(())
            }
        }
    };
}

lane!(f32, Float, F32, [F32 Bf16 F8E4M3Fn F8E5M2 F8E4M3B11Fnuz]);
lane!(i32, Int, I32, [I32 I16 I8 I4] Position);
lane!(bool, Bool, Bool, [Bool]);

/// Buffers of tiles that nobody reads any more: fresh pages from the system cost more than most ops.
#[derive(Debug, Default)]
pub(super) struct Pool {
    floats: Vec<Vec<f32>>,
    ints: Vec<Vec<i32>>,
    bools: Vec<Vec<bool>>,
}

impl Pool {
    /// A tile whose elements are arbitrary.
    pub(super) fn take(&mut self, kind: LaneKind, len: usize) -> Tile {
        match kind {
            LaneKind::Float => Tile::Float(Self::find(&mut self.floats, len)),
            LaneKind::Int => Tile::Int(Self::find(&mut self.ints, len)),
            LaneKind::Bool => Tile::Bool(Self::find(&mut self.bools, len)),
        }
    }

    fn find<T: Lane>(free: &mut Vec<Vec<T>>, len: usize) -> Vec<T> {
        // The one given back last is the one most likely in the cache.
        match free.iter().rposition(|v| v.len() == len) {
            Some(i) => free.swap_remove(i),
            None => vec![T::default(); len],
        }
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, tile: Tile) {
        match tile {
            Tile::Float(v) if !v.is_empty() => self.floats.push(v),
            Tile::Int(v) if !v.is_empty() => self.ints.push(v),
            Tile::Bool(v) if !v.is_empty() => self.bools.push(v),
            _ => {}
        }
    }
}
