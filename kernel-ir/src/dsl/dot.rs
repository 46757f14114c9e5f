//! Matrix products.

use std::panic::Location;

use super::elem::{Elem, Mxu};
use super::value::Tile;
use crate::diag::Diagnostic;
use crate::ir::{DotDims, OpKind, Precision, Type};
use crate::record::{At, show, with};

/// `[m, k] x [k, n] -> [m, n]`, accumulated in `T::Acc`; `f32` is multiplied as `f32`.
#[track_caller]
pub fn dot<T: Mxu>(a: Tile<T>, b: Tile<T>) -> Tile<T::Acc> {
    product(a, b, DotDims { lhs: 1, rhs: 0 }, Precision::Highest, Location::caller())
}

/// `[m, k] x [n, k] -> [m, n]`: the right side transposed.
#[track_caller]
pub fn dot_t<T: Mxu>(a: Tile<T>, b: Tile<T>) -> Tile<T::Acc> {
    product(a, b, DotDims { lhs: 1, rhs: 1 }, Precision::Highest, Location::caller())
}

/// `[k, m] x [k, n] -> [m, n]`: the left side transposed.
#[track_caller]
pub fn t_dot<T: Mxu>(a: Tile<T>, b: Tile<T>) -> Tile<T::Acc> {
    product(a, b, DotDims { lhs: 0, rhs: 0 }, Precision::Highest, Location::caller())
}

/// How one side of a [`dot_at`] lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DotSide {
    /// `[m, k]` on the left, `[k, n]` on the right.
    Plain,
    /// `[k, m]` on the left, `[n, k]` on the right.
    Transposed,
}

/// A product whose sides and precision are host values, for kernels that serve several layouts.
#[track_caller]
pub fn dot_at<T: Mxu>(
    a: Tile<T>,
    lhs: DotSide,
    b: Tile<T>,
    rhs: DotSide,
    precision: Precision,
) -> Tile<T::Acc> {
    let dims =
        DotDims { lhs: usize::from(lhs == DotSide::Plain), rhs: usize::from(rhs == DotSide::Transposed) };
    product(a, b, dims, precision, Location::caller())
}

fn product<T: Mxu>(a: Tile<T>, b: Tile<T>, dims: DotDims, precision: Precision, at: At) -> Tile<T::Acc> {
    let acc = <T::Acc as Elem>::DTYPE;
    Tile::new(with(|r| {
        let (x, y) = (r.shape(a.v), r.shape(b.v));
        let label = format!("{} x {}", show(&x), show(&y));
        let (&[x0, x1], &[y0, y1]) = (x.as_slice(), y.as_slice()) else {
            if r.any_poisoned(&[a.v, b.v]) {
                return r.poison(Type::tile(acc, [1, 1]), at);
            }
            let d = Diagnostic::error("K0106", "`dot` takes two matrices")
                .at(at.into(), label)
                .help("index a leading axis away, e.g. `rhs[0]`, or `.reshape([m, k])`");
            return r.wrong(d, Type::tile(acc, [1, 1]), at);
        };
        let (m, k) = if dims.lhs == 1 { (x0, x1) } else { (x1, x0) };
        let (k2, n) = if dims.rhs == 0 { (y0, y1) } else { (y1, y0) };
        let ty = Type::tile(acc, [m, n]);
        if k != k2 {
            if r.any_poisoned(&[a.v, b.v]) {
                return r.poison(ty, at);
            }
            let other = if dims.rhs == 0 { y1 } else { y0 };
            let mut d =
                Diagnostic::error("K0105", format!("`dot` contracts {k} with {k2}")).at(at.into(), label);
            if k == other {
                d = d.help(if dims.rhs == 0 {
                    "use `dot_t` if the right operand is [n, k]"
                } else {
                    "use `dot` if the right operand is [k, n]"
                });
            }
            return r.wrong(d, ty, at);
        }
        r.push(OpKind::Dot { lhs: a.v, rhs: b.v, dims, precision }, ty, at)
    }))
}
