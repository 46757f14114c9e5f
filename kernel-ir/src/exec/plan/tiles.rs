//! Layout ops on operands: transposes, broadcasts, slices and unit-axis reshapes only change how a source is read.

use super::{Operand, Slot, Source};
use crate::ir::{DType, TileType};

impl Operand {
    /// All of a tile.
    pub(in crate::exec) fn tile(slot: Slot, ty: &TileType) -> Self {
        let source = Source::Tile { slot, shape: ty.shape.clone() };
        Self::whole(source, ty.shape.clone(), ty.dtype)
    }

    /// A source of this shape, axis by axis.
    pub(super) fn whole(source: Source, shape: Vec<usize>, dtype: DType) -> Self {
        Self {
            source,
            starts: vec![0; shape.len()],
            axes: (0..shape.len()).map(Some).collect(),
            shape,
            dtype,
        }
    }

    /// A scalar everywhere.
    pub(super) fn splat(slot: Slot, ty: &TileType) -> Self {
        Self {
            source: Source::Splat(slot),
            starts: vec![],
            axes: vec![None; ty.shape.len()],
            shape: ty.shape.clone(),
            dtype: ty.dtype,
        }
    }

    /// The index along an axis.
    pub(super) fn iota(axis: usize, ty: &TileType) -> Self {
        Self {
            source: Source::Iota,
            starts: vec![0],
            axes: (0..ty.shape.len()).map(|i| (i == axis).then_some(0)).collect(),
            shape: ty.shape.clone(),
            dtype: ty.dtype,
        }
    }

    /// Result axis `i` is operand axis `permutation[i]`.
    pub(super) fn transpose(mut self, permutation: &[usize]) -> Self {
        self.axes = permutation.iter().map(|p| self.axes[*p]).collect();
        self.shape = permutation.iter().map(|p| self.shape[*p]).collect();
        self
    }

    /// Repeats axes of length 1.
    pub(super) fn broadcast(mut self, shape: &[usize]) -> Self {
        for (i, &n) in shape.iter().enumerate() {
            if self.shape[i] != n {
                self.axes[i] = None;
            }
        }
        self.shape = shape.to_vec();
        self
    }

    /// The part that starts at `offsets`.
    pub(in crate::exec) fn extract(mut self, offsets: &[usize], shape: &[usize]) -> Self {
        for (axis, offset) in self.axes.iter().zip(offsets) {
            if let Some(a) = axis {
                self.starts[*a] += offset;
            }
        }
        self.shape = shape.to_vec();
        self
    }

    /// True when the operand is all of a dense tile.
    pub(super) fn is_whole_tile(&self) -> bool {
        let Source::Tile { shape, .. } = &self.source else {
            return false;
        };
        *shape == self.shape
            && self.starts.iter().all(|s| *s == 0)
            && self.axes.iter().enumerate().all(|(i, a)| *a == Some(i))
    }

    /// The same elements under another shape, if no element has to move.
    pub(super) fn reshape(&self, to: &[usize]) -> Option<Self> {
        let dtype = self.dtype;
        match &self.source {
            Source::Splat(slot) => {
                let shape = to.to_vec();
                return Some(Self::splat(*slot, &TileType { dtype, shape }));
            }
            Source::Tile { slot, .. } if self.is_whole_tile() => {
                let shape = to.to_vec();
                return Some(Self::tile(*slot, &TileType { dtype, shape }));
            }
            _ => {}
        }
        // Otherwise only axes of length 1 may come and go.
        let kept: Vec<usize> = (0..self.shape.len()).filter(|&i| self.shape[i] != 1).collect();
        let lengths = kept.iter().map(|&i| self.shape[i]);
        if !lengths.eq(to.iter().copied().filter(|&n| n != 1)) {
            return None;
        }
        let mut next = kept.iter();
        let axes =
            to.iter().map(|&n| if n == 1 { None } else { next.next().and_then(|&i| self.axes[i]) }).collect();
        Some(Self { axes, shape: to.to_vec(), ..self.clone() })
    }

    /// The tile it reads.
    pub(super) const fn tile_slot(&self) -> Option<Slot> {
        match self.source {
            Source::Tile { slot, .. } => Some(slot),
            _ => None,
        }
    }

    /// The ref it reads.
    pub(super) const fn memory_base(&self) -> Option<Slot> {
        match self.source {
            Source::Memory { base, .. } => Some(base),
            _ => None,
        }
    }
}
