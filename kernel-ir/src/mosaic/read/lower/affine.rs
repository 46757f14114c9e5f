//! Index functions that are affine maps of the grid's indices.

use super::scope::Lower;
use super::{DEEPEST, Fallible};
use crate::ir::{Binary, Block, Compare, Value};
use crate::mosaic::read::module::AffineExpr;

impl Lower<'_> {
    /// The block map that an affine map of `axes` grid indices is.
    pub(super) fn index_map(
        &mut self,
        axes: usize,
        (dims, symbols): (usize, usize),
        results: &[AffineExpr],
    ) -> Fallible<Block> {
        if dims != axes || symbols != 0 {
            return Err(
                self.malformed(format!("has an index map of {dims} indices for a grid of {axes} axes"))
            );
        }
        let args = self.grid_indices(axes)?;
        let (ops, results) =
            self.inside(|l| results.iter().map(|e| l.affine(e, &args, 0)).collect::<Fallible<Vec<_>>>())?;
        Ok(Block { args, ops, results })
    }

    fn affine(&mut self, e: &AffineExpr, dims: &[Value], depth: usize) -> Fallible<Value> {
        if depth > DEEPEST {
            return Err(self.unsupported("has an index map that is nested too deep"));
        }
        let (kind, sides) = match e {
            AffineExpr::Dim(i) => {
                let dim = dims.get(*i).copied();
                return dim.ok_or_else(|| self.malformed(format!("has an index map of an axis {i}")));
            }
            AffineExpr::Symbol(_) => return Err(self.malformed("has an index map of symbols")),
            AffineExpr::Constant(n) => {
                let n = i32::try_from(*n).map_err(|_| self.unsupported("has an index of many bits"))?;
                return self.i32(n.into());
            }
            AffineExpr::Add(sides) => (Binary::Add, sides),
            AffineExpr::Mul(sides) => (Binary::Mul, sides),
            AffineExpr::Mod(sides) => (Binary::Rem, sides),
            AffineExpr::FloorDiv(sides) | AffineExpr::CeilDiv(sides) => (Binary::Div, sides),
        };
        let (x, y) = (self.affine(&sides.0, dims, depth + 1)?, self.affine(&sides.1, dims, depth + 1)?);
        match e {
            AffineExpr::Mod(_) => self.modulo(x, y),
            AffineExpr::FloorDiv(_) => self.floor_div(x, y),
            // ceil(x / y) = -floor(-x / y)
            AffineExpr::CeilDiv(_) => {
                let zero = self.i32(0)?;
                let minus = self.binary(Binary::Sub, zero, x)?;
                let down = self.floor_div(minus, y)?;
                self.binary(Binary::Sub, zero, down)
            }
            _ => self.binary(kind, x, y),
        }
    }

    /// `x mod y`, never negative, for a positive `y`.
    fn modulo(&mut self, x: Value, y: Value) -> Fallible<Value> {
        let rest = self.binary(Binary::Rem, x, y)?;
        let zero = self.i32(0)?;
        let negative = self.compare(Compare::Lt, rest, zero)?;
        let up = self.binary(Binary::Add, rest, y)?;
        self.select(negative, up, rest)
    }

    /// The largest integer not above `x / y`, for a positive `y`.
    fn floor_div(&mut self, x: Value, y: Value) -> Fallible<Value> {
        let rest = self.modulo(x, y)?;
        let whole = self.binary(Binary::Sub, x, rest)?;
        self.binary(Binary::Div, whole, y)
    }
}
