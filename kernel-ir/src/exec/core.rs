//! A core: the state of one thread that walks grid steps, and how operands are found in it.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::ir::{Kernel, Span};

use super::Options;
use super::array::Array;
use super::data::{Data, each_data};
use super::dma::Dma;
use super::fault::{Checked, Fault};
use super::layout::{Axes, Layout};
use super::plan::{self, Operand, Plan, Slot, Source};
use super::scalar::{Number, Scalar};
use super::tile::{Elements, Lane, Pool, Reading, Tile};
use super::view::{Place, View};

/// The array behind a parameter.
#[derive(Debug)]
pub(super) enum Argument<'a> {
    /// Scratch has none.
    None,
    /// The caller's.
    Input(&'a Array),
    /// Made by the kernel; cores write their blocks in turn.
    Output {
        shape: Vec<usize>,
        data: Mutex<Data>,
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
            Self::Output { shape, .. } => shape,
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
    pub(super) pool: Pool,
    /// Indices of the current grid step.
    pub(super) step: Vec<i32>,
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

    /// The part of a ref that a load or store touches.
    pub(super) fn window(
        &self,
        base: Slot,
        offsets: &[plan::Offset],
        extent: &[usize],
        span: Span,
    ) -> Checked<View> {
        let view = self.view(base, span)?;
        let (mut at, mut sizes) = ([0; 8], [0; 8]);
        if offsets.len() > at.len() || extent.len() != offsets.len() {
            return Err(Fault::refused(span, "an access of another rank than its ref"));
        }
        for (i, o) in offsets.iter().enumerate() {
            at[i] = match o {
                plan::Offset::Const(n) => *n as i64,
                plan::Offset::Slot(s) => self.index(*s, "an offset", span)?,
            };
            sizes[i] = extent[i] as i64;
        }
        let n = offsets.len();
        view.slice(&at[..n], &sizes[..n], span)
            .map_err(|f| f.note(format!("the ref is `{}`", self.name(view.place))))
    }

    /// The name of the parameter behind a place.
    pub(super) fn name(&self, place: Place) -> &str {
        &self.call.kernel.params[place.param()].name
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
            Source::Memory { base, offsets, extent, span } => {
                let view = self.window(*base, offsets, extent, *span)?;
                self.may_read(&view, *span)?;
                (self.elements(&view, *span)?, view.layout())
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

    fn elements<'b>(&'b self, view: &View, span: Span) -> Checked<Elements<'b>> {
        let data = match (view.place, &self.call.arguments[view.place.param()]) {
            (Place::Input(_), Argument::Input(a)) if !view.hbm => a.data(),
            (Place::Local(p), _) => &self.local[p].data,
            _ => {
                let message = format!("`{}` cannot be loaded: it is not in VMEM", self.name(view.place));
                return Err(Fault::refused(span, message).help("copy it to scratch first"));
            }
        };
        Ok(match data {
            Data::F32(v) => Elements::F32(v),
            Data::Bf16(v) => Elements::Bf16(v),
            Data::I32(v) => Elements::I32(v),
            Data::I16(v) => Elements::I16(v),
            Data::I8(v) => Elements::I8(v),
            Data::Bool(v) => Elements::Bool(v),
        })
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
    pub(super) fn store(
        &mut self,
        base: Slot,
        offsets: &[plan::Offset],
        value: &Operand,
        span: Span,
    ) -> Checked<()> {
        let view = self.window(base, offsets, &value.shape, span)?;
        let Place::Local(p) = view.place else {
            let message = format!("`{}` cannot be stored to", self.name(view.place));
            return Err(Fault::refused(span, message));
        };
        self.may_write(&view, span)?;
        // Taken out while it is written: the plan never reads the memory that a step stores to.
        let mut data = std::mem::take(&mut self.local[p].data);
        let done = self.reading(value).and_then(|reading| {
            let done = each_data!(&mut data, v => write(&reading, v, &view.layout()));
            done.ok_or_else(|| mismatch(span))
        });
        self.local[p].data = data;
        done
    }
}

fn write<T: super::data::Stored>(from: &Reading<'_>, dst: &mut [T], to: &Layout) -> Option<()> {
    T::Lane::copy(from, dst, to, T::of)
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
