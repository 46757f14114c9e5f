//! Making tiles, and giving them other shapes.

use std::panic::Location;

use super::elem::Elem;
use super::value::{Idx, Tile};
use crate::diag::Diagnostic;
use crate::ir::{DType, OpKind, Type};
use crate::record::{show, with};

/// A tile of `shape` with `x` everywhere.
#[track_caller]
pub fn full<T: Elem>(shape: impl AsRef<[usize]>, x: T) -> Tile<T> {
    let at = Location::caller();
    Tile::new(with(|r| r.push(OpKind::Constant(x.literal()), Type::tile(T::DTYPE, shape.as_ref()), at)))
}

/// The index along `axis`, at every position of `shape`.
#[track_caller]
pub fn iota(shape: impl AsRef<[usize]>, axis: usize) -> Tile<i32> {
    let at = Location::caller();
    let shape = shape.as_ref().to_vec();
    Tile::new(with(|r| {
        if axis >= shape.len() {
            let d =
                Diagnostic::error("K0104", format!("a tile of shape {} has no axis {axis}", show(&shape)))
                    .at(at.into(), format!("axes are 0 to {}", shape.len().saturating_sub(1)));
            return r.wrong(d, Type::tile(DType::I32, shape), at);
        }
        r.push(OpKind::Iota { axis }, Type::tile(DType::I32, shape), at)
    }))
}

/// Tiles one after the other along `axis`.
#[track_caller]
pub fn concatenate<T: Elem>(tiles: impl AsRef<[Tile<T>]>, axis: usize) -> Tile<T> {
    let at = Location::caller();
    let xs: Vec<_> = tiles.as_ref().iter().map(|t| t.v).collect();
    Tile::new(with(|r| {
        let shapes: Vec<_> = xs.iter().map(|v| r.shape(*v)).collect();
        let Some(first) = shapes.first().cloned() else {
            let d = Diagnostic::error("K0115", "`concatenate` of no tiles")
                .at(at.into(), "nothing to concatenate");
            return r.wrong(d, Type::tile(T::DTYPE, [1]), at);
        };
        let fits = |s: &Vec<usize>| {
            s.len() == first.len() && s.iter().zip(&first).enumerate().all(|(i, (a, b))| i == axis || a == b)
        };
        if axis >= first.len() || !shapes.iter().all(fits) {
            let all: Vec<_> = shapes.iter().map(|s| show(s)).collect();
            let d = Diagnostic::error("K0115", format!("tiles do not fit together along axis {axis}"))
                .at(at.into(), all.join(", "))
                .help("all other axes must be equal");
            return r.wrong(d, Type::tile(T::DTYPE, first), at);
        }
        let mut shape = first;
        shape[axis] = shapes.iter().map(|s| s[axis]).sum();
        if xs.len() == 1 {
            return xs[0];
        }
        r.push(OpKind::Concatenate { xs, axis }, Type::tile(T::DTYPE, shape), at)
    }))
}

impl<T: Elem> Tile<T> {
    /// The same elements in row-major order, under another shape.
    #[track_caller]
    pub fn reshape(self, shape: impl AsRef<[usize]>) -> Self {
        let at = Location::caller();
        let to = shape.as_ref().to_vec();
        Self::new(with(|r| {
            let from = r.shape(self.v);
            if from == to {
                return self.v;
            }
            let ty = Type::tile(T::DTYPE, to.as_slice());
            if from.iter().product::<usize>() != to.iter().product::<usize>() {
                if r.any_poisoned(&[self.v]) {
                    return r.poison(ty, at);
                }
                let d = Diagnostic::error(
                    "K0113",
                    format!("{} cannot be reshaped to {}", show(&from), show(&to)),
                )
                .at(at.into(), "a different number of elements");
                return r.wrong(d, ty, at);
            }
            r.push(OpKind::Reshape { x: self.v }, ty, at)
        }))
    }

    /// A matrix with its two axes exchanged.
    #[track_caller]
    pub fn t(self) -> Self {
        let at = Location::caller();
        Self::new(with(|r| {
            let shape = r.shape(self.v);
            let &[m, n] = shape.as_slice() else {
                let d = Diagnostic::error("K0102", format!("`.t()` of a tile of shape {}", show(&shape)))
                    .at(at.into(), "takes a matrix");
                return r.wrong(d, Type::tile(T::DTYPE, shape), at);
            };
            r.push(OpKind::Transpose { x: self.v, permutation: vec![1, 0] }, Type::tile(T::DTYPE, [n, m]), at)
        }))
    }

    /// `len` elements from `start` along `axis`.
    #[track_caller]
    pub fn slice(self, axis: usize, start: usize, len: usize) -> Self {
        let at = Location::caller();
        Self::new(with(|r| {
            let mut shape = r.shape(self.v);
            let fits = shape.get(axis).is_some_and(|d| start + len <= *d);
            if !fits {
                let d =
                    Diagnostic::error("K0109", format!("elements {start} to {} of axis {axis}", start + len))
                        .at(at.into(), format!("the tile has shape {}", show(&shape)));
                return r.wrong(d, Type::tile(T::DTYPE, shape), at);
            }
            let mut offsets = vec![0; shape.len()];
            offsets[axis] = start;
            shape[axis] = len;
            r.push(OpKind::ExtractSlice { x: self.v, offsets }, Type::tile(T::DTYPE, shape), at)
        }))
    }

    /// Moves every element by `amount` along `axis`; those that fall off the end come back at the start.
    #[track_caller]
    pub fn roll(self, amount: impl Into<Idx>, axis: usize) -> Self {
        let at = Location::caller();
        let amount = amount.into().v;
        Self::new(with(|r| {
            let ty = r.ty(self.v);
            if axis >= r.shape(self.v).len() {
                let d = Diagnostic::error("K0104", format!("`.roll()` along axis {axis} of {ty}"))
                    .at(at.into(), "no such axis");
                return r.wrong(d, ty, at);
            }
            r.push(OpKind::Roll { x: self.v, amount, axis }, ty, at)
        }))
    }
}
