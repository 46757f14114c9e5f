//! A core: the state of one thread that walks grid steps, and how operands are found in it.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::ir::{DType, Kernel, Span};

use super::Options;
use super::array::Array;
use super::data::{Data, Stored, each_data};
use super::dma::Dma;
use super::fault::{Checked, Fault};
use super::layout::{self, Axes, Layout, MAX_RANK};
use super::mesh::Endpoint;
use super::plan::{self, Operand, Plan, Slot, Source, Store};
use super::random::Philox;
use super::scalar::{Number, Scalar};
use super::semaphore::Semaphores;
use super::tile::{Elements, Lane, Pool, Reading, Tile};
use super::view::{Place, View};

/// The array behind a parameter.
#[derive(Debug)]
pub(super) enum Argument<'a> {
    /// Scratch has none.
    None,
    /// The caller's.
    Input(&'a Array),
    /// An input that is one and the same with an output, by parameter.
    Alias { shape: Vec<usize>, output: usize },
    /// Made by the kernel; cores write their blocks in turn.
    Output {
        shape: Vec<usize>,
        data: Mutex<Data>,
        /// True when it started with the contents of an input.
        defined: bool,
        /// By block: the indices on the parallel axes of the steps that wrote it.
        writers: Mutex<HashMap<Axes, Axes>>,
    },
}

impl Argument<'_> {
    /// Shape of the array.
    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::Input(a) => a.shape(),
            Self::Output { shape, .. } | Self::Alias { shape, .. } => shape,
        }
    }
}

/// What stays the same for all cores of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) plan: &'a Plan,
    pub(super) arguments: &'a [Argument<'a>],
    pub(super) options: &'a Options,
    /// Threads that one product may use.
    pub(super) product_threads: usize,
    /// The device that this is, in a mesh.
    pub(super) mesh: Option<Endpoint<'a>>,
}

/// On-chip memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) data: Data,
    /// For scalar memory: which elements were ever written.
    pub(super) written: Option<Vec<bool>>,
}

/// The state of one core.
#[derive(Debug)]
pub(super) struct Core<'a> {
    pub(super) call: &'a Call<'a>,
    /// By value.
    pub(super) scalars: Vec<Scalar>,
    /// By value.
    pub(super) tiles: Vec<Tile>,
    /// By value.
    pub(super) views: Vec<Option<View>>,
    /// By parameter.
    pub(super) local: Vec<Memory>,
    /// By parameter: the block a window shows.
    pub(super) blocks: Vec<Option<Axes>>,
    /// By parameter: the indices on the parallel axes when that block was entered.
    pub(super) owners: Vec<Axes>,
    pub(super) dma: Dma,
    pub(super) semaphores: Semaphores,
    pub(super) random: Philox,
    pub(super) pool: Pool,
    /// Indices of the current grid step.
    pub(super) step: Vec<i32>,
    /// Grid steps and rounds of loops so far.
    pub(super) rounds: u64,
}

impl<'a> Core<'a> {
    /// Element `offset` of an op, as an index.
    pub(super) fn index(&self, slot: Slot, what: &str, span: Span) -> Checked<i64> {
        match self.scalars[slot] {
            Scalar { poison: true, .. } => Err(poisoned(what, span)),
            Scalar { number: Number::Int(x), .. } => Ok(i64::from(x)),
            _ => Err(Fault::refused(span, format!("{what} is not an integer"))),
        }
    }

    /// A scalar that steers control.
    pub(super) fn flag(&self, slot: Slot, what: &str, span: Span) -> Checked<bool> {
        match self.scalars[slot] {
            Scalar { poison: true, .. } => Err(poisoned(what, span)),
            Scalar { number: Number::Bool(x), .. } => Ok(x),
            _ => Err(Fault::refused(span, format!("{what} is not a `bool`"))),
        }
    }

    /// The view of a ref.
    pub(super) fn view(&self, slot: Slot, span: Span) -> Checked<View> {
        self.views[slot].ok_or_else(|| Fault::refused(span, "a ref is used before it is made"))
    }

    /// The part of a ref that a load or store touches: as many elements along each axis as `extent` says, `strides`
    /// apart (all 1 when there are none).
    pub(super) fn window(
        &self,
        base: Slot,
        offsets: &[plan::Offset],
        extent: &[usize],
        strides: &[usize],
        span: Span,
    ) -> Checked<View> {
        let view = self.view(base, span)?;
        let (mut at, mut sizes) = ([0; MAX_RANK], [0; MAX_RANK]);
        if offsets.len() > MAX_RANK || extent.len() != offsets.len() {
            return Err(Fault::refused(span, "an access of another rank than its ref"));
        }
        for (i, o) in offsets.iter().enumerate() {
            at[i] = match o {
                plan::Offset::Const(n) => *n as i64,
                plan::Offset::Slot(s) => self.index(*s, "an offset", span)?,
            };
            let stride = strides.get(i).copied().unwrap_or(1);
            sizes[i] = extent[i].saturating_sub(1).saturating_mul(stride).min(1 << 60) as i64
                + i64::from(extent[i] > 0);
        }
        let n = offsets.len();
        view.slice(&at[..n], &sizes[..n], span)
            .map_err(|f| f.note(format!("the ref is `{}`", self.name(view.place))))
    }

    /// The name of the parameter behind a place.
    pub(super) fn name(&self, place: Place) -> &str {
        place.param().map_or("the barrier semaphore", |p| &self.call.kernel.params[p].name)
    }

    /// The array behind a place.
    pub(super) fn argument(&self, place: Place) -> &'a Argument<'a> {
        place.param().map_or(&Argument::None, |p| &self.call.arguments[p])
    }

    /// Where the elements of an operand are.
    pub(super) fn reading<'b>(&'b self, o: &Operand) -> Checked<Reading<'b>> {
        let (elements, layout) = match &o.source {
            Source::Tile { slot, shape } => {
                let elements = match &self.tiles[*slot] {
                    Tile::Float(v) => Elements::F32(v),
                    Tile::Int(v) => Elements::I32(v),
                    Tile::Bool(v) => Elements::Bool(v),
                };
                (elements, Layout::dense(shape))
            }
            Source::Memory { base, offsets, extent, strides, span } => {
                let view = self.window(*base, offsets, extent, strides, *span)?;
                self.may_read(&view, *span)?;
                (Elements::of(self.loaded(&view, *span)?), strided(view.layout(), strides))
            }
            Source::Splat(slot) => {
                let elements = match &self.scalars[*slot].number {
                    Number::Float(x) => Elements::F32(std::slice::from_ref(x)),
                    Number::Int(x) => Elements::I32(std::slice::from_ref(x)),
                    Number::Bool(x) => Elements::Bool(std::slice::from_ref(x)),
                };
                (elements, Layout::dense(&[]))
            }
            Source::Iota => (Elements::Position, Layout::dense(&[1])),
        };
        let moved: usize = o.starts.iter().zip(layout.strides.iter()).map(|(a, b)| a * b).sum();
        let stride = |axis: &Option<usize>| axis.map_or(0, |a| layout.strides[a]);
        Ok(Reading {
            elements,
            layout: Layout {
                offset: layout.offset + moved,
                shape: o.shape.iter().copied().collect(),
                strides: o.axes.iter().map(stride).collect(),
            },
        })
    }

    /// The memory that a load reads.
    pub(super) fn loaded<'b>(&'b self, view: &View, span: Span) -> Checked<&'b Data> {
        if view.hbm {
            let message = format!("`{}` cannot be loaded: it is not in VMEM", self.name(view.place));
            return Err(Fault::refused(span, message).help("copy it to scratch first"));
        }
        self.memory(view.place, span)
    }

    /// What lies on the chip, or is read as if it did.
    pub(super) fn memory(&self, place: Place, span: Span) -> Checked<&Data> {
        match (place, self.argument(place)) {
            (Place::Local(p), _) => Ok(&self.local[p].data),
            (Place::Input(_), Argument::Input(a)) => Ok(a.data()),
            _ => Err(Fault::refused(span, format!("`{}` cannot be loaded", self.name(place)))),
        }
    }

    /// Puts a tile into a slot.
    pub(super) fn set_tile(&mut self, slot: Slot, tile: Tile) {
        let old = std::mem::replace(&mut self.tiles[slot], tile);
        self.pool.give(old);
    }

    /// Writes an operand out as a dense tile.
    pub(super) fn materialize(&mut self, from: &Operand, span: Span) -> Checked<Tile> {
        let len = from.shape.iter().product();
        let mut tile = self.pool.take(plan::LaneKind::of(from.dtype), len);
        let reading = self.reading(from)?;
        let to = Layout::dense(&from.shape);
        let done = match &mut tile {
            Tile::Float(v) => f32::copy(&reading, v, &to, |x| x),
            Tile::Int(v) => i32::copy(&reading, v, &to, |x| x),
            Tile::Bool(v) => bool::copy(&reading, v, &to, |x| x),
        };
        done.ok_or_else(|| mismatch(span))?;
        Ok(tile)
    }

    /// Writes an operand into memory.
    pub(super) fn store(&mut self, store: &Store, span: Span) -> Checked<()> {
        let Store { base, offsets, strides, value, mask } = store;
        let view = self.window(*base, offsets, &value.shape, strides, span)?;
        let Place::Local(p) = view.place else {
            let message = format!("`{}` cannot be stored to", self.name(view.place));
            return Err(Fault::refused(span, message));
        };
        self.may_write(&view, span)?;
        if view.cast.is_some() {
            return self.store_bits(p, &view, store, span);
        }
        let mut to = strided(view.layout(), strides);
        to.shape = value.shape.iter().copied().collect();
        // Taken out while it is written: the plan never reads the memory that a step stores to.
        let mut data = std::mem::take(&mut self.local[p].data);
        let done = self.reading(value).and_then(|reading| {
            let done = match mask {
                None => each_data!(&mut data, v => write(&reading, v, &to)),
                Some(mask) => {
                    let mask = self.reading(mask)?;
                    each_data!(&mut data, v => write_masked(&reading, &mask, v, &to))
                }
            };
            done.ok_or_else(|| mismatch(span))
        });
        self.local[p].data = data;
        done
    }

    /// Loads through a ref that sees memory under another element type.
    pub(super) fn load_bits(&mut self, from: &Source, dtype: DType, span: Span) -> Checked<Tile> {
        let Source::Memory { base, offsets, extent, strides, .. } = from else {
            return Err(mismatch(span));
        };
        let view = self.window(*base, offsets, extent, strides, span)?;
        self.may_read(&view, span)?;
        let bits = view.read_bits(self.loaded(&view, span)?, strides, extent);
        let mut tile = self.pool.take(plan::LaneKind::of(dtype), bits.len());
        tile.set_bits(dtype, &bits);
        Ok(tile)
    }

    fn store_bits(&mut self, p: usize, view: &View, store: &Store, span: Span) -> Checked<()> {
        let tile = self.materialize(&store.value, span)?;
        let bits = tile.bits(store.value.dtype);
        self.pool.give(tile);
        let mask = match &store.mask {
            None => None,
            Some(mask) => match self.materialize(mask, span)? {
                Tile::Bool(mask) => Some(mask),
                _ => return Err(mismatch(span)),
            },
        };
        let (shape, memory) = (&store.value.shape, &mut self.local[p]);
        view.write_bits(&mut memory.data, &store.strides, shape, &bits, mask.as_deref());
        Ok(())
    }
}

/// The layout of every so many elements of a box.
fn strided(mut layout: Layout, strides: &[usize]) -> Layout {
    layout.strides.iter_mut().zip(strides).for_each(|(s, n)| *s *= n);
    layout
}

fn write<T: Stored>(from: &Reading<'_>, dst: &mut [T], to: &Layout) -> Option<()> {
    T::Lane::copy(from, dst, to, T::of)
}

fn write_masked<T: Stored>(from: &Reading<'_>, mask: &Reading<'_>, dst: &mut [T], to: &Layout) -> Option<()> {
    let mut values = vec![T::Lane::default(); to.len()];
    let mut wanted = vec![false; to.len()];
    T::Lane::gather(from, 0, &mut values)?;
    bool::gather(mask, 0, &mut wanted)?;
    layout::each(to, |i, at| {
        if wanted[i] {
            dst[at] = T::of(values[i]);
        }
    });
    Some(())
}

/// Elements of a type that the op does not take.
pub(super) fn mismatch(span: Span) -> Box<Fault> {
    Fault::refused(span, "operands of different element types")
}

fn poisoned(what: &str, span: Span) -> Box<Fault> {
    Fault::new("K0406", span, format!("{what} comes from memory that was never written"))
        .label("decided by an undefined value")
        .help("write the memory in an earlier step, or initialise it when `program_id(0) == 0`")
}
