//! What is known of every `i32` scalar: its least and largest value, and a number that divides it.
//!
//! Values start unknown-yet and only ever get weaker: passes over the kernel repeat until nothing changes, so values
//! that loops carry converge; after a few passes a bound that still moves is given up. Indices are assumed not to
//! overflow `i32`, as the TPU compiler assumes.

use std::cmp::{max, min};

use crate::ir::{
    Binary, Block, DType, DimCompare, DimExpr, DimOp, Kernel, Literal, Op, OpKind, Type, Unary, Value,
};

const LEAST: i64 = i32::MIN as i64;
const MOST: i64 = i32::MAX as i64;

/// Passes after which a bound or a divisor that still changes is given up.
const PATIENCE: usize = 4;

/// What is known of an `i32` scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntFact {
    /// It is never less.
    pub lo: i64,
    /// It is never more.
    pub hi: i64,
    /// It is a multiple of this; 0 for the number 0, which is a multiple of all.
    pub multiple: u64,
    /// Both bounds are reached, if the operation that makes it runs at all for each step of the grid or loop.
    pub exact: bool,
}

impl IntFact {
    /// Nothing is known.
    pub const ANY: Self = Self { lo: LEAST, hi: MOST, multiple: 1, exact: false };

    /// The number `n`.
    pub fn known(n: i64) -> Self {
        Self { lo: n, hi: n, multiple: n.unsigned_abs(), exact: true }.clamped()
    }

    /// From `lo` to `hi`.
    pub fn range(lo: i64, hi: i64) -> Self {
        if lo == hi { Self::known(lo) } else { Self { lo, hi, multiple: 1, exact: false }.clamped() }
    }

    /// The value, when it can only be one.
    pub const fn value(&self) -> Option<i64> {
        if self.lo == self.hi { Some(self.lo) } else { None }
    }

    /// Whether it is known to be a multiple of `n`.
    pub const fn is_multiple_of(&self, n: u64) -> bool {
        self.multiple.is_multiple_of(n)
    }

    /// What is known of the sum with another one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let exact = self.exact && other.exact && (self.value().is_some() || other.value().is_some());
        let multiple = gcd(self.multiple, other.multiple);
        Self { lo: self.lo + other.lo, hi: self.hi + other.hi, multiple, exact }.clamped()
    }

    fn clamped(self) -> Self {
        let inside = LEAST <= self.lo && self.hi <= MOST && self.lo <= self.hi;
        if inside { self } else { Self { lo: LEAST, hi: MOST, multiple: self.multiple, exact: false } }
    }

    /// Holds for either.
    fn join(self, other: Self) -> Self {
        Self {
            lo: min(self.lo, other.lo),
            hi: max(self.hi, other.hi),
            multiple: gcd(self.multiple, other.multiple),
            exact: self == other && self.exact,
        }
    }

    fn of_demands(kernel: &Kernel, name: &str) -> Self {
        let mut f = Self { lo: 0, hi: MOST, multiple: 1, exact: false };
        for d in &kernel.demands {
            let Some(n) = d.right.known() else { continue };
            match (&d.left, d.compare) {
                (DimExpr::Dim(x), c) if **x == *name => match c {
                    DimCompare::Eq => return Self::known(n),
                    DimCompare::Lt => f.hi = min(f.hi, n - 1),
                    DimCompare::Le => f.hi = min(f.hi, n),
                    DimCompare::Gt => f.lo = max(f.lo, n + 1),
                    DimCompare::Ge => f.lo = max(f.lo, n),
                    DimCompare::Ne => {}
                },
                (DimExpr::Op(DimOp::Mod, ab), DimCompare::Eq) if n == 0 => {
                    if let (DimExpr::Dim(x), DimExpr::Const(by)) = (&ab.0, &ab.1)
                        && **x == *name
                        && *by > 0
                    {
                        f.multiple = lcm(f.multiple, by.unsigned_abs());
                    }
                }
                _ => {}
            }
        }
        f.clamped()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lcm(a: u64, b: u64) -> u64 {
    (a / gcd(a, b).max(1)).checked_mul(b).unwrap_or(a)
}

/// Facts of all values, by [`Value`]; those that are not `i32` scalars have [`IntFact::ANY`].
pub(super) fn analyse(kernel: &Kernel) -> Vec<IntFact> {
    let mut a = Analysis { kernel, facts: vec![None; kernel.values.len()], pass: 0, changed: true };
    while a.changed {
        a.changed = false;
        a.pass += 1;
        for p in &kernel.params {
            if let Some(w) = &p.window {
                for (axis, v) in w.index.args.iter().enumerate() {
                    a.set(*v, grid_index(kernel, axis));
                }
                a.block(&w.index);
            }
        }
        a.block(&kernel.body);
    }
    a.facts.into_iter().map(|f| f.unwrap_or(IntFact::ANY)).collect()
}

fn grid_index(kernel: &Kernel, axis: usize) -> IntFact {
    match kernel.grid.get(axis).and_then(|g| g.extent.known()) {
        Some(n) if n > 0 => IntFact { exact: true, ..IntFact::range(0, n - 1) },
        _ => IntFact::range(0, MOST),
    }
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    facts: Vec<Option<IntFact>>,
    pass: usize,
    changed: bool,
}

impl Analysis<'_> {
    /// Joins what is newly known of a value with what was; gives up what does not settle.
    fn set(&mut self, v: Value, new: IntFact) {
        if *self.kernel.ty(v) != Type::Scalar(DType::I32) {
            return;
        }
        let slot = &mut self.facts[v.0 as usize];
        let mut joined = slot.map_or(new, |old| old.join(new));
        if let Some(old) = *slot
            && self.pass > PATIENCE
        {
            if joined.lo != old.lo {
                joined.lo = LEAST;
            }
            if joined.hi != old.hi {
                joined.hi = MOST;
            }
            if joined.multiple != old.multiple {
                joined.multiple = 1;
            }
        }
        if *slot != Some(joined) {
            *slot = Some(joined);
            self.changed = true;
        }
    }

    /// What is known of a value by now; `None` before the first pass has reached what makes it.
    fn get(&self, v: Value) -> Option<IntFact> {
        self.facts[v.0 as usize]
    }

    fn flow(&mut self, from: &[Value], to: &[Value]) {
        for (f, t) in from.iter().zip(to) {
            if let Some(fact) = self.get(*f) {
                self.set(*t, fact);
            }
        }
    }

    fn block(&mut self, b: &Block) {
        for op in &b.ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: &Op) {
        match &op.kind {
            OpKind::If { then, otherwise, .. } => {
                self.block(then);
                self.block(otherwise);
                self.flow(&then.results, &op.results);
                self.flow(&otherwise.results, &op.results);
            }
            OpKind::For { lo, hi, init, body } => {
                if let (Some(lo), Some(hi), [index, ..]) = (self.get(*lo), self.get(*hi), &body.args[..]) {
                    // A loop that never runs has no index: any fact holds of it.
                    let exact = lo.value().is_some() && hi.value().is_some() && lo.lo < hi.hi;
                    let fact = IntFact { exact, ..IntFact::range(lo.lo, max(lo.lo, hi.hi - 1)) };
                    self.set(*index, fact);
                }
                self.flow(init, &body.args[1..]);
                self.block(body);
                self.flow(&body.results, &body.args[1..]);
                self.flow(init, &op.results);
                self.flow(&body.results, &op.results);
            }
            OpKind::While { init, cond, body } => {
                self.flow(init, &cond.args);
                self.flow(init, &body.args);
                self.block(cond);
                self.block(body);
                self.flow(&body.results, &cond.args);
                self.flow(&body.results, &body.args);
                self.flow(init, &op.results);
                self.flow(&body.results, &op.results);
            }
            kind => {
                if let [v] = op.results[..]
                    && let Some(fact) = self.fact(kind)
                {
                    self.set(v, fact);
                }
            }
        }
    }

    fn fact(&self, kind: &OpKind) -> Option<IntFact> {
        Some(match kind {
            OpKind::Constant(Literal::Int(n)) => IntFact::known(*n),
            OpKind::ProgramId { axis } => grid_index(self.kernel, *axis),
            OpKind::NumPrograms { axis } => match self.kernel.grid.get(*axis)?.extent.known() {
                Some(n) => IntFact::known(n),
                None => IntFact::range(1, MOST),
            },
            OpKind::Dim { name } => IntFact::of_demands(self.kernel, name),
            OpKind::AssumeMultiple { x, multiple } => {
                let x = self.get(*x)?;
                IntFact { multiple: lcm(x.multiple, *multiple as u64), ..x }
            }
            OpKind::Unary { op: Unary::Neg, x } => {
                let x = self.get(*x)?;
                IntFact { lo: -x.hi, hi: -x.lo, ..x }.clamped()
            }
            OpKind::Unary { op: Unary::Abs, x } => {
                let x = self.get(*x)?;
                let least = if x.lo <= 0 && x.hi >= 0 { 0 } else { min(x.lo.abs(), x.hi.abs()) };
                IntFact { lo: least, hi: max(x.lo.abs(), x.hi.abs()), multiple: x.multiple, exact: false }
                    .clamped()
            }
            OpKind::Binary { op, x, y } => binary(*op, self.get(*x)?, self.get(*y)?),
            OpKind::Select { x, y, .. } => self.get(*x)?.join(self.get(*y)?),
            OpKind::Cast { x } => match self.kernel.ty(*x).dtype() {
                Some(DType::I8) => IntFact::range(i64::from(i8::MIN), i64::from(i8::MAX)),
                Some(DType::I16) => IntFact::range(i64::from(i16::MIN), i64::from(i16::MAX)),
                Some(DType::Bool) => IntFact::range(0, 1),
                _ => IntFact::ANY,
            },
            _ => IntFact::ANY,
        })
    }
}

fn binary(op: Binary, x: IntFact, y: IntFact) -> IntFact {
    let one = x.value().is_some() || y.value().is_some();
    let exact = x.exact && y.exact && one;
    match op {
        Binary::Add => x.plus(y),
        Binary::Sub => x.plus(IntFact { lo: -y.hi, hi: -y.lo, ..y }),
        Binary::Mul => {
            let products = [x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi];
            let lo = products.into_iter().fold(i64::MAX, min);
            let hi = products.into_iter().fold(i64::MIN, max);
            let multiple = x.multiple.checked_mul(y.multiple).unwrap_or(max(x.multiple, y.multiple));
            IntFact { lo, hi, multiple, exact }.clamped()
        }
        Binary::Div => match y.value() {
            Some(n) if n > 0 => {
                let by = n.unsigned_abs();
                let multiple = if x.multiple.is_multiple_of(by) { x.multiple / by } else { 1 };
                IntFact { lo: x.lo / n, hi: x.hi / n, multiple, exact }
            }
            _ if y.lo > 0 => IntFact::range(min(x.lo, 0), max(x.hi, 0)),
            _ => IntFact::ANY,
        },
        Binary::Rem => {
            let multiple = gcd(x.multiple, y.multiple);
            let most = max(y.lo.abs(), y.hi.abs()) - 1;
            if y.lo > 0 && x.lo >= 0 && x.hi < y.lo {
                return x;
            }
            let lo = if x.lo >= 0 { 0 } else { max(x.lo, -most) };
            let hi = if x.hi <= 0 { 0 } else { min(x.hi, most) };
            IntFact { multiple, ..IntFact::range(min(lo, hi), max(lo, hi)) }
        }
        Binary::Min => {
            IntFact { lo: min(x.lo, y.lo), hi: min(x.hi, y.hi), multiple: gcd(x.multiple, y.multiple), exact }
        }
        Binary::Max => {
            IntFact { lo: max(x.lo, y.lo), hi: max(x.hi, y.hi), multiple: gcd(x.multiple, y.multiple), exact }
        }
        Binary::Shl => match y.value() {
            Some(n @ 0..=30) => binary(Binary::Mul, x, IntFact::known(1 << n)),
            _ => IntFact::ANY,
        },
        Binary::Shr => match y.value() {
            Some(n @ 0..=30) => {
                let by = 1_u64 << n;
                let multiple = if x.multiple.is_multiple_of(by) { x.multiple / by } else { 1 };
                IntFact { lo: x.lo >> n, hi: x.hi >> n, multiple, exact }
            }
            _ => IntFact::ANY,
        },
        Binary::And => match y.value().or(x.value()) {
            Some(n) if n >= 0 => IntFact::range(0, n),
            _ => IntFact::ANY,
        },
        _ => IntFact::ANY,
    }
}
