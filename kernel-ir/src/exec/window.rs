//! Windows: which block of an array each grid step sees, when a block is fetched, and when it is written back.
//!
//! An input block is fetched only when its block index changes; an output block starts undefined, is kept while the
//! index stays, and is written back when the index changes and at the end. A block may stick out of its array: what
//! lies outside (padding, too) is undefined when read and dropped when written. A block that lies inside is read in
//! place.

use crate::ir::{MemorySpace, Param, Role, Semantics, Window, WindowUnit};

use super::core::{Argument, Core, Memory};
use super::data::{Data, Stored, each_data};
use super::dma::lock;
use super::fault::{Checked, Fault};
use super::layout::{self, Axes, Layout};
use super::scalar::Scalar;
use super::sharing::Conflict;
use super::view::{Place, View};

impl Core<'_> {
    /// Moves every window to the current grid step.
    pub(super) fn move_windows(&mut self) -> Checked<()> {
        let params = &self.call.kernel.params;
        let mut entered = vec![];
        for (p, param) in params.iter().enumerate() {
            let Some(window) = &param.window else {
                continue;
            };
            let index = self.block_index(p, param)?;
            let owner = self.parallel_indices();
            if self.blocks[p] == Some(index) {
                if param.role == Role::Output && self.owners[p] != owner {
                    return Err(self.two_writers(param, &index, &self.owners[p], &owner));
                }
                continue;
            }
            self.leave_block(p, param, window)?;
            self.blocks[p] = Some(index);
            self.owners[p] = owner;
            entered.push((p, param, window, index));
        }
        // An aliased input sees what the outputs of the last step were.
        entered
            .into_iter()
            .try_for_each(|(p, param, window, index)| self.enter_block(p, param, window, &index))
    }

    /// Writes back what output windows still hold.
    pub(super) fn close_windows(&mut self) -> Checked<()> {
        let params = &self.call.kernel.params;
        for (p, param) in params.iter().enumerate() {
            match &param.window {
                Some(window) => self.leave_block(p, param, window)?,
                None => self.write_whole(p, param),
            }
            self.blocks[p] = None;
        }
        Ok(())
    }

    /// Runs a block map.
    fn block_index(&mut self, p: usize, param: &Param) -> Checked<Axes> {
        let call = self.call;
        let Some(map) = &call.plan.windows[p] else {
            return Err(Fault::refused(param.span, "a window without a block map"));
        };
        for (slot, i) in map.args.iter().zip(&self.step) {
            self.scalars[*slot] = Scalar::int(*i);
        }
        self.run(&map.code)?;
        let Some(window) = &param.window else { return Err(Fault::refused(param.span, "no window")) };
        let shape = call.arguments[p].shape();
        if window.block.len() != shape.len() || map.code.results.len() != shape.len() {
            return Err(Fault::refused(window.span, "a window of another rank than its array"));
        }
        let mut index = Axes::default();
        for (axis, passed) in map.code.results.iter().enumerate() {
            let what = format!("the block index of `{}`", param.name);
            let i = self.index(passed.slot, &what, param.span)?;
            let (length, size) = (shape[axis], window.block[axis]);
            let (unit, end) = match &window.unit {
                WindowUnit::Blocks => (size, length),
                WindowUnit::Elements(pads) => {
                    let (before, after) = pads.get(axis).copied().unwrap_or_default();
                    (1, length.saturating_add(before).saturating_add(after))
                }
            };
            let inside = usize::try_from(i)
                .ok()
                .filter(|i| *i == 0 || i.checked_mul(unit).is_some_and(|start| start < end));
            index.push(inside.ok_or_else(|| {
                let message =
                    format!("block {i} of `{}` starts outside axis {axis} of length {length}", param.name);
                Fault::new("K0401", window.span, message)
                    .label(format!("blocks of {size} along axis {axis}"))
                    .help("bound the block map, or the grid, by the number of blocks")
            })?);
        }
        Ok(index)
    }

    /// Indices of this step on the parallel axes; 0 on the others.
    fn parallel_indices(&self) -> Axes {
        let axes = self.step.iter().zip(&self.call.kernel.grid);
        axes.map(|(i, g)| if g.semantics == Semantics::Parallel { *i as usize } else { 0 }).collect()
    }

    fn two_writers(&self, param: &Param, block: &Axes, one: &Axes, other: &Axes) -> Box<Fault> {
        let message = format!("block {:?} of `{}` is written by two parallel steps", &**block, param.name);
        Fault::new("K0410", param.span, message)
            .label("its block map ignores a parallel axis")
            .note(format!("the steps have indices {:?} and {:?} on the parallel axes", &**one, &**other))
            .help("mark the axis `seq`, or give each step a block of its own")
    }

    fn enter_block(&mut self, p: usize, param: &Param, window: &Window, index: &Axes) -> Checked<()> {
        let call = self.call;
        let slot = param.value.0 as usize;
        let (shape, place) = match &call.arguments[p] {
            Argument::Input(a) => (a.shape(), Place::Input(p)),
            Argument::Alias { shape, output, .. } => (shape.as_slice(), Place::Output(*output)),
            Argument::Output { .. } | Argument::None => {
                self.views[slot] = Some(self.local_block(p, param, window));
                return Ok(());
            }
        };
        let part = Part::of(window, index, shape);
        let block = View::block(place, shape, part.array, part.length);
        if let (Place::Input(_), true) = (place, *part.length == *window.block && !call.plan.written[p]) {
            self.views[slot] = Some(block);
            return Ok(());
        }
        let local = self.local_block(p, param, window);
        let to = View::block(Place::Local(p), &window.block, part.block, part.length);
        let (from, to) = (block.layout(), to.layout());
        match (place, &call.arguments[p], self.argument(place)) {
            (Place::Output(o), _, Argument::Output { data, users, .. }) => {
                self.may_read(&block, param.span)?;
                let output = &call.kernel.params[o];
                let alike = |w: &Window| w.block == window.block && w.unit == window.unit;
                if output.window.as_ref().is_some_and(alike)
                    && lock(users).read(*index, self.owners[p]).is_some()
                {
                    return Err(Self::read_by_another(output, index));
                }
                each_data!(&*lock(data), v => copy(v, &from, &mut self.local[p].data, &to));
            }
            (_, Argument::Input(a), _) => {
                each_data!(a.data(), v => copy(v, &from, &mut self.local[p].data, &to));
            }
            _ => return Err(Fault::refused(param.span, "a window of no array")),
        }
        self.local[p].written = None;
        self.views[slot] = Some(local);
        Ok(())
    }

    fn read_by_another(output: &Param, block: &Axes) -> Box<Fault> {
        let message = format!(
            "block {:?} of `{}` is written by one parallel step and read by another",
            &**block, output.name
        );
        Fault::new("K0410", output.span, message)
            .label("an input is aliased to it, and its block map names the blocks of other steps")
            .help("mark the axis `seq`, or let each step read and write the same blocks")
    }

    /// The memory of a window, as if never written.
    fn local_block(&mut self, p: usize, param: &Param, window: &Window) -> View {
        let n = window.block.iter().product();
        let memory = &mut self.local[p];
        if memory.data.len() == n {
            memory.data.fill_poison();
        } else if let Some(array) = &param.array {
            memory.data = Data::poison(array.dtype, n);
        }
        let space = self.call.kernel.ref_ty(param.value).space;
        memory.written = (space == MemorySpace::Smem).then(|| vec![false; n]);
        View::whole(Place::Local(p), MemorySpace::Vmem, &window.block)
    }

    /// Writes an output block back.
    fn leave_block(&mut self, p: usize, param: &Param, window: &Window) -> Checked<()> {
        let (Some(index), Argument::Output { shape, data, users, .. }) =
            (self.blocks[p], &self.call.arguments[p])
        else {
            return Ok(());
        };
        let owner = self.owners[p];
        match lock(users).write(index, owner) {
            Some(Conflict::Written(before)) => return Err(self.two_writers(param, &index, &before, &owner)),
            Some(Conflict::Read) => return Err(Self::read_by_another(param, &index)),
            None => {}
        }
        let local = View::whole(Place::Local(p), MemorySpace::Vmem, &window.block);
        self.may_write(&local, param.span)?;
        let part = Part::of(window, &index, shape);
        let block = View::block(Place::Output(p), shape, part.array, part.length);
        let from = View::block(Place::Local(p), &window.block, part.block, part.length);
        each_data!(&self.local[p].data, v => copy(v, &from.layout(), &mut lock(data), &block.layout()));
        Ok(())
    }

    /// Writes back an output that is on the chip as a whole.
    fn write_whole(&mut self, p: usize, param: &Param) {
        if let (Argument::Output { data, .. }, Role::Output) = (&self.call.arguments[p], param.role)
            && self.call.kernel.ref_ty(param.value).space != MemorySpace::Any
        {
            std::mem::swap(&mut *lock(data), &mut self.local[p].data);
        }
    }

    /// Makes the memory of scratch and of arrays that are on the chip as a whole.
    pub(super) fn set_up_memory(&mut self) -> Checked<()> {
        let mut used = 0;
        for (p, param) in self.call.kernel.params.iter().enumerate() {
            if let Some(window) = &param.window {
                take_room(&mut used, &window.block, param)?;
                continue;
            }
            let ty = self.call.kernel.ref_ty(param.value);
            let argument = &self.call.arguments[p];
            let fixed = ty.static_shape();
            let (place, shape) = match (argument, ty.dtype()) {
                // What the kernel writes to is a copy of its own, kept across grid steps.
                (Argument::Input(a), _) if self.call.plan.written[p] && ty.space != MemorySpace::Any => {
                    (Place::Local(p), a.shape().to_vec())
                }
                (Argument::Input(a), _) => (Place::Input(p), a.shape().to_vec()),
                (Argument::Alias { shape, output, .. }, _) if ty.space == MemorySpace::Any => {
                    (Place::Output(*output), shape.clone())
                }
                (Argument::Alias { shape, output, .. }, _) => (Place::Local(*output), shape.clone()),
                (Argument::Output { shape, .. }, _) if ty.space == MemorySpace::Any => {
                    (Place::Output(p), shape.clone())
                }
                (Argument::Output { shape, .. }, _) => (Place::Local(p), shape.clone()),
                (Argument::None, dtype) => {
                    let shape = fixed.ok_or_else(|| Fault::refused(param.span, "scratch of unknown size"))?;
                    let local = dtype.map_or(Place::Semaphores(p), |_| Place::Local(p));
                    (local, shape)
                }
            };
            if let (Place::Local(own), Some(dtype)) = (place, ty.dtype())
                && own == p
            {
                let n = take_room(&mut used, &shape, param)?;
                let smem = ty.space == MemorySpace::Smem;
                self.local[p] = match argument {
                    Argument::Input(a) => {
                        Memory { data: a.data().clone(), written: smem.then(|| vec![true; n]) }
                    }
                    Argument::Output { data, defined: true, .. } => {
                        Memory { data: lock(data).clone(), written: smem.then(|| vec![true; n]) }
                    }
                    _ => Memory { data: Data::poison(dtype, n), written: smem.then(|| vec![false; n]) },
                };
            }
            let view = View::whole(place, ty.space, &shape);
            self.views[param.value.0 as usize] = Some(view);
        }
        Ok(())
    }
}

/// The most elements of all windows, scratch and whole arrays on the chip of one core: more than any TPU has bytes.
const MOST_ON_CHIP: usize = 1 << 28;

/// Number of elements of a shape, if there is room for them beside what is used.
fn take_room(used: &mut usize, shape: &[usize], param: &Param) -> Checked<usize> {
    let n = shape.iter().try_fold(1_usize, |a, b| a.checked_mul(*b));
    match n.and_then(|n| n.checked_add(*used)).filter(|all| *all <= MOST_ON_CHIP) {
        Some(all) => Ok(all - std::mem::replace(used, all)),
        None => {
            let message = format!("`{}` of shape {shape:?} does not fit in on-chip memory", param.name);
            Err(Fault::refused(param.span, message)
                .help(format!("all windows and scratch together may have {MOST_ON_CHIP} elements here")))
        }
    }
}

/// The part of a block that lies in its array.
struct Part {
    /// Where it starts in the array.
    array: Axes,
    /// Where it starts in the block.
    block: Axes,
    length: Axes,
}

impl Part {
    fn of(window: &Window, index: &Axes, shape: &[usize]) -> Self {
        let mut part = Self { array: Axes::default(), block: Axes::default(), length: Axes::default() };
        for (axis, ((&i, &size), &n)) in index.iter().zip(&window.block).zip(shape).enumerate() {
            let (start, before) = match &window.unit {
                WindowUnit::Blocks => (i * size, 0),
                WindowUnit::Elements(pads) => (i, pads.get(axis).map_or(0, |p| p.0)),
            };
            // The block starts at `start - before`, which may be before the array does.
            let first = start.max(before) - before;
            let end = start.saturating_add(size).max(before) - before;
            let end = end.min(n);
            part.array.push(first.min(n));
            part.block.push(before.saturating_sub(start).min(size));
            part.length.push(end.saturating_sub(first));
        }
        part
    }
}

/// Copies into storage of the same element type.
fn copy<T: Stored>(from: &[T], src: &Layout, to: &mut Data, dst: &Layout) {
    if let Some(to) = T::elements_of_mut(to) {
        layout::copy(from, src, to, dst, |x| x);
    }
}
