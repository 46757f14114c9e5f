//! Parameters: the refs that the body sees, the arrays behind them, and which of them are outputs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Fallible;
use super::scope::{Known, Lower};
use super::signature::Signature;
use crate::ir::{
    ArrayType, Block, DType, DimExpr, Extent, MemorySpace, Op, OpKind, Param, RefType, Role, Type, Value,
    Window,
};
use crate::mosaic::SMEM_ELEMENTS;
use crate::mosaic::read::call::CallTypes;
use crate::mosaic::read::module::ValueId;

/// The refs of a kernel's parameters.
pub(super) struct Declared {
    pub(super) prefetch: Vec<Value>,
    pub(super) arrays: Vec<Value>,
    pub(super) scratch: Vec<Value>,
}

impl<'m> Lower<'m> {
    /// Makes the refs of the parameters.
    pub(super) fn declare(&mut self, s: &Signature<'m>) -> Fallible<Declared> {
        Ok(Declared {
            prefetch: self.declare_all(s.prefetch, true)?,
            arrays: self.declare_all(s.arrays, false)?,
            scratch: self.declare_all(s.scratch, false)?,
        })
    }

    fn declare_all(&mut self, arguments: &[ValueId], prefetched: bool) -> Fallible<Vec<Value>> {
        let mut refs = vec![];
        for v in arguments {
            let mut r = self.ref_type(self.module.values[v.0 as usize])?;
            if prefetched {
                if r.space != MemorySpace::Smem || r.dtype().is_none() {
                    return Err(self.malformed(format!("has a prefetched argument of type {r}")));
                }
                // What we write ourselves for a length that the call fixes.
                if r.shape.first() == Some(&Extent::Static(SMEM_ELEMENTS)) {
                    r.shape[0] = Extent::Dynamic;
                }
            }
            refs.push(self.new_value(Type::Ref(r), self.span)?);
        }
        Ok(refs)
    }

    /// The kernel's body.
    pub(super) fn body(&mut self, s: &Signature<'m>, d: &Declared) -> Fallible<Vec<Op>> {
        let (ops, ()) = self.inside(|l| {
            for (axis, v) in s.indices.iter().enumerate() {
                if l.value_type(l.module.values[v.0 as usize])? != Type::Scalar(DType::I32) {
                    return Err(l.malformed("has a grid index that is no i32"));
                }
                l.set(*v, Known::GridIndex(axis));
            }
            let arguments = s.prefetch.iter().chain(s.arrays).chain(s.scratch);
            for (v, x) in arguments.zip(d.prefetch.iter().chain(&d.arrays).chain(&d.scratch)) {
                l.set(*v, Known::Value(*x));
            }
            let end = l.operations(s.block, "func.return")?;
            if end.operands.is_empty() { Ok(()) } else { Err(l.malformed("returns values from a kernel")) }
        })?;
        Ok(ops)
    }

    /// The parameters, with names, roles and arrays.
    pub(super) fn params(
        &mut self,
        s: &Signature<'m>,
        d: Declared,
        windows: Vec<Option<Window>>,
        body: &Block,
        call: Option<&CallTypes>,
    ) -> Fallible<Vec<Param>> {
        self.name = &s.function.name;
        self.span = self.places.of(s.function);
        let outputs = match call {
            Some(call) => call.results.len(),
            None => written_at_the_end(&d.arrays, body),
        };
        let inputs = d.arrays.len().checked_sub(outputs).ok_or_else(|| {
            self.malformed(format!("has {} arrays, but is called for {outputs} results", d.arrays.len()))
        })?;
        let mut types = self.called(s, d.prefetch.len() + inputs, call)?.into_iter();
        let mut params = vec![];
        for (i, x) in d.prefetch.iter().enumerate() {
            params.push(self.param(
                format!("prefetch{i}"),
                Role::Prefetch,
                *x,
                None,
                types.next().flatten(),
            )?);
        }
        for (i, (x, window)) in d.arrays.iter().zip(windows).enumerate() {
            let (role, name) = match i.checked_sub(inputs) {
                None => (Role::Input, format!("in{i}")),
                Some(n) => (Role::Output, format!("out{n}")),
            };
            let ty = match i.checked_sub(inputs) {
                None => types.next().flatten(),
                Some(n) => call.and_then(|c| c.results.get(n)),
            };
            params.push(self.param(name, role, *x, window, ty)?);
        }
        let allocated = std::mem::take(&mut self.allocated);
        for (i, x) in d.scratch.into_iter().chain(allocated).enumerate() {
            let name: Arc<str> = format!("scratch{i}").into();
            let span = self.span;
            params.push(Param { name, role: Role::Scratch, value: x, array: None, window: None, span });
        }
        Ok(params)
    }

    /// The types of the operands that are arrays, after the grid's bounds.
    fn called<'c>(
        &self,
        s: &Signature<'m>,
        arrays: usize,
        call: Option<&'c CallTypes>,
    ) -> Fallible<Vec<Option<&'c ArrayType>>> {
        let Some(operands) = call.and_then(|c| c.operands.as_ref()) else { return Ok(vec![None; arrays]) };
        let bounds = s.bounds.iter().filter(|b| b.is_none()).count();
        if operands.len() != bounds + arrays {
            let (n, m) = (bounds + arrays, operands.len());
            return Err(self.malformed(format!("takes {n} operands, but is called with {m}")));
        }
        Ok(operands[bounds..].iter().map(Some).collect())
    }

    fn param(
        &self,
        name: String,
        role: Role,
        value: Value,
        window: Option<Window>,
        call: Option<&ArrayType>,
    ) -> Fallible<Param> {
        let Type::Ref(r) = self.ty(value) else {
            return Err(self.malformed("has an argument that is no memref"));
        };
        let Some(dtype) = r.dtype() else {
            return Err(self.unsupported(format!("takes a {r} from its caller")));
        };
        // The lengths of an array are those of its ref, unless that is a block of it.
        let known = |axis: usize| r.shape[axis].known().filter(|_| window.is_none());
        let array = match call {
            Some(call) => self.called_array(&name, r, dtype, known, call)?,
            None => {
                let extent =
                    |axis| known(axis).map_or_else(|| DimExpr::dim(&format!("{name}_{axis}")), DimExpr::from);
                ArrayType { dtype, shape: (0..r.shape.len()).map(extent).collect() }
            }
        };
        Ok(Param { name: name.into(), role, value, array: Some(array), window, span: self.span })
    }

    /// The array that the caller passes for a ref.
    fn called_array(
        &self,
        name: &str,
        r: &RefType,
        dtype: DType,
        known: impl Fn(usize) -> Option<usize>,
        call: &ArrayType,
    ) -> Fallible<ArrayType> {
        // Truth values cross the border as numbers.
        let elements = call.dtype == dtype || call.dtype == DType::Bool && dtype == DType::I32;
        let fits = |(axis, e): (usize, &DimExpr)| match (known(axis), e.known()) {
            (Some(n), Some(e)) => i64::try_from(n) == Ok(e),
            _ => true,
        };
        if !elements || call.shape.len() != r.shape.len() || !call.shape.iter().enumerate().all(fits) {
            let shape: Vec<_> = call.shape.iter().map(ToString::to_string).collect();
            let given = format!("{}[{}]", call.dtype, shape.join(", "));
            return Err(self.malformed(format!("takes `{name}` as a {r}, but is called with {given}")));
        }
        let extent = |(axis, e): (usize, &DimExpr)| known(axis).map_or_else(|| e.clone(), DimExpr::from);
        Ok(ArrayType { dtype, shape: call.shape.iter().enumerate().map(extent).collect() })
    }
}

/// How many arrays at the end are written by the body; if the last is not, all from the first that is.
fn written_at_the_end(arrays: &[Value], body: &Block) -> usize {
    let mut roots = HashMap::new();
    let mut written = HashSet::new();
    writes(body, &mut roots, &mut written);
    let is_written = |v: &&Value| written.contains(*v);
    match arrays.iter().rev().take_while(is_written).count() {
        0 => arrays.iter().position(|v| written.contains(v)).map_or(0, |first| arrays.len() - first),
        n => n,
    }
}

/// Collects the refs that a block writes, through views of them.
fn writes(block: &Block, roots: &mut HashMap<Value, Value>, written: &mut HashSet<Value>) {
    for op in &block.ops {
        let root = |v: &Value| roots.get(v).copied().unwrap_or(*v);
        match &op.kind {
            OpKind::Slice { base, .. }
            | OpKind::Squeeze { base, .. }
            | OpKind::ReshapeRef { base }
            | OpKind::BitcastRef { base } => {
                let base = root(base);
                roots.extend(op.results.iter().map(|v| (*v, base)));
            }
            OpKind::Store { base, .. }
            | OpKind::StoreStrided { base, .. }
            | OpKind::StoreMasked { base, .. }
            | OpKind::StoreScalar { base, .. } => {
                written.insert(root(base));
            }
            OpKind::CopyStart { dst, .. } | OpKind::CopyStartRemote { dst, .. } => {
                written.insert(root(dst));
            }
            _ => {}
        }
        for inner in op.kind.blocks() {
            writes(inner, roots, written);
        }
    }
}
