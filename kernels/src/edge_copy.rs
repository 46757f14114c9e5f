//! Copies of matrix tiles that the array's edge may cut off.
//!
//! HBM arrays are stored in hardware tiles of 8 rows and 128 lanes and padded to whole ones, so a copy may take its rows and
//! lanes rounded up to those: what it brings from the padding is undefined. Lanes may be counted on the TPU. Rows may not:
//! libtpu aborts on slices of symbolic arrays with a traced row count, so a tile that is cut off is copied in pieces
//! whose row counts are powers of two.

use kernel_ir::prelude::*;

/// Rows of a hardware tile of HBM, for every element type.
pub(crate) const SUBLANES: usize = 8;
/// Lanes of a hardware tile of HBM.
pub(crate) const LANES: usize = 128;
/// Rows of a register of the most packed type that is multiplied: row offsets into VMEM are multiples of it.
pub(crate) const PACKED: usize = 16;

/// `x >= 0` rounded up to a multiple of `to`, a power of two, with the proof that it is one.
#[track_caller]
pub(crate) fn round_up(x: Idx, to: usize) -> Idx {
    round_down(x + (to - 1), to)
}

/// `x >= 0` rounded down to a multiple of `to`, a power of two, with the proof that it is one.
///
/// By shifts: the scalar core has no divider.
#[track_caller]
pub(crate) fn round_down(x: Idx, to: usize) -> Idx {
    let bits = to.trailing_zeros() as usize;
    multiple_of(x >> bits << bits, to)
}

/// `x` where `inside` holds, zero elsewhere. Chosen as `f32`: libtpu has no masks for packed types in every layout.
#[track_caller]
pub(crate) fn keep<T: Num>(inside: Tile<bool>, x: Tile<T>) -> Tile<T> {
    select(inside, x.to::<f32>(), 0.0f32).to::<T>()
}

/// A copy of the first `rows` of `full` rows of a tile.
pub(crate) struct EdgeCopy<F> {
    /// Rows that exist, at least 1 and at most `full`.
    pub(crate) rows: Idx,
    /// Rows of a whole tile, a multiple of 8.
    pub(crate) full: usize,
    /// The copy of some rows, from an offset that is a multiple of 8.
    pub(crate) piece: F,
}

impl<F: Fn(Idx, usize) -> Copy> EdgeCopy<F> {
    /// Starts the copy and goes on.
    #[tpu_fn]
    pub(crate) fn start(&self) {
        self.each(&|c: Copy| c.start());
    }

    /// Waits until the copy has landed.
    #[tpu_fn]
    pub(crate) fn wait(&self) {
        self.each(&|c: Copy| c.wait());
    }

    #[tpu_fn]
    fn each(&self, act: &dyn Fn(Copy)) {
        let rows = round_up(self.rows, SUBLANES);
        when(rows == self.full, || act((self.piece)(Idx::from(0), self.full)));
        when(rows < self.full, || {
            let mut size = SUBLANES;
            while size < self.full {
                // The bits of `rows` above this one say where its piece begins.
                let offset = round_down(rows, 2 * size);
                when((rows & size) > 0, || act((self.piece)(offset, size)));
                size *= 2;
            }
        });
    }
}
