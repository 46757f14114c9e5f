//! Refs that see memory under another shape or another element type.
//!
//! A reshape only changes the strides of a view. A bitcast to elements of the same width changes nothing but how bits
//! are read. One to another width follows the TPU's packing: a wide element holds the narrow ones of the last axis but
//! one, lowest bits first. Memory keeps its own elements, so that what is read and written through such a ref goes bit
//! by bit, which is slow and right.

use crate::ir::{DType, Span};

use super::data::{Data, Stored, each_data};
use super::fault::{Checked, Fault};
use super::layout::{Axes, Layout};
use super::view::View;

/// How the elements of a ref lie in those of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Recast {
    /// Element type of the ref.
    pub(super) dtype: DType,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// One for one.
    Same,
    /// An element of the ref is made of `ratio` elements of memory, `step` apart.
    Wide { ratio: usize, step: usize },
    /// `ratio` elements of the ref, neighbours on an axis of the frame, make up one of memory. The stride of that axis
    /// is between elements of memory.
    Narrow { ratio: usize, axis: usize },
}

impl View {
    /// The same memory under another element type; `from` is the one that the ref has.
    pub(super) fn bitcast(&self, from: DType, to: DType, span: Span) -> Checked<Self> {
        let (old, new) = (from.bits(), to.bits());
        let form = self.cast.map_or(Form::Same, |c| c.form);
        if old == new {
            return Ok(Self { cast: Some(Recast { dtype: to, form }), ..*self });
        }
        let refused = || Fault::refused(span, format!("a bitcast of this ref from {from} to {to}"));
        let mut out = self.own_frame(span)?;
        let axis = out.whole.len().checked_sub(2).ok_or_else(refused)?;
        let stride = out.strides[axis];
        let (length, form) = if new > old {
            let r = new / old;
            let form = match form {
                Form::Same => Form::Wide { ratio: r, step: stride },
                Form::Wide { ratio, step } if stride == ratio * step => Form::Wide { ratio: ratio * r, step },
                Form::Narrow { ratio, axis: a } if a == axis && ratio == r => Form::Same,
                Form::Narrow { ratio, axis: a } if a == axis && ratio % r == 0 => {
                    Form::Narrow { ratio: ratio / r, axis }
                }
                _ => return Err(refused()),
            };
            if let Form::Wide { .. } = form {
                out.strides[axis] = stride * r;
            }
            (out.whole[axis].is_multiple_of(r).then(|| out.whole[axis] / r), form)
        } else {
            let r = old / new;
            let form = match form {
                Form::Same => Form::Narrow { ratio: r, axis },
                Form::Narrow { ratio, axis: a } if a == axis => Form::Narrow { ratio: ratio * r, axis },
                Form::Wide { ratio, step } if ratio == r && stride == r * step => Form::Same,
                Form::Wide { ratio, step } if ratio % r == 0 && stride == ratio * step => {
                    Form::Wide { ratio: ratio / r, step }
                }
                _ => return Err(refused()),
            };
            if let Form::Same | Form::Wide { .. } = form {
                out.strides[axis] = stride / r;
            }
            (out.whole[axis].checked_mul(r), form)
        };
        let length = length.ok_or_else(refused)?;
        (out.whole[axis], out.extent[axis]) = (length, length);
        out.cast = Some(Recast { dtype: to, form });
        Ok(out)
    }

    /// The same elements in row-major order under another shape.
    pub(super) fn reshape(&self, shape: &[usize], span: Span) -> Checked<Self> {
        let all = self.padded && self.extent == self.whole;
        let own = self.own_frame(span)?;
        // Elements that share one of memory stay neighbours on the last axis but one: count what they lie in.
        let (mut from, mut to): (Axes, Axes) = (own.whole, shape.iter().copied().collect());
        let mut cast = own.cast;
        if let Some(Recast { form: Form::Narrow { ratio, axis }, dtype }) = own.cast {
            let target = shape.len().checked_sub(2).filter(|t| shape[*t].is_multiple_of(ratio));
            let target = target.filter(|_| axis + 2 == own.whole.len() && shape.last() == own.whole.last());
            let target = target
                .ok_or_else(|| Fault::refused(span, "a reshape that takes apart what a bitcast packed"))?;
            (from[axis], to[target]) = (from[axis] / ratio, to[target] / ratio);
            cast = Some(Recast { dtype, form: Form::Narrow { ratio, axis: target } });
        }
        let strides = restride(&from, &own.strides, &to)
            .ok_or_else(|| Fault::refused(span, "a reshape of a ref that is not contiguous"))?;
        let frame = Self::frame(self.place, own.base, shape, strides);
        Ok(Self { hbm: self.hbm, padded: all, cast, ..frame })
    }

    /// The same ref whose frame is its own box.
    fn own_frame(&self, span: Span) -> Checked<Self> {
        let refused = |what: &str| Fault::refused(span, what);
        if self.clipped().is_some() {
            return Err(refused("another shape or element type of a ref that reaches past its array"));
        }
        let (mut start, mut cast) = (self.start, self.cast);
        if let Some(Recast { form: Form::Narrow { ratio, axis }, dtype }) = self.cast {
            let kept = self.axes.iter().position(|a| *a == axis);
            let aligned = start[axis].is_multiple_of(ratio) && self.extent[axis].is_multiple_of(ratio);
            let kept = kept.filter(|_| aligned).ok_or_else(|| refused("a part of packed elements"))?;
            start[axis] /= ratio;
            cast = Some(Recast { dtype, form: Form::Narrow { ratio, axis: kept } });
        }
        let base = self.base + start.iter().zip(self.strides.iter()).map(|(i, s)| i * s).sum::<usize>();
        let strides = self.axes.iter().map(|a| self.strides[*a]).collect();
        Ok(Self { hbm: self.hbm, cast, ..Self::frame(self.place, base, &self.shape(), strides) })
    }

    /// Where the element at these indices of the frame begins: its position in memory, and which part of that it is.
    fn element(&self, index: &[usize]) -> (usize, usize) {
        let mut part = 0;
        let mut at = self.base;
        for (i, (x, stride)) in index.iter().zip(self.strides.iter()).enumerate() {
            let mut x = *x;
            if let Some(Recast { form: Form::Narrow { ratio, axis }, .. }) = self.cast
                && axis == i
            {
                part = x % ratio;
                x /= ratio;
            }
            at += x * stride;
        }
        (at, part)
    }

    /// Calls `f` with the indices of every element, in row-major order; `strides` apart along each axis of the ref.
    fn each(&self, strides: &[usize], shape: &[usize], mut f: impl FnMut(&Axes)) {
        if shape.contains(&0) {
            return;
        }
        let mut at: Axes = shape.iter().map(|_| 0).collect();
        let mut index = self.start;
        loop {
            f(&index);
            let mut axis = shape.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return };
                axis = next;
                let (step, frame) = (strides.get(axis).copied().unwrap_or(1), self.axes[axis]);
                at[axis] += 1;
                index[frame] += step;
                if at[axis] < shape[axis] {
                    break;
                }
                index[frame] -= step * shape[axis];
                at[axis] = 0;
            }
        }
    }

    /// The bits of the elements, in row-major order; `strides` apart (all 1 when there are none).
    pub(super) fn read_bits(&self, data: &Data, strides: &[usize], shape: &[usize]) -> Vec<u32> {
        let mut out = Vec::with_capacity(shape.iter().product());
        self.each(strides, shape, |index| out.push(self.bits_at(data, index)));
        out
    }

    /// Writes elements given by their bits, in row-major order, where `mask` does not forbid it.
    pub(super) fn write_bits(
        &self,
        data: &mut Data,
        strides: &[usize],
        shape: &[usize],
        bits: &[u32],
        mask: Option<&[bool]>,
    ) {
        let mut i = 0;
        self.each(strides, shape, |index| {
            if mask.is_none_or(|m| m[i]) {
                self.set_bits_at(data, index, bits[i]);
            }
            i += 1;
        });
    }

    /// The bits of one element.
    pub(super) fn bits_at(&self, data: &Data, index: &[usize]) -> u32 {
        let (at, part) = self.element(index);
        let one = |i: usize| each_data!(data, v => v[i].bits());
        let memory = data.dtype().bits();
        match self.cast.map(|c| (c.form, c.dtype.bits())) {
            None | Some((Form::Same, _)) => one(at),
            Some((Form::Wide { ratio, step }, _)) => {
                (0..ratio).fold(0, |bits, h| bits | one(at + h * step) << (h * memory))
            }
            Some((Form::Narrow { .. }, width)) => (one(at) >> (part * width)) & ((1 << width) - 1),
        }
    }

    /// Writes one element.
    pub(super) fn set_bits_at(&self, data: &mut Data, index: &[usize], bits: u32) {
        let (at, part) = self.element(index);
        let memory = data.dtype().bits();
        let mut put = |i: usize, bits: u32| each_data!(data, v => set(v, i, bits));
        match self.cast.map(|c| (c.form, c.dtype.bits())) {
            None | Some((Form::Same, _)) => put(at, bits),
            Some((Form::Wide { ratio, step }, _)) => {
                (0..ratio).for_each(|h| put(at + h * step, bits >> (h * memory)));
            }
            Some((Form::Narrow { .. }, width)) => {
                let mask = ((1_u32 << width) - 1) << (part * width);
                let old = each_data!(&*data, v => v[at].bits());
                each_data!(data, v => set(v, at, old & !mask | (bits << (part * width)) & mask));
            }
        }
    }

    /// The positions in memory of one element.
    pub(super) fn positions_at(&self, index: &[usize]) -> impl Iterator<Item = usize> + use<> {
        let (at, _) = self.element(index);
        let (ratio, step) = match self.cast.map(|c| c.form) {
            Some(Form::Wide { ratio, step }) => (ratio, step),
            _ => (1, 0),
        };
        (0..ratio).map(move |h| at + h * step)
    }

    /// The positions in memory of all elements that lie inside the frame.
    pub(super) fn positions(&self) -> Vec<usize> {
        let inside = self.clipped().unwrap_or(*self);
        let mut all = vec![];
        inside.each(&[], &inside.shape(), |index| all.extend(inside.positions_at(index)));
        all
    }

    /// Whether two boxes of different frames share an element of memory.
    pub(super) fn shares_memory(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self.positions(), other.positions());
        a.sort_unstable();
        b.sort_unstable();
        let reach = |v: &[usize]| Some((*v.first()?, *v.last()?));
        let (Some((a0, a1)), Some((b0, b1))) = (reach(&a), reach(&b)) else { return false };
        a0 <= b1 && b0 <= a1 && a.iter().any(|x| b.binary_search(x).is_ok())
    }
}

fn set<T: Stored>(v: &mut [T], at: usize, bits: u32) {
    v[at] = T::from_bits(bits);
}

/// Elements of `dtype` with these bits.
pub(super) fn from_bits(dtype: DType, bits: &[u32]) -> Data {
    let mut data = Data::zeros(dtype, bits.len());
    each_data!(&mut data, v => v.iter_mut().zip(bits).for_each(|(x, b)| *x = Stored::from_bits(*b)));
    data
}

/// The strides under which elements of `shape` and `strides` have another shape, if there are any: axes that merge must
/// lie as one.
fn restride(shape: &[usize], strides: &[usize], to: &[usize]) -> Option<Axes> {
    let len: usize = shape.iter().product();
    if len != to.iter().try_fold(1_usize, |n, d| n.checked_mul(*d))? {
        return None;
    }
    let from = Layout {
        offset: 0,
        shape: shape.iter().copied().collect(),
        strides: strides.iter().copied().collect(),
    }
    .collapse();
    if len == 0 {
        return Some(to.iter().map(|_| 0).collect());
    }
    // Split the runs that `collapse` left, from the last axis on.
    let mut runs: Vec<(usize, usize)> =
        from.shape.iter().copied().zip(from.strides.iter().copied()).collect();
    let mut out: Axes = to.iter().map(|_| 1).collect();
    for axis in (0..to.len()).rev().filter(|a| to[*a] != 1) {
        let (n, stride) = runs.last_mut()?;
        if !n.is_multiple_of(to[axis]) {
            return None;
        }
        out[axis] = *stride;
        *n /= to[axis];
        *stride *= to[axis];
        if *n == 1 {
            runs.pop();
        }
    }
    Some(out)
}
