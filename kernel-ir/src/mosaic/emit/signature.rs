//! The signature of the kernel function: its arguments in the order of the module's operands, and its attributes.

use std::sync::Arc;

use melior::Context;
use melior::ir::RegionLike as _;
use melior::ir::block::BlockLike as _;
use melior::ir::operation::OperationLike as _;
use melior::ir::{Attribute, Block, BlockRef, Identifier, Region, Type, Value};

use super::function::{Function, location};
use super::window::is_windowed;
use super::{Fallible, problem, types};
use crate::ir::{DType, DimExpr, Elem, Extent, Kernel, MemorySpace, Param, RefType, Role, Semantics};
use crate::mosaic::call::Operand;

/// MLIR's `kDynamic`, which marks a grid extent that comes as an operand.
const DYNAMIC_BOUND: i64 = i64::MIN;

/// The parameters in the order of the module's operands, and what stands before them.
pub(super) struct Signature<'k> {
    /// Dims that the kernel reads: the operand before the prefetch arrays, unless there are none.
    pub(super) dims: Vec<Arc<str>>,
    /// Scalar-prefetch arrays.
    pub(super) prefetch: Vec<&'k Param>,
    /// Inputs, then outputs.
    pub(super) arrays: Vec<&'k Param>,
    /// Memory of the kernel's own.
    pub(super) scratch: Vec<&'k Param>,
    pub(super) kernel: &'k Kernel,
}

impl<'k> Signature<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Self {
        let of = |role| kernel.params.iter().filter(move |p| p.role == role);
        Self {
            dims: kernel.dims_read(),
            prefetch: of(Role::Prefetch).collect(),
            arrays: of(Role::Input).chain(of(Role::Output)).collect(),
            scratch: of(Role::Scratch).collect(),
            kernel,
        }
    }

    /// The operands of the custom call: grid bounds that the call fixes, dims, prefetch arrays, inputs.
    pub(super) fn operands(&self) -> Vec<Operand> {
        let open = self.kernel.grid.iter().filter(|g| g.extent.known().is_none());
        let mut operands: Vec<_> = open.map(|g| Operand::Expr(g.extent.clone())).collect();
        if !self.dims.is_empty() {
            operands.push(Operand::Exprs(self.dims.iter().cloned().map(DimExpr::Dim).collect()));
        }
        let arguments = self.prefetch.iter().chain(&self.arrays).filter(|p| p.role != Role::Output);
        operands.extend(arguments.map(|p| Operand::Argument(p.name.to_string())));
        operands
    }

    /// The results of the custom call.
    pub(super) fn results(&self) -> Vec<String> {
        let results = self.arrays.iter().filter(|p| p.role == Role::Output);
        results.map(|p| p.name.to_string()).collect()
    }

    /// Grid extents; a kernel without a grid runs one step.
    fn bounds(&self) -> Vec<i64> {
        match self.kernel.grid.as_slice() {
            [] => vec![1],
            grid => grid.iter().map(|g| g.extent.known().unwrap_or(DYNAMIC_BOUND)).collect(),
        }
    }

    /// Types of the grid indices and of the scalar-prefetch arguments, which every function takes first.
    pub(super) fn leading<'c>(&self, context: &'c Context) -> Fallible<Vec<Type<'c>>> {
        let mut out = vec![types::integer(context, 32); self.bounds().len()];
        if !self.dims.is_empty() {
            let dims = RefType {
                elem: Elem::Data(DType::I32),
                shape: vec![Extent::Static(self.dims.len())],
                space: MemorySpace::Smem,
            };
            out.extend(types::memref(context, &dims));
        }
        for p in &self.prefetch {
            out.push(self.argument(context, p)?);
        }
        Ok(out)
    }

    fn argument<'c>(&self, context: &'c Context, p: &Param) -> Fallible<Type<'c>> {
        let bad = |what: String| problem(self.kernel, p.span, "K0602", what);
        let Some(crate::ir::Type::Ref(r)) = self.kernel.values.get(p.value.0 as usize).map(|v| &v.ty) else {
            return Err(bad(format!("`{}` is not a ref", p.name)));
        };
        let open = |e: &&Extent| e.known().is_none();
        let refused = match (r.space, p.role) {
            (MemorySpace::Any, _) => None,
            // Strides do not depend on the outermost length.
            (MemorySpace::Smem, Role::Prefetch) => r.shape.iter().skip(1).find(open),
            _ => r.shape.iter().find(open),
        };
        if refused.is_some() {
            let text = format!("`{}` has a symbolic extent, but lies in {}", p.name, r.space.mosaic());
            return Err(problem(self.kernel, p.span, "K0601", text)
                .help("give it a window, or leave it in HBM (only there may any extent be symbolic)"));
        }
        types::memref(context, r).ok_or_else(|| bad(format!("`{}` is too large", p.name)))
    }

    /// Makes the kernel function and its index functions; what is left is the body.
    pub(super) fn declare<'c, 'a>(
        &self,
        context: &'c Context,
        module: BlockRef<'c, 'a>,
    ) -> Fallible<Function<'c, 'a, 'k>> {
        let mut inputs = self.leading(context)?;
        for p in self.arrays.iter().chain(&self.scratch) {
            inputs.push(self.argument(context, p)?);
        }
        let semantics: Vec<_> = match self.kernel.grid.as_slice() {
            [] => vec!["arbitrary"],
            grid => grid
                .iter()
                .map(|g| match g.semantics {
                    Semantics::Parallel => "parallel",
                    Semantics::Arbitrary => "arbitrary",
                })
                .collect(),
        };
        let parse = |text: String| {
            types::parse(context, &text).ok_or_else(|| problem(self.kernel, self.kernel.span, "K0602", text))
        };
        let semantics: Fallible<Vec<_>> =
            semantics.into_iter().map(|s| parse(format!("#tpu.dimension_semantics<{s}>"))).collect();
        let windows: Fallible<Vec<_>> = (0..self.arrays.len()).map(|i| self.window(context, i)).collect();
        let prefetch = self.prefetch.len() + usize::from(!self.dims.is_empty());
        let attributes = [
            ("dimension_semantics", types::array(context, &semantics?)),
            ("iteration_bounds", types::i64s(context, &self.bounds())),
            ("scalar_prefetch", types::i64(context, prefetch as i64)),
            ("scratch_operands", types::i64(context, self.scratch.len() as i64)),
            ("tpu.core_type", parse("#tpu.core_type<tc>".into())?),
            ("window_params", types::array(context, &windows?)),
        ];
        let entry = self.function(context, module, "main", &inputs, &[], &attributes)?;
        let body = self.enter(context, entry)?;
        for (i, p) in self.arrays.iter().enumerate() {
            if is_windowed(self.kernel, p) {
                self.index_function(context, module, i, p)?;
            }
        }
        Ok(body)
    }

    /// The function's arguments, bound to the parameters.
    pub(super) fn enter<'c, 'a>(
        &self,
        context: &'c Context,
        entry: BlockRef<'c, 'a>,
    ) -> Fallible<Function<'c, 'a, 'k>> {
        let mut f = Function::new(context, self.kernel, entry);
        let mut next = 0;
        let mut take = |f: &Function<'c, 'a, 'k>| -> Fallible<Value<'c, 'a>> {
            next += 1;
            f.argument(next - 1)
        };
        for _ in self.bounds() {
            let v = take(&f)?;
            f.grid.push(v);
        }
        if !self.dims.is_empty() {
            let v = take(&f)?;
            f.set_dims(v);
        }
        let arrays = self.arrays.iter().chain(&self.scratch);
        for p in self.prefetch.iter().chain(arrays) {
            // An index function ends after the prefetch arrays.
            if next == entry.argument_count() {
                break;
            }
            let v = f.argument(next)?;
            next += 1;
            f.set(p.value, v);
        }
        Ok(f)
    }

    /// Makes a function and yields its first block.
    pub(super) fn function<'c, 'a>(
        &self,
        context: &'c Context,
        module: BlockRef<'c, 'a>,
        name: &str,
        inputs: &[Type<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Fallible<BlockRef<'c, 'a>> {
        let at = location(context, self.kernel, self.kernel.span);
        let arguments: Vec<_> = inputs.iter().map(|t| (*t, at)).collect();
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        let own = [
            ("function_type", types::function(context, inputs, results)),
            ("sym_name", types::string(context, name)),
        ];
        let attributes: Vec<_> =
            own.iter().chain(attributes).map(|(k, v)| (Identifier::new(context, k), *v)).collect();
        let bad = |e: String| problem(self.kernel, self.kernel.span, "K0602", e);
        let op = melior::ir::operation::OperationBuilder::new("func.func", at)
            .add_attributes(&attributes)
            .add_regions_vec(vec![region])
            .build()
            .map_err(|e| bad(format!("MLIR does not make the function `{name}`: {e}")))?;
        module
            .append_operation(op)
            .region(0)
            .ok()
            .and_then(|r| r.first_block())
            .ok_or_else(|| bad(format!("the function `{name}` has no body")))
    }
}
