//! Windows: for each array the block that a step sees, and the function that says which.

use super::Fallible;
use super::attributes::{between, bracketed};
use super::params::Declared;
use super::scope::{Known, Lower};
use super::signature::Signature;
use crate::ir::{Block, DType, Extent, Literal, MemorySpace, OpKind, Span, Type, Value, Window, WindowUnit};
use crate::mosaic::read::module::{AttrId, Attribute, Operation, ValueId};

impl<'m> Lower<'m> {
    /// The window of each array; `None` for one that the body sees as a whole.
    pub(super) fn windows(&mut self, s: &Signature<'m>, d: &Declared) -> Fallible<Vec<Option<Window>>> {
        let mut windows = vec![];
        for (i, x) in d.arrays.iter().enumerate() {
            (self.name, self.span) = (&s.function.name, self.places.of(s.function));
            windows.push(match s.windows.get(i) {
                Some(Attribute::Dictionary(entries)) if !entries.is_empty() => {
                    self.window(s, d, *x, entries)?
                }
                Some(Attribute::Dictionary(_)) | None => None,
                Some(_) => return Err(self.malformed("has `window_params` that are no dictionaries")),
            });
        }
        Ok(windows)
    }

    fn window(
        &mut self,
        s: &Signature<'m>,
        d: &Declared,
        x: Value,
        entries: &'m [(std::sync::Arc<str>, AttrId)],
    ) -> Fallible<Option<Window>> {
        let module = self.module;
        let entry = |name: &str| entries.iter().find(|(n, _)| **n == *name).map(|(_, a)| module.attr(*a));
        let Type::Ref(r) = self.ty(x).clone() else {
            return Err(self.malformed("has an argument that is no memref"));
        };
        let Some(transform) = entry("transform_indices") else { return Ok(None) };
        if !matches!(r.space, MemorySpace::Vmem | MemorySpace::Smem) {
            return Ok(None);
        }
        let block = r.static_shape().ok_or_else(|| self.malformed(format!("has a window of type {r}")))?;
        let bounded = entry("window_bounds").is_some();
        let bounds = match entry("window_bounds") {
            None => None,
            Some(a) => {
                Some(self.list(a).ok_or_else(|| self.malformed("has `window_bounds` that are no list"))?)
            }
        };
        let fits = |bounds: Vec<i64>| {
            bounds.len() == block.len()
                && bounds
                    .iter()
                    .zip(&r.shape)
                    .all(|(n, e)| usize::try_from(*n).ok().map(Extent::Static) == Some(*e))
        };
        if bounds.is_some_and(|b| !fits(b)) {
            return Err(self.malformed(format!("has `window_bounds` that are not those of a {r}")));
        }
        let unit = self.unit(entry("window_kind"), block.len())?;
        let launch = self.span;
        let (index, span) = match transform {
            Attribute::Symbol(name) | Attribute::String(name) => self.index_function(s, d, name)?,
            Attribute::AffineMap { dims, symbols, results } => {
                (self.index_map(s.bounds.len(), (*dims, *symbols), results)?, launch)
            }
            _ => return Err(self.malformed("has `transform_indices` that are no function")),
        };
        if index.results.len() != block.len() {
            let n = index.results.len();
            return Err(self.malformed(format!("has an index function of {n} results for a {r}")));
        }
        // Without bounds it shows all of the array, so it is no window unless it moves: then writes to an aliased input count.
        if !bounded && unit == WindowUnit::Blocks && self.stays_at_zero(&index) {
            return Ok(None);
        }
        Ok(Some(Window { block, index, unit, span }))
    }

    /// Whether an index function yields zeros whatever the step.
    fn stays_at_zero(&self, index: &Block) -> bool {
        let zero = |v: &Value| {
            index.ops.iter().any(|op| {
                op.results.first() == Some(v) && matches!(op.kind, OpKind::Constant(Literal::Int(0)))
            })
        };
        index.results.iter().all(zero)
    }

    /// What an index counts: blocks, or elements of the array after padding.
    fn unit(&self, kind: Option<&Attribute>, rank: usize) -> Fallible<WindowUnit> {
        let Some(kind) = kind else { return Ok(WindowUnit::Blocks) };
        let Attribute::Opaque(text) = kind else {
            return Err(self.malformed("has a `window_kind` that is none"));
        };
        if !text.contains("element_window") {
            return Err(self.unsupported(format!("has the `window_kind` {text}")));
        }
        let lists = bracketed(between(text)).unwrap_or_default();
        let [low, high] = lists.as_slice() else {
            return Err(self.malformed(format!("has the `window_kind` {text}")));
        };
        if low.len() != rank || high.len() != rank {
            return Err(self.malformed(format!("has the `window_kind` {text} for {rank} axes")));
        }
        Ok(WindowUnit::Elements(low.iter().copied().zip(high.iter().copied()).collect()))
    }

    /// An index function of the module: grid indices and prefetched arrays to indices. And where it yields them.
    fn index_function(&mut self, s: &Signature<'m>, d: &Declared, name: &str) -> Fallible<(Block, Span)> {
        let module = self.module;
        let is_it = |f: &&Operation| &*f.name == "func.func" && self.text(f, "sym_name") == Some(name);
        let function = module.body.iter().find(is_it);
        let function = function.ok_or_else(|| self.malformed(format!("has no index function `{name}`")))?;
        (self.name, self.span) = (&function.name, self.places.of(function));
        let block = self.only_block(function, 0)?;
        let (axes, prefetched) = (s.bounds.len(), d.prefetch.len());
        if block.arguments.len() < axes || block.arguments.len() > axes + prefetched {
            let n = block.arguments.len();
            return Err(self.malformed(format!("takes {n} arguments as an index function")));
        }
        let (indices, arrays) = block.arguments.split_at(axes);
        let args = self.grid_indices(axes)?;
        let (ops, (results, span)) = self.inside(|l| {
            l.bind_indices(indices, &args)?;
            for (v, x) in arrays.iter().zip(&d.prefetch) {
                l.set(*v, Known::Value(*x));
            }
            let end = l.operations(block, "func.return")?;
            let results: Fallible<Vec<_>> = end.operands.iter().map(|v| l.get(*v)).collect();
            let results = results?;
            if results.iter().any(|x| *l.ty(*x) != Type::Scalar(DType::I32)) {
                return Err(l.malformed("returns indices that are no i32"));
            }
            Ok((results, l.span))
        })?;
        Ok((Block { args, ops, results }, span))
    }

    /// New values for a step's indices.
    pub(super) fn grid_indices(&mut self, axes: usize) -> Fallible<Vec<Value>> {
        (0..axes).map(|_| self.new_value(Type::Scalar(DType::I32), self.span)).collect()
    }

    fn bind_indices(&mut self, indices: &[ValueId], args: &[Value]) -> Fallible<()> {
        indices.iter().zip(args).try_for_each(|(v, x)| self.bind(*v, *x))
    }
}
