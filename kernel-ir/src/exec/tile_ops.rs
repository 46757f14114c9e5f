//! Tile ops that are not elementwise: products, reductions, and moves of elements.

use crate::ir::{ArgReduction, DType, Reduction, Span};

use super::core::{Core, mismatch};
use super::data::POISON_I32;
use super::elementwise::{maximum, minimum, narrow_f32, narrow_i32};
use super::fault::{Checked, Fault};
use super::gemm::{self, Size};
use super::layout::{Axes, Layout, row_major};
use super::matrix::{Elements as Side, Matrix, Rounding};
use super::plan::{Dot, LaneKind, Operand, Reduce, Slot};
use super::scalar::Scalar;
use super::tile::{Elements, Lane, Reading, Tile};
use super::wide::wide;

impl Core<'_> {
    /// A matrix product.
    pub(super) fn dot(&mut self, dot: &Dot, span: Span) -> Checked<()> {
        let size = Size { m: dot.lhs.shape[0], k: dot.lhs.shape[1], n: dot.rhs.shape[1] };
        let accumulate = dot.acc.is_some();
        let mut to = match &dot.acc {
            Some(acc) => self.materialize(acc, span)?,
            None => self.pool.take(LaneKind::of(dot.dtype), size.m * size.n),
        };
        let threads = self.call.product_threads;
        let rounding = |x: &Operand| match x.dtype {
            DType::Bf16 => Rounding::Done,
            _ if dot.round && !self.call.options.exact_products => Rounding::Needed,
            _ => Rounding::None,
        };
        let lhs = matrix(&self.reading(&dot.lhs)?, rounding(&dot.lhs), span)?;
        let rhs = matrix(&self.reading(&dot.rhs)?, rounding(&dot.rhs), span)?;
        match &mut to {
            Tile::Float(c) => {
                gemm::multiply(size, lhs, rhs, accumulate, c, threads);
                narrow_f32(dot.dtype, c);
            }
            Tile::Int(c) => gemm::multiply_int(size, lhs, rhs, accumulate, c, threads),
            Tile::Bool(_) => return Err(mismatch(span)),
        }
        self.set_tile(dot.to, to);
        Ok(())
    }

    /// A reduction along one axis.
    pub(super) fn reduce(&mut self, r: &Reduce, span: Span) -> Checked<()> {
        let mut to = self.pool.take(LaneKind::of(r.dtype), r.outer * r.inner);
        let reading = self.reading(&r.from)?;
        match &mut to {
            Tile::Float(out) => {
                let dense;
                let x = match f32::borrow(&reading) {
                    Some(x) => x,
                    None => {
                        dense = gathered::<f32>(&reading, span)?;
                        &dense
                    }
                };
                reduce_f32(r.op, r.len, r.inner, x, out);
                narrow_f32(r.dtype, out);
            }
            Tile::Int(out) => {
                let x = gathered::<i32>(&reading, span)?;
                match r.op {
                    Reduction::Sum => fold(r.len, r.inner, &x, out, 0, i32::wrapping_add),
                    Reduction::Max => fold(r.len, r.inner, &x, out, i32::MIN, i32::max),
                    Reduction::Min => fold(r.len, r.inner, &x, out, i32::MAX, i32::min),
                }
                narrow_i32(r.dtype, out);
            }
            Tile::Bool(_) => return Err(Fault::refused(span, "a reduction of `bool`")),
        }
        self.set_tile(r.to, to);
        Ok(())
    }

    /// Tiles one after the other.
    pub(super) fn concatenate(
        &mut self,
        xs: &[Operand],
        axis: usize,
        to: Slot,
        shape: &[usize],
        span: Span,
    ) -> Checked<()> {
        let dtype = xs.first().map_or(DType::F32, |x| x.dtype);
        let mut tile = self.pool.take(LaneKind::of(dtype), shape.iter().product());
        let strides = row_major(shape);
        let mut offset = 0;
        for x in xs {
            let part =
                Layout { offset: offset * strides[axis], shape: x.shape.iter().copied().collect(), strides };
            offset += x.shape[axis];
            if offset > shape[axis] {
                return Err(Fault::refused(span, "a concatenation longer than its result"));
            }
            place(&self.reading(x)?, &mut tile, &part).ok_or_else(|| mismatch(span))?;
        }
        self.set_tile(to, tile);
        Ok(())
    }

    /// A copy rotated along an axis.
    pub(super) fn roll(
        &mut self,
        from: &Operand,
        amount: Slot,
        axis: usize,
        to: Slot,
        span: Span,
    ) -> Checked<()> {
        let amount = self.index(amount, "the amount of a roll", span)?;
        let shape = &from.shape;
        let mut tile = self.pool.take(LaneKind::of(from.dtype), shape.iter().product());
        let reading = self.reading(from)?;
        let n = shape[axis];
        // The remainder of a division by `n` is below `n`.
        let moved = amount.rem_euclid(n.max(1) as i64) as usize;
        let strides = row_major(shape);
        // The first `n - moved` move up by `moved`; the others come around.
        for (start, length, target) in [(0, n - moved, moved), (n - moved, moved, 0)] {
            let mut part: Axes = shape.iter().copied().collect();
            part[axis] = length;
            let mut src = reading;
            src.layout.offset += start * src.layout.strides[axis];
            src.layout.shape = part;
            let dst = Layout { offset: target * strides[axis], shape: part, strides };
            place(&src, &mut tile, &dst).ok_or_else(|| mismatch(span))?;
        }
        self.set_tile(to, tile);
        Ok(())
    }

    /// The same bits under an element type of another width.
    pub(super) fn bitcast(&mut self, from: &Operand, dtype: DType, to: Slot, span: Span) -> Checked<()> {
        let tile = self.materialize(from, span)?;
        let bits = repack(&tile.bits(from.dtype), &from.shape, from.dtype.bits(), dtype.bits());
        let bits = bits.ok_or_else(|| mismatch(span))?;
        self.pool.give(tile);
        let mut tile = self.pool.take(LaneKind::of(dtype), bits.len());
        tile.set_bits(dtype, &bits);
        self.set_tile(to, tile);
        Ok(())
    }

    /// Picks elements along an axis.
    pub(super) fn gather(
        &mut self,
        from: &Operand,
        index: &Operand,
        axis: usize,
        to: Slot,
        span: Span,
    ) -> Checked<()> {
        let mut tile = self.pool.take(LaneKind::of(from.dtype), index.shape.iter().product());
        let (reading, at) = (self.reading(from)?, gathered::<i32>(&self.reading(index)?, span)?);
        let done = match &mut tile {
            Tile::Float(v) => pick(&reading, &at, &index.shape, axis, v, span),
            Tile::Int(v) => pick(&reading, &at, &index.shape, axis, v, span),
            Tile::Bool(v) => pick(&reading, &at, &index.shape, axis, v, span),
        };
        done?;
        self.set_tile(to, tile);
        Ok(())
    }

    /// The position of the largest or smallest element along an axis.
    pub(super) fn arg_reduce(
        &mut self,
        op: ArgReduction,
        from: &Operand,
        axis: usize,
        to: Slot,
        span: Span,
    ) -> Checked<()> {
        let shape = &from.shape;
        let sizes = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
        let mut tile = self.pool.take(LaneKind::Int, sizes[0] * sizes[2]);
        let Tile::Int(out) = &mut tile else { return Err(mismatch(span)) };
        let reading = self.reading(from)?;
        let max = op == ArgReduction::Max;
        match LaneKind::of(from.dtype) {
            // The first NaN beats everything; nothing beats a NaN.
            LaneKind::Float => search(&gathered::<f32>(&reading, span)?, sizes, out, |x: f32, best: f32| {
                !best.is_nan() && (x.is_nan() || if max { x > best } else { x < best })
            }),
            LaneKind::Int => {
                search(
                    &gathered::<i32>(&reading, span)?,
                    sizes,
                    out,
                    |x, best| {
                        if max { x > best } else { x < best }
                    },
                )
            }
            LaneKind::Bool => return Err(Fault::refused(span, "a search among `bool`")),
        }
        self.set_tile(to, tile);
        Ok(())
    }

    /// The first element of a tile.
    pub(super) fn first(&self, from: &Operand, span: Span) -> Checked<Scalar> {
        let reading = self.reading(from)?;
        let scalar = match LaneKind::of(from.dtype) {
            LaneKind::Float => one::<f32>(&reading).map(Scalar::float),
            LaneKind::Bool => one::<bool>(&reading).map(Scalar::bool),
            LaneKind::Int => {
                one::<i32>(&reading).map(|x| Scalar { poison: x == POISON_I32, ..Scalar::int(x) })
            }
        };
        scalar.ok_or_else(|| mismatch(span))
    }
}

fn one<T: Lane>(from: &Reading<'_>) -> Option<T> {
    let mut out = [T::default()];
    T::gather(from, 0, &mut out)?;
    Some(out[0])
}

fn gathered<T: Lane>(from: &Reading<'_>, span: Span) -> Checked<Vec<T>> {
    let mut out = vec![T::default(); from.layout.len()];
    let to = Layout::dense(&from.layout.shape);
    T::copy(from, &mut out, &to, |x| x).ok_or_else(|| mismatch(span))?;
    Ok(out)
}

fn place(from: &Reading<'_>, to: &mut Tile, at: &Layout) -> Option<()> {
    match to {
        Tile::Float(v) => f32::copy(from, v, at, |x| x),
        Tile::Int(v) => i32::copy(from, v, at, |x| x),
        Tile::Bool(v) => bool::copy(from, v, at, |x| x),
    }
}

fn matrix<'a>(from: &Reading<'a>, rounding: Rounding, span: Span) -> Checked<Matrix<'a>> {
    let elements = match from.elements {
        Elements::F32(v) => Side::F32(v),
        Elements::Bf16(v) => Side::Bf16(v),
        Elements::I32(v) => Side::I32(v),
        Elements::I16(v) => Side::I16(v),
        Elements::I8(v) => Side::I8(v),
        Elements::F8E4M3Fn(v) => Side::F8E4M3Fn(v),
        Elements::F8E5M2(v) => Side::F8E5M2(v),
        Elements::F8E4M3B11Fnuz(v) => Side::F8E4M3B11Fnuz(v),
        Elements::I4(v) => Side::I4(v),
        Elements::Bool(_) | Elements::Position => return Err(mismatch(span)),
    };
    let Layout { offset, strides, .. } = from.layout;
    Ok(Matrix { elements, offset, row: strides[0], col: strides[1], rounding })
}

/// Packs narrow elements of the last axis but one into wide ones, or takes wide ones apart; lowest bits first.
fn repack(bits: &[u32], shape: &[usize], from: usize, to: usize) -> Option<Vec<u32>> {
    let [.., _, columns] = *shape else { return None };
    if columns == 0 {
        return Some(vec![]);
    }
    let mut out = vec![];
    if to > from {
        let ratio = to / from;
        for rows in bits.chunks(ratio * columns) {
            out.extend((0..columns).map(|c| {
                let parts = rows.iter().skip(c).step_by(columns).enumerate();
                parts.fold(0, |wide, (h, part)| wide | part << (h * from))
            }));
        }
    } else {
        let (ratio, mask) = (from / to, (1 << to) - 1);
        for row in bits.chunks(columns) {
            (0..ratio).for_each(|h| out.extend(row.iter().map(|wide| wide >> (h * to) & mask)));
        }
    }
    Some(out)
}

/// Element `index` (modulo the length) along `axis`, for each index.
fn pick<T: Lane>(
    from: &Reading<'_>,
    index: &[i32],
    shape: &[usize],
    axis: usize,
    out: &mut [T],
    span: Span,
) -> Checked<()> {
    let x = gathered::<T>(from, span)?;
    let n = from.layout.shape[axis];
    let inner: usize = shape[axis + 1..].iter().product();
    let len = shape[axis];
    for (i, (o, at)) in out.iter_mut().zip(index).enumerate() {
        let (outer, column) = (i / (len * inner), i % inner);
        let at = i64::from(*at).checked_rem_euclid(n as i64);
        // The remainder of a division by `n` is below `n`.
        let at = at.ok_or_else(|| Fault::refused(span, "a gather from no elements"))? as usize;
        *o = x[(outer * n + at) * inner + column];
    }
    Ok(())
}

/// The position along the middle of `x[outer][len][inner]` of the first element that none beats.
fn search<T: Copy>(x: &[T], [outer, len, inner]: [usize; 3], out: &mut [i32], beats: impl Fn(T, T) -> bool) {
    for o in 0..outer {
        for i in 0..inner {
            let at = |p: usize| x[(o * len + p) * inner + i];
            let mut best = 0;
            for p in 1..len {
                if beats(at(p), at(best)) {
                    best = p;
                }
            }
            out[o * inner + i] = best as i32;
        }
    }
}

wide! {
    /// Combines floats `x[outer][len][inner]` along their middle.
    fn reduce_f32(op: Reduction, len: usize, inner: usize, x: &[f32], out: &mut [f32]) {
        match op {
            Reduction::Sum => fold(len, inner, x, out, 0.0, |a, b| a + b),
            Reduction::Max => fold(len, inner, x, out, f32::NEG_INFINITY, maximum),
            Reduction::Min => fold(len, inner, x, out, f32::INFINITY, minimum),
        }
    }
}

/// Combines `x[outer][len][inner]` along its middle.
#[inline(always)]
fn fold<T: Copy>(len: usize, inner: usize, x: &[T], out: &mut [T], zero: T, f: impl Fn(T, T) -> T) {
    if inner == 1 {
        // Eight chains at once: vector speed, and sums lose fewer bits.
        for (o, row) in out.iter_mut().zip(x.chunks_exact(len.max(1))) {
            let mut lanes = [zero; 8];
            let eights = row.chunks_exact(8);
            let rest = eights.remainder();
            for eight in eights {
                for (l, x) in lanes.iter_mut().zip(eight) {
                    *l = f(*l, *x);
                }
            }
            let head = lanes.into_iter().fold(zero, &f);
            *o = rest.iter().fold(head, |a, b| f(a, *b));
        }
        return;
    }
    out.fill(zero);
    for (o, block) in out.chunks_exact_mut(inner.max(1)).zip(x.chunks_exact((len * inner).max(1))) {
        for row in block.chunks_exact(inner) {
            for (o, x) in o.iter_mut().zip(row) {
                *o = f(*o, *x);
            }
        }
    }
}
