//! Stores of tiles: all of a tile, or the lanes that a mask keeps.
//!
//! A lane whose mask is false touches nothing, so a masked store may stick out of its memory: only a lane that is
//! stored must be inside. The chip does not check bounds lane by lane either; what it never writes cannot do harm.

use crate::ir::Span;

use super::core::{Core, mismatch, strided};
use super::data::{Data, Stored, each_data};
use super::fault::{Checked, Fault};
use super::layout::{self, Axes, Layout};
use super::plan::{Operand, Slot, Source, Store};
use super::tile::{Lane, Reading, Tile};
use super::view::{Place, View};

impl Core<'_> {
    /// Writes an operand into memory; `release` are the tiles that nobody reads any more.
    pub(super) fn store(&mut self, store: &Store, release: &[Slot], span: Span) -> Checked<()> {
        let Store { base, offsets, strides, value, mask } = store;
        let at = self.offsets(offsets, span)?;
        let at = &at[..offsets.len()];
        let whole = self.window_at(*base, at, &value.shape, strides, span);
        match (whole, mask) {
            (Ok(view), None) if self.fills(&view, strides, value, release) => {
                self.may_write(&view, span)?;
                self.hand_over(&view, value);
                Ok(())
            }
            (Ok(view), mask) => self.store_at(&view, strides, value, mask.as_ref(), span),
            (Err(fault), None) => Err(fault),
            (Err(fault), Some(mask)) => {
                let Some((first, shape)) = self.kept(mask, span)? else { return Ok(()) };
                if first.len() != at.len() {
                    return Err(fault);
                }
                let start = |(i, at): (usize, &i64)| {
                    let stride = strides.get(i).copied().unwrap_or(1);
                    at.saturating_add(first[i].saturating_mul(stride) as i64)
                };
                let at: Vec<i64> = at.iter().enumerate().map(start).collect();
                // A lane outside is one whose index along some axis is outside, so the box of the kept lanes tells.
                let view = self.window_at(*base, &at, &shape, strides, span)?;
                let cut = |x: &Operand| x.clone().extract(&first, &shape);
                self.store_at(&view, strides, &cut(value), Some(&cut(mask)), span)
            }
        }
    }

    /// Whether a tile that nobody reads any more becomes all of a memory of `f32`, element for element.
    fn fills(&self, view: &View, strides: &[usize], value: &Operand, release: &[Slot]) -> bool {
        let (Place::Local(p), Source::Tile { slot, .. }) = (view.place, &value.source) else { return false };
        let (Data::F32(memory), Tile::Float(tile)) = (&self.local[p].data, &self.tiles[*slot]) else {
            return false;
        };
        let mut to = strided(view.layout(), strides);
        to.shape = value.shape.iter().copied().collect();
        let all = |part: Option<&[f32]>| part.is_some_and(|part| part.len() == memory.len());
        view.cast.is_none()
            && tile.len() == memory.len()
            && release.contains(slot)
            && all(to.contiguous(memory))
            && self.reading(value).is_ok_and(|reading| all(f32::borrow(&reading)))
    }

    /// Trades a tile's elements for those of the memory that it fills: nothing is copied.
    fn hand_over(&mut self, view: &View, value: &Operand) {
        if let (Place::Local(p), Source::Tile { slot, .. }) = (view.place, &value.source)
            && let (Data::F32(memory), Tile::Float(tile)) = (&mut self.local[p].data, &mut self.tiles[*slot])
        {
            std::mem::swap(memory, tile);
        }
    }

    /// Where the smallest box starts that holds all lanes that a mask keeps, and its shape; none if it keeps none.
    fn kept(&mut self, mask: &Operand, span: Span) -> Checked<Option<(Axes, Axes)>> {
        let tile = self.materialize(mask, span)?;
        let Tile::Bool(lanes) = &tile else { return Err(mismatch(span)) };
        let mut first: Axes = mask.shape.iter().copied().collect();
        let mut end: Axes = mask.shape.iter().map(|_| 0).collect();
        for (number, _) in lanes.iter().enumerate().filter(|(_, kept)| **kept) {
            let mut rest = number;
            for axis in (0..mask.shape.len()).rev() {
                let i = rest % mask.shape[axis];
                rest /= mask.shape[axis];
                first[axis] = first[axis].min(i);
                end[axis] = end[axis].max(i + 1);
            }
        }
        let any = lanes.contains(&true);
        self.pool.give(tile);
        let shape = first.iter().zip(end.iter()).map(|(a, b)| b.saturating_sub(*a)).collect();
        Ok(any.then_some((first, shape)))
    }

    /// Writes an operand where a view says.
    fn store_at(
        &mut self,
        view: &View,
        strides: &[usize],
        value: &Operand,
        mask: Option<&Operand>,
        span: Span,
    ) -> Checked<()> {
        let Place::Local(p) = view.place else {
            let message = format!("`{}` cannot be stored to", self.name(view.place));
            return Err(Fault::refused(span, message));
        };
        self.may_write(view, span)?;
        if view.cast.is_some() {
            return self.store_bits(p, view, strides, value, mask, span);
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

    fn store_bits(
        &mut self,
        p: usize,
        view: &View,
        strides: &[usize],
        value: &Operand,
        mask: Option<&Operand>,
        span: Span,
    ) -> Checked<()> {
        let tile = self.materialize(value, span)?;
        let bits = tile.bits(value.dtype);
        self.pool.give(tile);
        let mask = match mask {
            None => None,
            Some(mask) => match self.materialize(mask, span)? {
                Tile::Bool(mask) => Some(mask),
                _ => return Err(mismatch(span)),
            },
        };
        let (shape, memory) = (&value.shape, &mut self.local[p]);
        view.write_bits(&mut memory.data, strides, shape, &bits, mask.as_deref());
        Ok(())
    }
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
