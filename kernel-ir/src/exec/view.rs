//! Views: which part of which array or memory a ref means, and the rules for what may be reached through it.
//!
//! **The rule at the edge of HBM.** HBM arrays lie in tiles of 8 rows by 128 columns, padded to whole tiles along their
//! last two axes. A copy may therefore reach past the logical end of those two axes, up to the next multiple of 8 (the
//! last axis but one) and of 128 (the last): what it reads there is undefined, which here is poison, and what it writes
//! there is lost. Everything else outside an array, and everything outside on-chip memory, is out of bounds. (Arrays of
//! narrow elements have taller tiles on some generations; the bound here holds on all of them.)

use crate::ir::{MemorySpace, Span};

use super::fault::{Checked, Fault};
use super::layout::{Axes, Layout, row_major};
use super::recast::Recast;

/// What a ref leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The caller's array behind a parameter; nothing writes to it.
    Input(usize),
    /// The array behind an output parameter, shared by all cores.
    Output(usize),
    /// Memory of this core: scratch or a window's block, by parameter.
    Local(usize),
    /// Semaphores of this core, by parameter.
    Semaphores(usize),
    /// The semaphore that all kernels of one collective share.
    Barrier,
}

impl Place {
    /// The parameter, if it is one's.
    pub(super) const fn param(self) -> Option<usize> {
        match self {
            Self::Input(p) | Self::Output(p) | Self::Local(p) | Self::Semaphores(p) => Some(p),
            Self::Barrier => None,
        }
    }
}

/// A box in an array or memory, as a ref sees it.
///
/// The box lies in a *frame*: at first the whole array, after a reshape or a bitcast the part that was reshaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    pub(super) place: Place,
    /// True when it lies in HBM: only copies reach it.
    pub(super) hbm: bool,
    /// True when HBM's rule at the edge applies to the frame.
    pub(super) padded: bool,
    /// Position of the frame's first element.
    pub(super) base: usize,
    /// Shape of the frame.
    pub(super) whole: Axes,
    /// By axis of the frame: the distance between neighbours.
    pub(super) strides: Axes,
    /// By axis of the frame: where the box starts.
    pub(super) start: Axes,
    /// By axis of the frame: how long it is.
    pub(super) extent: Axes,
    /// By axis of the ref: the axis of the frame.
    pub(super) axes: Axes,
    /// The element type that the ref has, if memory has another.
    pub(super) cast: Option<Recast>,
}

impl View {
    /// All of an array or memory.
    pub(super) fn whole(place: Place, space: MemorySpace, shape: &[usize]) -> Self {
        let hbm = space == MemorySpace::Any;
        Self { hbm, padded: hbm, ..Self::frame(place, 0, shape, row_major(shape)) }
    }

    /// All of a frame in on-chip memory.
    pub(super) fn frame(place: Place, base: usize, shape: &[usize], strides: Axes) -> Self {
        let whole: Axes = shape.iter().copied().collect();
        Self {
            place,
            hbm: false,
            padded: false,
            base,
            whole,
            strides,
            start: shape.iter().map(|_| 0).collect(),
            extent: whole,
            axes: (0..shape.len()).collect(),
            cast: None,
        }
    }

    /// A block of an array, inside it.
    pub(super) fn block(place: Place, shape: &[usize], start: Axes, extent: Axes) -> Self {
        Self { start, extent, ..Self::frame(place, 0, shape, row_major(shape)) }
    }

    /// Shape of the ref.
    pub(super) fn shape(&self) -> Axes {
        self.axes.iter().map(|a| self.extent[*a]).collect()
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.extent.iter().product()
    }

    /// A window of the ref.
    pub(super) fn slice(&self, offsets: &[i64], sizes: &[i64], span: Span) -> Checked<Self> {
        if offsets.len() != self.axes.len() || sizes.len() != self.axes.len() {
            return Err(Fault::refused(span, "a slice of another rank than its ref"));
        }
        let mut out = *self;
        for (i, (&offset, &size)) in offsets.iter().zip(sizes).enumerate() {
            let axis = self.axes[i];
            let limit = self.limit(axis);
            let fits = offset >= 0 && size >= 0 && offset.checked_add(size).is_some_and(|end| end <= limit);
            if !fits {
                return Err(self.out_of_bounds(i, offset, size, span));
            }
            // Both are between 0 and `limit`, which is a length.
            out.start[axis] += offset as usize;
            out.extent[axis] = size as usize;
        }
        Ok(out)
    }

    /// The indices in the frame of one element, if it is inside the ref.
    pub(super) fn index(&self, at: &[i64]) -> Option<Axes> {
        if at.len() != self.axes.len() {
            return None;
        }
        let mut index = self.start;
        for (axis, at) in self.axes.iter().zip(at) {
            let at = usize::try_from(*at).ok().filter(|at| *at < self.extent[*axis])?;
            index[*axis] += at;
        }
        Some(index)
    }

    /// The position of one element, if it is inside the ref and the ref has the elements of memory.
    pub(super) fn position(&self, at: &[i64]) -> Option<usize> {
        if at.len() != self.axes.len() || self.cast.is_some() {
            return None;
        }
        let mut position = self.base;
        for (i, stride) in self.strides.iter().enumerate() {
            position += self.start[i] * stride;
        }
        for (axis, at) in self.axes.iter().zip(at) {
            let at = usize::try_from(*at).ok().filter(|at| *at < self.extent[*axis])?;
            position += at * self.strides[*axis];
        }
        Some(position)
    }

    /// How far a slice of the ref may reach along an axis of the frame.
    fn limit(&self, axis: usize) -> i64 {
        let end = self.start[axis] + self.extent[axis];
        let tile = match self.whole.len() - axis {
            1 => 128,
            2 => 8,
            _ => 1,
        };
        let limit = if self.padded && end >= self.whole[axis] {
            self.whole[axis].next_multiple_of(tile).max(end) - self.start[axis]
        } else {
            self.extent[axis]
        };
        limit as i64
    }

    fn out_of_bounds(&self, axis: usize, offset: i64, size: i64, span: Span) -> Box<Fault> {
        let length = self.extent[self.axes[axis]];
        let end = offset.saturating_add(size);
        let message = if size == 1 {
            format!("index {offset} is out of bounds for axis {axis} of length {length}")
        } else {
            format!("{offset}..{end} is out of bounds for axis {axis} of length {length}")
        };
        let fault = Fault::new("K0401", span, message).label(format!("reaches {offset}..{end}"));
        if self.padded && end > length as i64 {
            return fault.note("a copy may reach past an HBM array only inside its last tile: to the next multiple of 8 rows and of 128 columns");
        }
        fault
    }

    /// The ref without these axes of length 1.
    pub(super) fn squeeze(&self, axes: &[usize], span: Span) -> Checked<Self> {
        if axes.iter().any(|a| *a >= self.axes.len() || self.extent[self.axes[*a]] != 1) {
            return Err(Fault::refused(span, "squeeze of an axis that is not of length 1"));
        }
        let kept = (0..self.axes.len()).filter(|i| !axes.contains(i));
        Ok(Self { axes: kept.map(|i| self.axes[i]).collect(), ..*self })
    }

    /// Where the elements lie; the box must be inside the frame, and the ref have the elements of memory.
    pub(super) fn layout(&self) -> Layout {
        Layout {
            offset: self.base + self.start.iter().zip(self.strides.iter()).map(|(a, b)| a * b).sum::<usize>(),
            shape: self.shape(),
            strides: self.axes.iter().map(|a| self.strides[*a]).collect(),
        }
    }

    /// The part that lies inside the frame, if the box sticks out.
    pub(super) fn clipped(&self) -> Option<Self> {
        let mut inside = *self;
        for i in 0..self.whole.len() {
            let room = self.whole[i].saturating_sub(self.start[i]);
            inside.extent[i] = self.extent[i].min(room);
        }
        (inside.extent != self.extent).then_some(inside)
    }

    /// The same box cut to the shape of another one (of the same rank), from its start.
    pub(super) fn cut(&self, shape: &[usize]) -> Self {
        let mut out = *self;
        for (axis, n) in self.axes.iter().zip(shape) {
            out.extent[*axis] = out.extent[*axis].min(*n);
        }
        out
    }

    /// Whether two boxes share an element.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        if self.place != other.place {
            return false;
        }
        if (self.base, self.whole, self.strides, self.cast)
            != (other.base, other.whole, other.strides, other.cast)
        {
            return self.shares_memory(other);
        }
        (0..self.whole.len()).all(|i| {
            let (a, b) = (self.start[i], other.start[i]);
            a < b + other.extent[i] && b < a + self.extent[i]
        })
    }
}
