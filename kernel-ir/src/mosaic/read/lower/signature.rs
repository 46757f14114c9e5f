//! The kernel function: which of the module's functions it is, and what its arguments are.

use super::Fallible;
use super::scope::Lower;
use crate::diag::Diagnostic;
use crate::ir::{DimExpr, GridAxis, Semantics, Span};
use crate::mosaic::read::module::{Attribute, Block, Operation, ValueId};

/// MLIR's `kDynamic`, which marks a grid extent that comes as an operand.
const DYNAMIC: i64 = i64::MIN;

/// Axes of the largest grid.
const MOST_AXES: usize = 16;

/// The kernel function.
pub(super) struct Signature<'m> {
    pub(super) function: &'m Operation,
    pub(super) block: &'m Block,
    /// The grid's extents; `None` for one that the call fixes.
    pub(super) bounds: Vec<Option<i64>>,
    /// One argument a grid axis: the step's index.
    pub(super) indices: &'m [ValueId],
    /// Arrays in SMEM that are there before the first step.
    pub(super) prefetch: &'m [ValueId],
    /// Inputs, then outputs.
    pub(super) arrays: &'m [ValueId],
    pub(super) scratch: &'m [ValueId],
    /// One an array, if the module says anything about windows.
    pub(super) windows: Vec<&'m Attribute>,
}

impl<'m> Signature<'m> {
    /// Where the kernel was launched, as far as the module says, and what it is called.
    pub(super) fn launch(&self, lower: &mut Lower<'m>) -> (Span, String) {
        let name = lower.module.name.as_deref().or_else(|| lower.text(self.function, "sym_name"));
        let name = name.unwrap_or("kernel").to_owned();
        (lower.places.of(self.function), name)
    }
}

impl<'m> Lower<'m> {
    /// Finds the kernel function, and reads what its attributes say of the grid and the arguments.
    pub(super) fn signature(&mut self) -> Fallible<Signature<'m>> {
        let function = self.kernel_function()?;
        (self.name, self.span) = (&function.name, self.places.of(function));
        let block = self.only_block(function, 0)?;
        let bounds = self.ints(function, "iteration_bounds")?.unwrap_or_default();
        let bounds: Fallible<Vec<_>> = bounds
            .into_iter()
            .map(|n| match n {
                DYNAMIC => Ok(None),
                0.. if i32::try_from(n).is_ok() => Ok(Some(n)),
                _ => Err(self.malformed(format!("has a grid bound of {n}"))),
            })
            .collect();
        let bounds = bounds?;
        if bounds.len() > MOST_AXES {
            return Err(self.unsupported(format!("has a grid of {} axes", bounds.len())));
        }
        let count = |name: &str| -> Fallible<usize> {
            match self.int(function, name)? {
                None => Ok(0),
                Some(_) => self.axis(function, name),
            }
        };
        let (prefetched, scratch) = (count("scalar_prefetch")?, count("scratch_operands")?);
        let lacks = || self.malformed("has fewer arguments than its attributes say");
        let (indices, rest) = block.arguments.split_at_checked(bounds.len()).ok_or_else(lacks)?;
        let (prefetch, rest) = rest.split_at_checked(prefetched).ok_or_else(lacks)?;
        let split = rest.len().checked_sub(scratch).ok_or_else(lacks)?;
        let (arrays, scratch) = rest.split_at(split);
        let windows = self.window_attributes(function)?;
        if !windows.is_empty() && windows.len() != arrays.len() {
            let (n, m) = (windows.len(), arrays.len());
            return Err(self.malformed(format!("has {n} `window_params` for {m} arrays")));
        }
        self.grid = self.grid_axes(function, &bounds)?;
        Ok(Signature { function, block, bounds, indices, prefetch, arrays, scratch, windows })
    }

    /// The function that is marked as a TensorCore's, or else the one called `main`, or else the only one.
    fn kernel_function(&mut self) -> Fallible<&'m Operation> {
        let module = self.module;
        let functions = || module.body.iter().filter(|f| &*f.name == "func.func");
        if let Some(other) = module.body.iter().find(|f| &*f.name != "func.func") {
            (self.name, self.span) = (&other.name, self.places.of(other));
            return Err(self.unsupported("stands outside of a function"));
        }
        let core = |f: &&Operation| self.word(f, "tpu.core_type").ok().flatten();
        if let Some(f) = functions().find(|f| core(f) == Some("tc")) {
            return Ok(f);
        }
        if let Some((f, core)) = functions().find_map(|f| core(&f).map(|core| (f, core))) {
            (self.name, self.span) = (&f.name, self.places.of(f));
            return Err(self.unsupported(format!("has the `tpu.core_type` {core}, of a SparseCore")));
        }
        let named = functions().find(|f| self.text(f, "sym_name") == Some("main"));
        let only = || functions().next().filter(|_| functions().count() == 1);
        named.or_else(only).ok_or_else(|| {
            let loc = self.places.loc(Span(0)).clone();
            Diagnostic::error("K0812", "the module has no kernel function").at(loc, "in this module").help(
                "a function is a kernel if it has `tpu.core_type = #tpu.core_type<tc>` or is called `main`",
            )
        })
    }

    fn window_attributes(&self, function: &Operation) -> Fallible<Vec<&'m Attribute>> {
        match self.module.attribute(function, "window_params") {
            None => Ok(vec![]),
            Some(Attribute::Array(items)) => Ok(items.iter().map(|id| self.module.attr(*id)).collect()),
            Some(_) => Err(self.malformed("has `window_params` that are no list")),
        }
    }

    fn grid_axes(&self, function: &Operation, bounds: &[Option<i64>]) -> Fallible<Vec<GridAxis>> {
        let semantics = match self.module.attribute(function, "dimension_semantics") {
            Some(Attribute::Array(items)) => items.as_slice(),
            _ => &[],
        };
        let axis = |(i, bound): (usize, &Option<i64>)| {
            let parallel = semantics.get(i).is_some_and(
                |id| matches!(self.module.attr(*id), Attribute::Opaque(text) if text.contains("parallel")),
            );
            GridAxis {
                extent: bound.map_or_else(|| DimExpr::dim(&format!("grid{i}")), DimExpr::Const),
                semantics: if parallel { Semantics::Parallel } else { Semantics::Arbitrary },
            }
        };
        Ok(bounds.iter().enumerate().map(axis).collect())
    }
}
