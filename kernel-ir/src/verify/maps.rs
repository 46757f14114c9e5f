//! Block maps, run on numbers: which block each grid step sees, tried out on some steps of some call.

use std::collections::HashMap;

use super::WindowFacts;
use crate::ir::dims::Dims;
use crate::ir::{Binary, Compare, DType, Kernel, Literal, OpKind, Param, Type, Unary, Value, Window};

/// Steps that are tried at most.
const STEPS: usize = 256;

/// Sizes that a symbolic dim is tried at: large ones first, with many tiles and a ragged edge.
const SIZES: [i64; 16] = [3080, 4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 128, 64, 32, 16, 8, 1];

/// A call of the kernel, with some of its grid steps in order.
pub(super) struct Trial {
    /// A size for each dim.
    pub(super) dims: Dims,
    /// Extents of the grid.
    extents: Vec<i64>,
    /// Grid indices; on each axis some at the start and some at the end, so steps are in the order they run.
    pub(super) steps: Vec<Vec<i64>>,
}

impl Trial {
    /// A call that satisfies the launch's demands, or `None` if none is found.
    pub(super) fn of(kernel: &Kernel) -> Option<Self> {
        let dims = sizes(kernel)?;
        let extents: Option<Vec<i64>> = kernel.grid.iter().map(|g| g.extent.eval(&dims)).collect();
        let extents = extents.filter(|e| e.iter().all(|n| (0..=i64::from(i32::MAX)).contains(n)))?;
        let steps = steps(&extents);
        Some(Self { dims, extents, steps })
    }
}

/// One size for all dims if the demands allow it: arrays that share no dim may still have to agree.
fn sizes(kernel: &Kernel) -> Option<Dims> {
    let names = kernel.dims();
    let with = |n: i64| -> Dims { names.iter().map(|d| (d.to_string(), n)).collect() };
    let allowed = |dims: &Dims| kernel.demands.iter().all(|d| d.holds(dims) == Some(true));
    if let Some(dims) = SIZES.into_iter().map(with).find(allowed) {
        return Some(dims);
    }
    // Else dim by dim: the size of each that breaks no demand about it alone.
    let mut dims = with(SIZES[0]);
    for name in &names {
        let own: Vec<_> = kernel.demands.iter().filter(|d| only_about(d, name)).collect();
        let exact = own.iter().filter_map(|d| d.right.known());
        let size = SIZES.into_iter().chain(exact).find(|n| {
            let alone = Dims::from([(name.to_string(), *n)]);
            own.iter().all(|d| d.holds(&alone) == Some(true))
        });
        dims.insert(name.to_string(), size?);
    }
    Some(dims).filter(allowed)
}

fn only_about(d: &crate::ir::Demand, name: &str) -> bool {
    let mut only = true;
    for side in [&d.left, &d.right] {
        side.each_dim(&mut |x| only &= **x == *name);
    }
    only
}

fn steps(extents: &[i64]) -> Vec<Vec<i64>> {
    let rank = u32::try_from(extents.len()).unwrap_or(u32::MAX);
    let Some(per_axis) = (1..=STEPS).rev().find(|n| n.checked_pow(rank).is_some_and(|all| all <= STEPS))
    else {
        return vec![];
    };
    if extents.contains(&0) || (per_axis < 2 && !extents.is_empty()) {
        return vec![];
    }
    let mut steps = vec![vec![]];
    for n in extents {
        let head = (per_axis as i64).min(*n);
        let tail = if *n > head { head / 2 } else { 0 };
        let axis: Vec<i64> = (0..head - tail).chain(n - tail..*n).collect();
        let longer = |s: &Vec<i64>| axis.iter().map(|i| [s.as_slice(), &[*i]].concat()).collect::<Vec<_>>();
        steps = steps.iter().flat_map(longer).collect();
    }
    steps
}

/// A block map, with its values numbered from 0: first the grid indices, then one result an operation.
pub(super) struct Map<'k> {
    kernel: &'k Kernel,
    window: &'k Window,
    /// Slot `i` is that of the `i`-th value: maps are so short that looking through them is fastest.
    slots: Vec<Value>,
}

impl<'k> Map<'k> {
    pub(super) fn new(kernel: &'k Kernel, window: &'k Window) -> Self {
        let made = window.index.ops.iter().flat_map(|op| &op.results);
        let slots = window.index.args.iter().chain(made).copied().collect();
        Self { kernel, window, slots }
    }

    fn slot(&self, v: &Value) -> Option<usize> {
        self.slots.iter().position(|s| s == v)
    }

    /// The block that a step sees on each axis; `None` where it depends on a prefetched array, or is not an `i32`.
    pub(super) fn at(&self, trial: &Trial, step: &[i64]) -> Vec<Option<i64>> {
        let index = &self.window.index;
        let mut values: Vec<Option<i64>> = vec![None; self.slots.len()];
        for (v, i) in values.iter_mut().zip(step) {
            *v = Some(*i);
        }
        for op in &index.ops {
            let new = self.eval(&op.kind, &values, trial, op.results.first());
            if let Some(slot) = op.results.first().and_then(|r| self.slot(r)) {
                values[slot] = new.filter(|n| i32::try_from(*n).is_ok());
            }
        }
        index.results.iter().map(|r| values.get(self.slot(r)?).copied()?).collect()
    }

    fn eval(&self, kind: &OpKind, values: &[Option<i64>], trial: &Trial, to: Option<&Value>) -> Option<i64> {
        let get = |v: &Value| values.get(self.slot(v)?).copied()?;
        let integer = |v: &Value| matches!(self.kernel.ty(*v), Type::Scalar(d) if !d.is_float());
        match kind {
            OpKind::Constant(Literal::Int(n)) => Some(*n),
            OpKind::Constant(Literal::Bool(b)) => Some(i64::from(*b)),
            OpKind::NumPrograms { axis } => trial.extents.get(*axis).copied(),
            OpKind::Dim { name } => trial.dims.get(&**name).copied(),
            OpKind::AssumeMultiple { x, .. } => get(x),
            OpKind::Unary { op: Unary::Neg, x } => get(x).map(|x| -x),
            OpKind::Unary { op: Unary::Abs, x } => get(x).map(i64::abs),
            OpKind::Binary { op, x, y } if integer(x) => binary(*op, get(x)?, get(y)?),
            OpKind::Compare { op, x, y } if integer(x) => Some(i64::from(compare(*op, get(x)?, get(y)?))),
            OpKind::Select { mask, x, y } => get(if get(mask)? != 0 { x } else { y }),
            OpKind::Cast { x }
                if integer(x) && to.is_some_and(|t| *self.kernel.ty(*t) == Type::Scalar(DType::I32)) =>
            {
                get(x)
            }
            _ => None,
        }
    }
}

fn binary(op: Binary, x: i64, y: i64) -> Option<i64> {
    match op {
        Binary::Add => x.checked_add(y),
        Binary::Sub => x.checked_sub(y),
        Binary::Mul => x.checked_mul(y),
        Binary::Div => x.checked_div(y),
        Binary::Rem => x.checked_rem(y),
        Binary::Min => Some(x.min(y)),
        Binary::Max => Some(x.max(y)),
        Binary::And => Some(x & y),
        Binary::Or => Some(x | y),
        Binary::Xor => Some(x ^ y),
        Binary::Shl => u32::try_from(y).ok().filter(|y| *y < 32).map(|y| x << y),
        Binary::Shr => u32::try_from(y).ok().filter(|y| *y < 32).map(|y| x >> y),
        Binary::DivUnsigned => unsigned(x).checked_div(unsigned(y)),
        Binary::RemUnsigned => unsigned(x).checked_rem(unsigned(y)),
        _ => None,
    }
}

/// The number that the bits of an `i32` are when read as unsigned.
const fn unsigned(x: i64) -> i64 {
    x & 0xffff_ffff
}

const fn compare(op: Compare, x: i64, y: i64) -> bool {
    match op {
        Compare::LtUnsigned => unsigned(x) < unsigned(y),
        Compare::LeUnsigned => unsigned(x) <= unsigned(y),
        Compare::GtUnsigned => unsigned(x) > unsigned(y),
        Compare::GeUnsigned => unsigned(x) >= unsigned(y),
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
    }
}

/// Grid axes and memory that the block of a parameter depends on.
pub(super) fn depends(p: &Param) -> WindowFacts {
    let Some(w) = &p.window else { return WindowFacts::default() };
    let mut known: HashMap<Value, WindowFacts> = HashMap::new();
    for (axis, v) in w.index.args.iter().enumerate() {
        known.insert(*v, WindowFacts { axes: vec![axis], data_dependent: false });
    }
    let join = |known: &HashMap<Value, WindowFacts>, vs: &[Value]| {
        let mut all = WindowFacts::default();
        for f in vs.iter().filter_map(|v| known.get(v)) {
            all.axes.extend(&f.axes);
            all.data_dependent |= f.data_dependent;
        }
        all.axes.sort_unstable();
        all.axes.dedup();
        all
    };
    for op in &w.index.ops {
        let mut from = join(&known, &op.kind.operands());
        from.data_dependent |= matches!(op.kind, OpKind::LoadScalar { .. });
        for r in &op.results {
            known.insert(*r, from.clone());
        }
    }
    join(&known, &w.index.results)
}
