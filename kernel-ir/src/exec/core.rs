//! A core: the state of one thread that walks grid steps, and how operands are found in it.

use std::sync::Mutex;

use crate::ir::{DType, Kernel, Span};

use super::Options;
use super::array::Array;
use super::data::Data;
use super::dma::Dma;
use super::fault::{Checked, Fault};
use super::layout::{Axes, Layout, MAX_RANK};
use super::mesh::Endpoint;
use super::plan::{self, Operand, Plan, Slot, Source};
use super::random::Philox;
use super::scalar::{Number, Scalar};
use super::semaphore::Semaphores;
use super::sharing::Users;
use super::tile::{Elements, Lane, Pool, Reading, Tile};
use super::view::{Place, View};

/// The array behind a parameter.
#[derive(Debug)]
pub(super) enum Argument<'a> {
    /// Scratch has none.
    None,
    /// The caller's.
    Input(&'a Array),
    /// An input that is one and the same with an output, by parameter; windowed if blocks of it are fetched.
    Alias { shape: Vec<usize>, output: usize, windowed: bool },
    /// Made by the kernel; cores write their blocks in turn.
    Output {
        shape: Vec<usize>,
        data: Mutex<Data>,
        /// True when it started with the contents of an input.
        defined: bool,
        /// Who writes which block of its window, and reads it.
        users: Mutex<Users>,
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
        let at = self.offsets(offsets, span)?;
        self.window_at(base, &at[..offsets.len()], extent, strides, span)
    }

    /// The numbers that offsets stand for; those behind the last are 0.
    pub(super) fn offsets(&self, offsets: &[plan::Offset], span: Span) -> Checked<[i64; MAX_RANK]> {
        let mut at = [0; MAX_RANK];
        if offsets.len() > MAX_RANK {
            return Err(another_rank(span));
        }
        for (at, offset) in at.iter_mut().zip(offsets) {
            *at = match offset {
                plan::Offset::Const(n) => *n as i64,
                plan::Offset::Slot(s) => self.index(*s, "an offset", span)?,
            };
        }
        Ok(at)
    }

    /// As [`Core::window`], from known offsets.
    pub(super) fn window_at(
        &self,
        base: Slot,
        at: &[i64],
        extent: &[usize],
        strides: &[usize],
        span: Span,
    ) -> Checked<View> {
        let view = self.view(base, span)?;
        let mut sizes = [0; MAX_RANK];
        if at.len() > MAX_RANK || extent.len() != at.len() {
            return Err(another_rank(span));
        }
        for (i, n) in extent.iter().enumerate() {
            let stride = strides.get(i).copied().unwrap_or(1);
            sizes[i] = n.saturating_sub(1).saturating_mul(stride).min(1 << 60) as i64 + i64::from(*n > 0);
        }
        view.slice(at, &sizes[..at.len()], span)
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
}

/// The layout of every so many elements of a box.
pub(super) fn strided(mut layout: Layout, strides: &[usize]) -> Layout {
    layout.strides.iter_mut().zip(strides).for_each(|(s, n)| *s *= n);
    layout
}

/// Elements of a type that the op does not take.
pub(super) fn mismatch(span: Span) -> Box<Fault> {
    Fault::refused(span, "operands of different element types")
}

fn another_rank(span: Span) -> Box<Fault> {
    Fault::refused(span, "an access of another rank than its ref")
}

fn poisoned(what: &str, span: Span) -> Box<Fault> {
    Fault::new("K0406", span, format!("{what} comes from memory that was never written"))
        .label("decided by an undefined value")
        .help("write the memory in an earlier step, or initialise it when `program_id(0) == 0`")
}
