//! Runs fused elementwise groups: a piece of the tile at a time, so that everything between the operands and the
//! results stays in the first-level cache.

use crate::ir::DType;

use super::core::{Core, mismatch};
use super::data::{Stored, each_dtype};
use super::elementwise as ew;
use super::fault::{Checked, Fault};
use super::plan::{ElementOp, Fused, Instr, LaneKind, Reg};
use super::tile::{Lane, Reading, Tile};

/// Elements in a piece.
const PIECE: usize = 1024;

/// An operand read from outside.
enum Leaf<'a> {
    Floats(&'a [f32]),
    Ints(&'a [i32]),
    Bools(&'a [bool]),
    /// Gathered piece by piece.
    Buffer(Tile, Reading<'a>),
    /// Gathered once: every piece is the same.
    Splat(Tile),
}

/// The registers of a group while one piece is computed.
struct Piece<'a> {
    leaves: Vec<Leaf<'a>>,
    temps: Vec<Tile>,
    outs: Vec<Tile>,
    start: usize,
    len: usize,
}

impl Core<'_> {
    /// Runs a group and puts its results into their slots.
    pub(super) fn fused(&mut self, group: &Fused) -> Checked<()> {
        let size = PIECE.min(group.len);
        let pool = &mut self.pool;
        let temps: Vec<Tile> = group.temps.iter().map(|k| pool.take(*k, size)).collect();
        let outs: Vec<Tile> = group.outs.iter().map(|(_, k)| pool.take(*k, group.len)).collect();
        let buffers: Vec<Tile> =
            group.leaves.iter().map(|l| pool.take(LaneKind::of(l.dtype), size)).collect();
        let mut piece = Piece { leaves: vec![], temps, outs, start: 0, len: 0 };
        let mut spare = vec![];
        let span = group.code.first().map(|i| i.span).unwrap_or_default();
        for (operand, mut buffer) in group.leaves.iter().zip(buffers) {
            let mut reading = self.reading(operand)?;
            let splat = reading.is_splat();
            reading.layout = reading.layout.collapse();
            let in_place = match LaneKind::of(operand.dtype) {
                LaneKind::Float => f32::borrow(&reading).map(Leaf::Floats),
                LaneKind::Int => i32::borrow(&reading).map(Leaf::Ints),
                LaneKind::Bool => bool::borrow(&reading).map(Leaf::Bools),
            };
            piece.leaves.push(match in_place {
                Some(leaf) if !splat => {
                    spare.push(buffer);
                    leaf
                }
                _ if splat => {
                    gather(&reading, 0, &mut buffer, size).ok_or_else(|| mismatch(span))?;
                    Leaf::Splat(buffer)
                }
                _ => Leaf::Buffer(buffer, reading),
            });
        }
        let done = piece.run(group);
        let Piece { leaves, temps, outs, .. } = piece;
        spare.extend(leaves.into_iter().filter_map(|l| match l {
            Leaf::Buffer(t, _) | Leaf::Splat(t) => Some(t),
            _ => None,
        }));
        spare.into_iter().chain(temps).for_each(|t| self.pool.give(t));
        for ((slot, _), tile) in group.outs.iter().zip(outs) {
            self.set_tile(*slot, tile);
        }
        done
    }
}

fn gather(from: &Reading<'_>, start: usize, to: &mut Tile, n: usize) -> Option<()> {
    match to {
        Tile::Float(v) => f32::gather(from, start, &mut v[..n]),
        Tile::Int(v) => i32::gather(from, start, &mut v[..n]),
        Tile::Bool(v) => bool::gather(from, start, &mut v[..n]),
    }
}

/// A register type that leaves can hold.
trait Register: Lane {
    fn leaf<'a>(leaf: &'a Leaf<'_>) -> Option<&'a [Self]>;
}

impl Register for f32 {
    fn leaf<'a>(leaf: &'a Leaf<'_>) -> Option<&'a [Self]> {
        match leaf {
            Leaf::Floats(s) => Some(s),
            _ => None,
        }
    }
}

impl Register for i32 {
    fn leaf<'a>(leaf: &'a Leaf<'_>) -> Option<&'a [Self]> {
        match leaf {
            Leaf::Ints(s) => Some(s),
            _ => None,
        }
    }
}

impl Register for bool {
    fn leaf<'a>(leaf: &'a Leaf<'_>) -> Option<&'a [Self]> {
        match leaf {
            Leaf::Bools(s) => Some(s),
            _ => None,
        }
    }
}

impl Piece<'_> {
    fn run(&mut self, group: &Fused) -> Checked<()> {
        while self.start < group.len {
            self.len = PIECE.min(group.len - self.start);
            for leaf in &mut self.leaves {
                if let Leaf::Buffer(tile, reading) = leaf {
                    let span = group.code.first().map(|i| i.span).unwrap_or_default();
                    gather(reading, self.start, tile, self.len).ok_or_else(|| mismatch(span))?;
                }
            }
            for instr in &group.code {
                self.step(instr)?;
            }
            self.start += self.len;
        }
        Ok(())
    }

    fn step(&mut self, instr: &Instr) -> Checked<()> {
        let mut to = std::mem::take(self.tile_mut(instr.to));
        let done = self.compute(instr, &mut to);
        *self.tile_mut(instr.to) = to;
        done.ok_or_else(|| mismatch(instr.span))?.map_err(|_| division_by_zero(instr.span))
    }

    fn tile_mut(&mut self, reg: Reg) -> &mut Tile {
        match reg {
            Reg::Out(i) => &mut self.outs[i],
            // The planner never writes to a leaf.
            Reg::Temp(i) | Reg::Leaf(i) => &mut self.temps[i],
        }
    }

    fn get<T: Register>(&self, reg: Reg) -> Option<&[T]> {
        let all = self.start..self.start + self.len;
        match reg {
            Reg::Temp(i) => T::of(&self.temps[i]).map(|v| &v[..self.len]),
            Reg::Out(i) => T::of(&self.outs[i]).map(|v| &v[all]),
            Reg::Leaf(i) => match &self.leaves[i] {
                Leaf::Buffer(t, _) | Leaf::Splat(t) => T::of(t).map(|v| &v[..self.len]),
                leaf => T::leaf(leaf).map(|s| &s[all]),
            },
        }
    }

    fn put<'t, T: Register>(&self, to: &'t mut Tile, reg: Reg) -> Option<&'t mut [T]> {
        let start = if matches!(reg, Reg::Out(_)) { self.start } else { 0 };
        T::of_mut(to).map(|v| &mut v[start..start + self.len])
    }

    /// `None` when a register has another type than the op takes.
    fn compute(&self, instr: &Instr, to: &mut Tile) -> Option<Result<(), ew::DivisionByZero>> {
        use LaneKind::{Bool, Float, Int};
        let result = LaneKind::of(instr.dtype);
        match (instr.op, instr.from) {
            (ElementOp::Unary(op, x), Float) => {
                ew::unary_f32(op, self.get(x)?, self.put(to, instr.to)?);
            }
            (ElementOp::Unary(op, x), Int) => {
                ew::unary_i32(op, instr.dtype, self.get(x)?, self.put(to, instr.to)?);
            }
            (ElementOp::Unary(_, x), Bool) => {
                ew::convert(self.get(x)?, self.put(to, instr.to)?, |x: bool| !x);
            }
            (ElementOp::Binary(op, x, y), Float) => {
                ew::binary_f32(op, self.get(x)?, self.get(y)?, self.put(to, instr.to)?);
            }
            (ElementOp::Binary(op, x, y), Int) => {
                let out = self.put(to, instr.to)?;
                if let Err(e) = ew::binary_i32(op, instr.dtype, self.get(x)?, self.get(y)?, out) {
                    return Some(Err(e));
                }
            }
            (ElementOp::Binary(op, x, y), Bool) => {
                ew::binary_bool(op, self.get(x)?, self.get(y)?, self.put(to, instr.to)?);
            }
            (ElementOp::Compare(op, x, y), Float) => {
                let out = self.put(to, instr.to)?;
                ew::compare(op, self.get::<f32>(x)?, self.get(y)?, out);
            }
            (ElementOp::Compare(op, x, y), Int) => {
                let out = self.put(to, instr.to)?;
                ew::compare_i32(op, self.get::<i32>(x)?, self.get(y)?, out);
            }
            (ElementOp::Compare(op, x, y), Bool) => {
                let out = self.put(to, instr.to)?;
                ew::compare(op, self.get::<bool>(x)?, self.get(y)?, out);
            }
            (ElementOp::Select(mask, x, y), _) => match result {
                Float => self.select::<f32>(mask, x, y, instr, to)?,
                Int => self.select::<i32>(mask, x, y, instr, to)?,
                Bool => self.select::<bool>(mask, x, y, instr, to)?,
            },
            (ElementOp::Cast(x), from) => self.cast(x, from, instr, to)?,
            (ElementOp::CastUnsigned(x, from), _) => self.cast_unsigned(x, from, instr, to)?,
            (ElementOp::Bitcast(x, from), _) => {
                // Not rounded: a NaN keeps its bits.
                self.bitcast(x, from, instr, to)?;
                return Some(Ok(()));
            }
        }
        match result {
            Float => ew::narrow_f32(instr.dtype, self.put(to, instr.to)?),
            Int => ew::narrow_i32(instr.dtype, self.put(to, instr.to)?),
            Bool => {}
        }
        Some(Ok(()))
    }

    fn select<T: Register>(&self, mask: Reg, x: Reg, y: Reg, instr: &Instr, to: &mut Tile) -> Option<()> {
        let out = self.put::<T>(to, instr.to)?;
        ew::select(self.get(mask)?, self.get(x)?, self.get(y)?, out);
        Some(())
    }

    fn cast_unsigned(&self, x: Reg, from: DType, instr: &Instr, to: &mut Tile) -> Option<()> {
        use LaneKind::{Float, Int};
        let at = instr.to;
        match (LaneKind::of(from), LaneKind::of(instr.dtype)) {
            (Int, Float) => ew::unsigned_to_float(from, self.get(x)?, self.put(to, at)?),
            (Int, Int) => ew::zero_extend(from, self.get(x)?, self.put(to, at)?),
            (Float, Int) => ew::float_to_unsigned(instr.dtype, self.get(x)?, self.put(to, at)?),
            (kind, _) => self.cast(x, kind, instr, to)?,
        }
        Some(())
    }

    fn bitcast(&self, x: Reg, from: DType, instr: &Instr, to: &mut Tile) -> Option<()> {
        use LaneKind::{Float, Int};
        let at = instr.to;
        match (LaneKind::of(from), LaneKind::of(instr.dtype)) {
            (Float, Int) if from == DType::F32 => {
                ew::convert(self.get(x)?, self.put(to, at)?, |x: f32| x.to_bits() as i32);
            }
            (Int, Float) if from == DType::I32 => {
                ew::convert(self.get(x)?, self.put(to, at)?, |x: i32| f32::from_bits(x as u32));
            }
            (kind, result) if kind != result || from != instr.dtype => {
                let bits = each_dtype!(from, T => self.bits_of::<T>(x))?;
                each_dtype!(instr.dtype, T => self.put_bits::<T>(&bits, at, to))?;
            }
            (kind, _) => self.cast(x, kind, instr, to)?,
        }
        Some(())
    }

    fn bits_of<T: Stored>(&self, x: Reg) -> Option<Vec<u32>>
    where
        T::Lane: Register,
    {
        Some(self.get::<T::Lane>(x)?.iter().map(|x| T::of(*x).bits()).collect())
    }

    fn put_bits<T: Stored>(&self, bits: &[u32], at: Reg, to: &mut Tile) -> Option<()>
    where
        T::Lane: Register,
    {
        ew::convert(bits, self.put::<T::Lane>(to, at)?, |b| T::from_bits(b).lane());
        Some(())
    }

    fn cast(&self, x: Reg, from: LaneKind, instr: &Instr, to: &mut Tile) -> Option<()> {
        use LaneKind::{Bool, Float, Int};
        let at = instr.to;
        match (from, LaneKind::of(instr.dtype)) {
            (Float, Float) => self.put::<f32>(to, at)?.copy_from_slice(self.get(x)?),
            (Float, Int) => ew::float_to_int(instr.dtype, self.get(x)?, self.put(to, at)?),
            (Float, Bool) => ew::convert(self.get(x)?, self.put(to, at)?, |x: f32| x != 0.0),
            (Int, Float) => ew::int_to_float(self.get(x)?, self.put(to, at)?),
            (Int, Int) => self.put::<i32>(to, at)?.copy_from_slice(self.get(x)?),
            (Int, Bool) => ew::convert(self.get(x)?, self.put(to, at)?, |x: i32| x != 0),
            (Bool, Float) => ew::convert(self.get(x)?, self.put(to, at)?, |x: bool| f32::from(u8::from(x))),
            (Bool, Int) => ew::convert(self.get(x)?, self.put(to, at)?, |x: bool| i32::from(x)),
            (Bool, Bool) => self.put::<bool>(to, at)?.copy_from_slice(self.get(x)?),
        }
        Some(())
    }
}

/// An integer division by zero.
pub(super) fn division_by_zero(span: crate::ir::Span) -> Box<Fault> {
    Fault::new("K0409", span, "an integer is divided by zero")
        .label("some divisor is 0 here")
        .help("choose another divisor with `select` where it would be 0")
}
