//! One side of a matrix product: where its elements lie, and how they become what is multiplied.

use half::bf16;

#[cfg(target_arch = "x86_64")]
use super::bf16_pairs;
use super::data::{Stored, round_bf16};
#[cfg(target_arch = "x86_64")]
use super::fma;
use super::wide::wide;
use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};

/// The elements of one side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elements<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
    I32(&'a [i32]),
    I16(&'a [i16]),
    I8(&'a [i8]),
    F8E4M3Fn(&'a [F8E4M3Fn]),
    F8E5M2(&'a [F8E5M2]),
    F8E4M3B11Fnuz(&'a [F8E4M3B11Fnuz]),
    I4(&'a [I4]),
}

/// What is to be done to `f32` elements before they are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// They are multiplied as they are.
    None,
    /// They hold bfloat16 numbers: nothing.
    Done,
    /// They are rounded to bfloat16.
    Needed,
}

/// One side of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    pub(super) elements: Elements<'a>,
    /// Position of the first element.
    pub(super) offset: usize,
    /// Distance between rows.
    pub(super) row: usize,
    /// Distance between columns.
    pub(super) col: usize,
    pub(super) rounding: Rounding,
}

/// Elements of a side, from its first on.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Source<'a, T> {
    pub(super) data: &'a [T],
    /// Distance between rows.
    pub(super) row: usize,
    /// Distance between columns.
    pub(super) col: usize,
}

/// Evaluates an expression for the element type of a matrix, with its elements and the function that makes `f32` of one.
macro_rules! each_element {
    ($matrix:expr, ($v:ident, $f:ident) => $body:expr) => {{
        macro_rules! with {
            ($elements:expr, $convert:expr) => {{
                let ($v, $f) = ($elements, $convert);
                $body
            }};
        }
        match $matrix.elements {
            Elements::F32(v) if $matrix.rounding == Rounding::Needed => with!(v, round_bf16),
            Elements::F32(v) => with!(v, |x: f32| x),
            Elements::Bf16(v) => with!(v, bf16::lane),
            Elements::I32(v) => with!(v, |x: i32| x as f32),
            Elements::I16(v) => with!(v, |x: i16| f32::from(x)),
            Elements::I8(v) => with!(v, |x: i8| f32::from(x)),
            Elements::F8E4M3Fn(v) => with!(v, F8E4M3Fn::to_f32),
            Elements::F8E5M2(v) => with!(v, F8E5M2::to_f32),
            Elements::F8E4M3B11Fnuz(v) => with!(v, F8E4M3B11Fnuz::to_f32),
            Elements::I4(v) => with!(v, |x: I4| f32::from(x.get())),
        }
    }};
}

impl<'a> Matrix<'a> {
    /// The matrix from this row and column on.
    pub(super) const fn from(self, row: usize, col: usize) -> Self {
        Self { offset: self.offset + row * self.row + col * self.col, ..self }
    }

    /// The elements, when the multiplication can read them in place.
    pub(super) fn in_place(&self) -> Option<&'a [f32]> {
        match self.elements {
            Elements::F32(v) if self.rounding != Rounding::Needed => Some(v),
            _ => None,
        }
    }

    /// Whether bfloat16 holds every element, once rounded where that is asked for.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn fits_bf16(&self) -> bool {
        match self.elements {
            Elements::F32(_) => self.rounding != Rounding::None,
            Elements::I32(_) | Elements::I16(_) => false,
            _ => true,
        }
    }

    /// Writes `rows x cols` elements as `f32`, in the order in which they lie, and says with which strides.
    pub(super) fn widen(&self, rows: usize, cols: usize, out: &mut Vec<f32>) -> (usize, usize) {
        let by_rows = self.col <= self.row;
        let (outer, inner, step, stride) =
            if by_rows { (rows, cols, self.row, self.col) } else { (cols, rows, self.col, self.row) };
        let out = grown(out, outer * inner, 0.0);
        for (i, out) in out.chunks_exact_mut(inner.max(1)).enumerate() {
            let at = self.offset + i * step;
            match self.elements {
                Elements::Bf16(v) if stride == 1 => widen_bf16(&v[at..at + inner], out),
                _ => each_element!(self, (v, f) => extend(out, v, at, stride, f)),
            }
        }
        if by_rows { (cols, 1) } else { (1, rows) }
    }

    /// Writes `depth x width` elements as `f32` strips.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn pack(&self, depth: usize, width: usize, out: &mut Vec<f32>) {
        each_element!(self, (v, f) => fma::pack(self.source(v), depth, width, out, f));
    }

    /// Writes `depth x width` elements, which [`Self::fits_bf16`], as strips of pairs.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn pack_pairs(&self, depth: usize, width: usize, out: &mut Vec<bf16_pairs::Line>) {
        if let Elements::Bf16(v) = self.elements {
            return bf16_pairs::pack_right(self.source(v), depth, width, out, bf16::to_bits);
        }
        each_element!(self, (v, f) => {
            bf16_pairs::pack_right(self.source(v), depth, width, out, |x| upper_half(f(x)));
        });
    }

    /// The first rows and columns, which [`Self::fits_bf16`], as rows of pairs: in place, or written into a buffer.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn rows_of_pairs<'b>(
        &self,
        rows: usize,
        depth: usize,
        buffer: &'b mut Vec<bf16>,
    ) -> bf16_pairs::Left<'b>
    where
        'a: 'b,
    {
        if let Elements::Bf16(v) = self.elements
            && self.col == 1
            && depth.is_multiple_of(2)
        {
            return bf16_pairs::Left { data: &v[self.offset..], row: self.row };
        }
        let row = each_element!(self, (v, f) => {
            bf16_pairs::pack_left(self.source(v), rows, depth, buffer, |x| upper_half(f(x)))
        });
        bf16_pairs::Left { data: buffer, row }
    }

    #[cfg(target_arch = "x86_64")]
    fn source<T>(&self, v: &'a [T]) -> Source<'a, T> {
        Source { data: &v[self.offset.min(v.len())..], row: self.row, col: self.col }
    }

    pub(super) fn int(&self, row: usize, col: usize) -> i32 {
        let at = self.offset + row * self.row + col * self.col;
        match self.elements {
            Elements::F32(v) => v[at] as i32,
            Elements::Bf16(v) => v[at].lane() as i32,
            Elements::I32(v) => v[at],
            Elements::I16(v) => i32::from(v[at]),
            Elements::I8(v) => i32::from(v[at]),
            Elements::F8E4M3Fn(v) => v[at].lane() as i32,
            Elements::F8E5M2(v) => v[at].lane() as i32,
            Elements::F8E4M3B11Fnuz(v) => v[at].lane() as i32,
            Elements::I4(v) => v[at].lane(),
        }
    }
}

/// The first `len` elements of a buffer that is used again and again: it never shrinks, and what it holds is overwritten.
pub(super) fn grown<T: Clone>(buffer: &mut Vec<T>, len: usize, zero: T) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, zero);
    }
    &mut buffer[..len]
}

/// The bits of a number that bfloat16 holds.
#[cfg(target_arch = "x86_64")]
fn upper_half(x: f32) -> u16 {
    (x.to_bits() >> 16) as u16
}

/// Writes elements, `stride` apart, through `f`.
fn extend<T: Copy>(out: &mut [f32], v: &[T], at: usize, stride: usize, f: impl Fn(T) -> f32) {
    if stride == 1 {
        let n = out.len();
        out.iter_mut().zip(&v[at..at + n]).for_each(|(o, x)| *o = f(*x));
    } else {
        out.iter_mut().zip(v[at..].iter().step_by(stride.max(1))).for_each(|(o, x)| *o = f(*x));
    }
}

wide! {
    /// The element type that most operands have.
    fn widen_bf16(from: &[bf16], out: &mut [f32]) {
        out.iter_mut().zip(from).for_each(|(o, x)| *o = x.lane());
    }
}

/// One side, as `f32` in place, from its first element on.
#[derive(Clone, Copy)]
pub(super) struct Dense<'a> {
    pub(super) data: &'a [f32],
    pub(super) row: usize,
    pub(super) col: usize,
}

impl<'a> Dense<'a> {
    /// The first rows and columns of a side: in place, or widened into a buffer.
    pub(super) fn of(side: Matrix<'a>, rows: usize, cols: usize, buffer: &'a mut Vec<f32>) -> Self {
        if let Some(v) = side.in_place() {
            return Self::new(v, side, rows, cols);
        }
        let (row, col) = side.widen(rows, cols, buffer);
        Self { data: buffer, row, col }
    }

    pub(super) fn new(data: &'a [f32], m: Matrix<'_>, rows: usize, cols: usize) -> Self {
        let last = (rows - 1) * m.row + (cols - 1) * m.col;
        Self { data: &data[m.offset..=m.offset + last], row: m.row, col: m.col }
    }
}
