//! Windows: for each array the blocks that are copied for a grid step, and the function that says which.

use melior::Context;
use melior::ir::attribute::{DictionaryAttribute, FlatSymbolRefAttribute};
use melior::ir::{Attribute, BlockRef, Identifier};

use super::signature::Signature;
use super::{Fallible, problem, types};
use crate::ir::{Kernel, MemorySpace, Param, Window, WindowUnit};
use crate::target;

impl<'k> Signature<'k> {
    /// The window of array `i`: `{}` for one that stays in HBM.
    pub(super) fn window<'c>(&self, context: &'c Context, i: usize) -> Fallible<Attribute<'c>> {
        let p = self.arrays[i];
        let mut entries = vec![];
        if is_windowed(self.kernel, p) {
            let block: Option<Vec<i64>> = match &p.window {
                Some(w) => w.block.iter().map(|n| i64::try_from(*n).ok()).collect(),
                None => whole(self.kernel, p),
            };
            let block = block
                .ok_or_else(|| problem(self.kernel, p.span, "K0602", format!("`{}` has no block", p.name)))?;
            let name = FlatSymbolRefAttribute::new(context, &transform(i)).into();
            entries.push(("transform_indices", name));
            entries.push(("window_bounds", types::i64s(context, &block)));
            if let Some(Window { unit: WindowUnit::Elements(pads), .. }) = &p.window {
                let of = |pick: fn(&(usize, usize)) -> usize| pads.iter().map(pick).collect::<Vec<_>>();
                let text = format!("#tpu.element_window<{:?},{:?}>", of(|p| p.0), of(|p| p.1));
                let kind = types::parse(context, &text)
                    .ok_or_else(|| problem(self.kernel, p.span, "K0602", text))?;
                entries.push(("window_kind", kind));
            }
            if !p.window.as_ref().is_some_and(target::moves)
                && let Some(once) = types::parse(context, "#tpu.pipeline_mode<synchronous>")
            {
                entries.push(("pipeline_mode", once));
            }
        }
        let entries: Vec<_> = entries.into_iter().map(|(k, v)| (Identifier::new(context, k), v)).collect();
        Ok(DictionaryAttribute::new(context, &entries).into())
    }

    /// The function that says which block of array `i` a grid step sees.
    pub(super) fn index_function<'c>(
        &self,
        context: &'c Context,
        module: BlockRef<'c, '_>,
        i: usize,
        p: &'k Param,
    ) -> Fallible<()> {
        let rank = match &p.window {
            Some(w) => w.index.results.len(),
            None => whole(self.kernel, p).unwrap_or_default().len(),
        };
        let inputs = self.leading(context)?;
        let results = vec![types::integer(context, 32); rank];
        let entry = self.function(context, module, &transform(i), &inputs, &results, &[])?;
        let mut f = self.enter(context, entry)?;
        f.span = p.span;
        let mut out = vec![];
        match &p.window {
            Some(w) => {
                for (axis, arg) in w.index.args.iter().enumerate() {
                    let Some(v) = f.grid.get(axis).copied() else {
                        return Err(f.malformed("an index map has more arguments than the grid"));
                    };
                    f.set(*arg, v);
                }
                f.block_ops(&w.index)?;
                f.span = w.span;
                for r in &w.index.results {
                    out.push(f.get(*r)?);
                }
            }
            None => {
                for _ in 0..rank {
                    out.push(f.i32(0)?);
                }
            }
        }
        f.op("func.return", &out, &[], &[])?;
        Ok(())
    }
}

/// Whether blocks of the array are copied for the kernel; others stay in HBM.
pub(super) fn is_windowed(kernel: &Kernel, p: &Param) -> bool {
    let in_hbm = matches!(
        kernel.values.get(p.value.0 as usize).map(|v| &v.ty),
        Some(crate::ir::Type::Ref(r)) if r.space == MemorySpace::Any
    );
    !in_hbm
}

/// The shape of a ref as the only block of its array.
fn whole(kernel: &Kernel, p: &Param) -> Option<Vec<i64>> {
    match &kernel.values.get(p.value.0 as usize)?.ty {
        crate::ir::Type::Ref(r) => r.static_shape()?.into_iter().map(|n| i64::try_from(n).ok()).collect(),
        _ => None,
    }
}

fn transform(i: usize) -> String {
    format!("transform_{i}")
}
