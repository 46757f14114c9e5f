//! Walks the grid: lexicographic order, the last axis fastest; leading parallel axes are shared among threads.

use rayon::prelude::*;

use crate::diag::Diagnostic;
use crate::ir::{Kernel, MemorySpace, Param, Role, Semantics};

use super::Options;
use super::core::{Call, Core};
use super::dma::Dma;
use super::fault::Checked;
use super::layout::Axes;
use super::random::Philox;
use super::scalar::Scalar;
use super::semaphore::Semaphores;
use super::tile::Pool;

/// The steps of a grid.
#[derive(Debug)]
pub(super) struct Grid {
    extents: Vec<i64>,
    /// How many leading axes are shared among threads.
    shared: usize,
    /// For axes whose order is shuffled: the index that each step has.
    orders: Vec<Option<Vec<i32>>>,
}

impl Grid {
    /// The grid of a call; `written` says by parameter whether the body writes to it.
    pub(super) fn new(kernel: &Kernel, written: &[bool], extents: &[i64], options: &Options) -> Self {
        let parallel = |axis: usize| kernel.grid[axis].semantics == Semantics::Parallel;
        let leading = (0..extents.len()).take_while(|a| parallel(*a)).count();
        let orders = (0..extents.len()).map(|axis| {
            let seed = options.shuffle.filter(|_| parallel(axis))?;
            Some(shuffled(extents[axis], seed.wrapping_add(axis as u64)))
        });
        Self {
            extents: extents.to_vec(),
            shared: if of_one_core(kernel, written).is_some() { 0 } else { leading },
            orders: orders.collect(),
        }
    }

    /// Number of pieces that threads may take.
    fn pieces(&self) -> u64 {
        self.extents[..self.shared].iter().map(|n| *n as u64).product()
    }

    /// Steps of one piece.
    fn inner(&self) -> u64 {
        self.extents[self.shared..].iter().map(|n| *n as u64).product()
    }

    /// The indices of a step, by its number in lexicographic order.
    fn indices(&self, mut number: u64, out: &mut [i32]) {
        for axis in (0..self.extents.len()).rev() {
            let n = self.extents[axis] as u64;
            let i = (number % n) as i32;
            number /= n;
            out[axis] = match &self.orders[axis] {
                Some(order) => order[i as usize],
                None => i,
            };
        }
    }
}

/// A parameter that belongs to one core: an array that is on the chip as a whole and written there.
pub(super) fn of_one_core<'k>(kernel: &'k Kernel, written: &[bool]) -> Option<&'k Param> {
    let all = kernel.params.iter().zip(written);
    let mut found = all.filter(|(p, written)| {
        let whole = p.window.is_none() && kernel.ref_ty(p.value).space != MemorySpace::Any;
        whole && (p.role == Role::Output || (**written && p.role != Role::Scratch))
    });
    found.next().map(|(p, _)| p)
}

/// Runs all steps. Threads beyond what the grid can use are left to the products.
pub(super) fn walk(grid: &Grid, mut call: Call<'_>, threads: usize) -> Result<(), Diagnostic> {
    let (pieces, inner) = (grid.pieces(), grid.inner());
    if pieces == 0 || inner == 0 {
        return Ok(());
    }
    let shuffled = call.options.shuffle.is_some();
    if threads == 1 || pieces == 1 {
        call.product_threads = threads;
        let length = if shuffled { inner } else { pieces * inner };
        return (0..pieces * inner)
            .step_by(length as usize)
            .try_for_each(|start| stretch(grid, &call, start, length));
    }
    // A few stretches a thread even out their lengths; a fresh core each is cheap beside that.
    let stretches = if shuffled { pieces } else { pieces.min(4 * threads as u64) };
    call.product_threads = if stretches < threads as u64 { threads } else { 1 };
    let cut = |i: u64| i * pieces / stretches * inner;
    let first = (0..stretches)
        .into_par_iter()
        .map(|i| stretch(grid, &call, cut(i), cut(i + 1) - cut(i)).err())
        .find_first(Option::is_some);
    first.flatten().map_or(Ok(()), Err)
}

/// Runs consecutive steps on a core of their own.
pub(super) fn stretch(grid: &Grid, call: &Call<'_>, start: u64, length: u64) -> Result<(), Diagnostic> {
    let mut core = Core::new(call);
    let done = core.steps(grid, start, length);
    let step = core.step;
    done.map_err(|fault| fault.diagnostic(call.kernel, Some(&step)))
}

impl<'a> Core<'a> {
    fn new(call: &'a Call<'a>) -> Self {
        let (values, params) = (call.kernel.values.len(), call.kernel.params.len());
        let mut core = Self {
            call,
            scalars: vec![Scalar::UNSET; values],
            tiles: std::iter::repeat_with(Default::default).take(values).collect(),
            views: vec![None; values],
            local: std::iter::repeat_with(Default::default).take(params).collect(),
            blocks: vec![None; params],
            owners: vec![Axes::default(); params],
            dma: Dma::default(),
            semaphores: Semaphores::default(),
            random: Philox::default(),
            rounds: 0,
            pool: Pool::default(),
            step: vec![0; call.kernel.grid.len()],
        };
        for (slot, scalar) in &call.plan.constants {
            core.scalars[*slot] = *scalar;
        }
        core
    }

    fn steps(&mut self, grid: &Grid, start: u64, length: u64) -> Checked<()> {
        self.set_up_memory()?;
        let plan = self.call.plan;
        for number in start..start + length {
            self.spend(1, self.call.kernel.span)?;
            grid.indices(number, &mut self.step);
            for (slot, axis) in &plan.program_ids {
                self.scalars[*slot] = Scalar::int(self.step[*axis]);
            }
            self.move_windows()?;
            self.run(&plan.body)?;
        }
        self.close_windows()?;
        self.all_landed()?;
        self.all_counted()
    }
}

/// SplitMix64: small, and good enough to vary an order.
#[derive(Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A permutation of `0..n`: Fisher and Yates' shuffle.
fn shuffled(n: i64, seed: u64) -> Vec<i32> {
    let mut random = SplitMix(seed);
    // Extents of a grid are bounded before this.
    let mut order: Vec<i32> = (0..n as i32).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}
