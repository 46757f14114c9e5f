//! A whole kernel: its grid, its parameters with their arrays and windows, its body, and where each value came from.

use std::sync::Arc;

use super::dims::{Demand, DimExpr};
use super::op::{Block, Span, Value};
use super::types::{DType, RefType, Type};
use crate::diag::SourceLoc;

/// A kernel: one function that runs once per grid step.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// The name of the Rust function.
    pub name: String,
    /// Where the function was launched.
    pub span: Span,
    /// Extents of the grid, outermost first; steps run in lexicographic order, the last axis fastest.
    pub grid: Vec<GridAxis>,
    /// In the order of the Rust function's parameters, but prefetched ones first.
    pub params: Vec<Param>,
    /// What one grid step does.
    pub body: Block,
    /// What the launch demanded of its dims, beyond what shapes already say.
    pub demands: Vec<Demand>,
    /// Every value, by [`Value`].
    pub values: Vec<ValueInfo>,
    /// Every source place, by [`Span`]; the first is the launch.
    pub spans: Vec<SourceLoc>,
}

/// What is known of a value.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// Where it was made.
    pub span: Span,
}

/// One axis of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct GridAxis {
    /// Number of steps.
    pub extent: DimExpr,
    /// What the compiler may assume.
    pub semantics: Semantics,
}

/// What may be assumed of the steps along a grid axis (Mosaic's dimension semantics).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// Steps do not see each other's effects; they may run on several cores.
    Parallel,
    /// Steps run in order and may carry state.
    Arbitrary,
}

/// What a parameter is to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// A small array copied to SMEM before the kernel starts; block maps may read it.
    Prefetch,
    /// An array that the kernel reads.
    Input,
    /// An array that the kernel makes.
    Output,
    /// Memory of the kernel's own, kept across grid steps; starts undefined.
    Scratch,
}

/// A parameter of the kernel function.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// The Rust parameter's name.
    pub name: Arc<str>,
    /// What it is to the caller.
    pub role: Role,
    /// The ref that the body uses.
    pub value: Value,
    /// The whole array behind it; `None` for scratch.
    pub array: Option<ArrayType>,
    /// How a grid step's block is found; `None` when the body sees the whole array.
    pub window: Option<Window>,
    /// Where the launch declared it.
    pub span: Span,
}

/// A whole array, as the caller passes it: row-major.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayType {
    /// Element type.
    pub dtype: DType,
    /// Length of each axis.
    pub shape: Vec<DimExpr>,
}

/// A BlockSpec: which block of the array a grid step sees.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Block shape; blocks at the array's edge may stick out: what lies outside is undefined when read and dropped
    /// when written.
    pub block: Vec<usize>,
    /// The index map: args are the grid indices (`i32`), results one index (`i32`) per axis, in the unit of [`Window::unit`].
    pub index: Block,
    /// What an index counts.
    pub unit: WindowUnit,
    /// Where the launch chose the block.
    pub span: Span,
}

/// What the index of a [`Window`] counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum WindowUnit {
    /// Blocks: the block starts at the index times its length.
    #[default]
    Blocks,
    /// Elements of the array after padding: by axis, how many undefined elements stand before and after it (Pallas's
    /// `Element`, Mosaic's `element_window`). The block starts at the index less the padding before.
    Elements(Vec<(usize, usize)>),
}

impl Kernel {
    /// The type of a value.
    pub fn ty(&self, v: Value) -> &Type {
        &self.values[v.0 as usize].ty
    }

    /// The type of a ref value.
    ///
    /// # Panics
    /// If `v` is not a ref; verified kernels use refs only where refs belong.
    pub fn ref_ty(&self, v: Value) -> &RefType {
        match self.ty(v) {
            Type::Ref(r) => r,
            other => panic!("%{} is a {other}, not a ref", v.0),
        }
    }

    /// The source place of a span.
    pub fn loc(&self, s: Span) -> &SourceLoc {
        &self.spans[s.0 as usize]
    }

    /// The parameter whose ref is `v`.
    pub fn param(&self, v: Value) -> Option<&Param> {
        self.params.iter().find(|p| p.value == v)
    }

    /// Calls `f` for each op, outer before inner, in order; block maps first.
    pub fn each_op<'k>(&'k self, f: &mut impl FnMut(&'k super::Op)) {
        fn walk<'k>(b: &'k Block, f: &mut impl FnMut(&'k super::Op)) {
            for op in &b.ops {
                f(op);
                for inner in op.kind.blocks() {
                    walk(inner, f);
                }
            }
        }
        for p in &self.params {
            if let Some(w) = &p.window {
                walk(&w.index, f);
            }
        }
        walk(&self.body, f);
    }

    /// Names of the symbolic dims, in order of first appearance in the arrays, then the grid.
    pub fn dims(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = vec![];
        let mut see = |d: &Arc<str>| {
            if !names.contains(d) {
                names.push(d.clone());
            }
        };
        let arrays = self.params.iter().filter_map(|p| p.array.as_ref()).flat_map(|a| &a.shape);
        for e in arrays.chain(self.grid.iter().map(|g| &g.extent)) {
            e.each_dim(&mut see);
        }
        names
    }

    /// Names of the dims that the body or a block map reads, sorted: the operand `i32[len]` that carries them.
    pub fn dims_read(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = vec![];
        self.each_op(&mut |op| {
            if let super::OpKind::Dim { name } = &op.kind
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        });
        names.sort();
        names
    }
}
