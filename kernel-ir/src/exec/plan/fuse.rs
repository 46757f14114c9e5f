//! Groups of elementwise ops over one shape, built op by op and closed when somebody else needs a result.

use crate::ir::{DType, Span, Value};

use super::{ElementOp, Fused, Instr, LaneKind, Operand, Reg, Slot};

/// A group that may still grow. While it does, [`Reg::Temp`] counts its results.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) shape: Vec<usize>,
    leaves: Vec<Operand>,
    code: Vec<Instr>,
    /// The value of each result.
    results: Vec<Value>,
}

impl Group {
    pub(super) const fn new(shape: Vec<usize>) -> Self {
        Self { shape, leaves: vec![], code: vec![], results: vec![] }
    }

    /// The register of a value that the group makes.
    pub(super) fn find(&self, v: Value) -> Option<Reg> {
        self.results.iter().position(|r| *r == v).map(Reg::Temp)
    }

    /// The register of something read from outside.
    pub(super) fn leaf(&mut self, operand: Operand) -> Reg {
        if let Some(i) = self.leaves.iter().position(|l| *l == operand) {
            return Reg::Leaf(i);
        }
        self.leaves.push(operand);
        Reg::Leaf(self.leaves.len() - 1)
    }

    /// Adds an op that makes `v`.
    pub(super) fn push(&mut self, v: Value, op: ElementOp, from: LaneKind, dtype: DType, span: Span) {
        let to = Reg::Temp(self.results.len());
        self.results.push(v);
        self.code.push(Instr { op, to, from, dtype, span });
    }

    /// The refs that the group reads.
    pub(super) fn memory_bases(&self) -> impl Iterator<Item = Slot> {
        self.leaves.iter().filter_map(Operand::memory_base)
    }

    /// Values that the group makes.
    pub(super) fn results(&self) -> &[Value] {
        &self.results
    }

    /// Closes the group: results for which `wanted` holds become tiles, the others share temporary registers.
    pub(super) fn close(self, wanted: impl Fn(Value) -> bool) -> Fused {
        let kinds: Vec<LaneKind> = self.code.iter().map(|i| LaneKind::of(i.dtype)).collect();
        // The op after which a result is not read again.
        let mut last: Vec<usize> = (0..self.code.len()).collect();
        for (at, instr) in self.code.iter().enumerate() {
            for reg in instr.op.reads() {
                if let Reg::Temp(i) = reg {
                    last[i] = at;
                }
            }
        }
        let (mut outs, mut temps) = (vec![], Vec::<LaneKind>::new());
        let mut free: Vec<usize> = vec![];
        let mut homes: Vec<Reg> = vec![];
        let mut code = vec![];
        for (at, instr) in self.code.iter().enumerate() {
            let value = self.results[at];
            let home = if wanted(value) {
                outs.push((value.0 as usize, kinds[at]));
                Reg::Out(outs.len() - 1)
            } else if let Some(i) = free.iter().position(|t| temps[*t] == kinds[at]) {
                Reg::Temp(free.swap_remove(i))
            } else {
                temps.push(kinds[at]);
                Reg::Temp(temps.len() - 1)
            };
            homes.push(home);
            let place = |reg: Reg| {
                if let Reg::Temp(i) = reg { homes[i] } else { reg }
            };
            code.push(Instr { op: instr.op.map(place), to: home, ..instr.clone() });
            for (i, home) in homes.iter().enumerate() {
                if let Reg::Temp(t) = home
                    && last[i] == at
                {
                    free.push(*t);
                }
            }
        }
        Fused { len: self.shape.iter().product(), leaves: self.leaves, code, temps, outs }
    }
}
