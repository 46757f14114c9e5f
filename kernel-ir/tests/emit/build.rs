//! A small builder of IR, for kernels that no DSL would record: one op at a time, and wrong ones.

use kernel_ir::diag::SourceLoc;
use kernel_ir::ir::{
    ArrayType, Block, DType, DimExpr, Elem, Extent, GridAxis, Kernel, Literal, MemorySpace, Offset, Op,
    OpKind, Param, RefType, Role, Semantics, Span, Type, Value, ValueInfo, Window, WindowUnit,
};

pub(crate) struct Builder {
    pub(crate) kernel: Kernel,
    open: Vec<Block>,
    line: u32,
}

/// An array extent from a number or a dim's name.
pub(crate) fn extent(text: &str) -> DimExpr {
    text.parse().map_or_else(|_| DimExpr::dim(text), DimExpr::Const)
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            kernel: Kernel {
                name: name.into(),
                span: Span(0),
                grid: vec![],
                params: vec![],
                body: Block::default(),
                demands: vec![],
                values: vec![],
                spans: vec![SourceLoc { file: "kernels/test.rs".into(), line: 1, column: 1 }],
            },
            open: vec![Block::default()],
            line: 1,
        }
    }

    pub(crate) fn axis(&mut self, extent: DimExpr, semantics: Semantics) -> &mut Self {
        self.kernel.grid.push(GridAxis { extent, semantics });
        self
    }

    fn span(&mut self) -> Span {
        self.line += 1;
        self.kernel.spans.push(SourceLoc { file: "kernels/test.rs".into(), line: self.line, column: 5 });
        Span(self.kernel.spans.len() as u32 - 1)
    }

    pub(crate) fn fresh(&mut self, ty: Type) -> Value {
        let span = self.span();
        self.kernel.values.push(ValueInfo { ty, span });
        Value(self.kernel.values.len() as u32 - 1)
    }

    pub(crate) fn param(
        &mut self,
        name: &str,
        role: Role,
        ty: RefType,
        array: Option<ArrayType>,
        window: Option<Window>,
    ) -> Value {
        let value = self.fresh(Type::Ref(ty));
        let span = self.span();
        self.kernel.params.push(Param { name: name.into(), role, value, array, window, span });
        value
    }

    /// A windowed array in VMEM; `index` gives a block index an axis from the grid indices.
    pub(crate) fn windowed(
        &mut self,
        name: &str,
        role: Role,
        dtype: DType,
        array: &[&str],
        block: &[usize],
        index: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Value {
        let axes = vec![Type::Scalar(DType::I32); self.kernel.grid.len()];
        let index = self.block(&axes, index);
        let ty = data(dtype, block, MemorySpace::Vmem);
        let array = ArrayType { dtype, shape: array.iter().map(|e| extent(e)).collect() };
        let span = self.span();
        let window = Window { block: block.to_vec(), index, unit: WindowUnit::Blocks, span };
        self.param(name, role, ty, Some(array), Some(window))
    }

    /// A whole array as the kernel sees it, in any space.
    pub(crate) fn whole(
        &mut self,
        name: &str,
        role: Role,
        dtype: DType,
        array: &[&str],
        space: MemorySpace,
    ) -> Value {
        let shape: Vec<_> = array.iter().map(|e| extent(e)).collect();
        let ty = RefType {
            elem: Elem::Data(dtype),
            shape: shape
                .iter()
                .map(|e| e.known().map_or(Extent::Dynamic, |n| Extent::Static(n as usize)))
                .collect(),
            space,
        };
        self.param(name, role, ty, Some(ArrayType { dtype, shape }), None)
    }

    pub(crate) fn scratch(&mut self, name: &str, dtype: DType, shape: &[usize], space: MemorySpace) -> Value {
        self.param(name, Role::Scratch, data(dtype, shape, space), None, None)
    }

    pub(crate) fn semaphores(&mut self, name: &str, n: usize) -> Value {
        let ty = semaphore(&[n]);
        self.param(name, Role::Scratch, ty, None, None)
    }

    pub(crate) fn op(&mut self, kind: OpKind, ty: Type) -> Value {
        let result = self.fresh(ty);
        self.push(kind, vec![result]);
        result
    }

    pub(crate) fn effect(&mut self, kind: OpKind) {
        self.push(kind, vec![]);
    }

    pub(crate) fn push(&mut self, kind: OpKind, results: Vec<Value>) {
        let span = self.span();
        let op = Op { kind, results, span };
        self.open.last_mut().expect("a block is open").ops.push(op);
    }

    pub(crate) fn block(
        &mut self,
        args: &[Type],
        f: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Block {
        let args: Vec<_> = args.iter().map(|t| self.fresh(t.clone())).collect();
        self.open.push(Block::default());
        let results = f(self, &args);
        let mut block = self.open.pop().expect("opened above");
        block.args = args;
        block.results = results;
        block
    }

    pub(crate) fn int(&mut self, n: i64) -> Value {
        self.op(OpKind::Constant(Literal::Int(n)), Type::Scalar(DType::I32))
    }

    pub(crate) fn fill(&mut self, dtype: DType, shape: &[usize], x: f64) -> Value {
        self.op(OpKind::Constant(Literal::of(dtype, x)), Type::tile(dtype, shape))
    }

    pub(crate) fn load(&mut self, base: Value, dtype: DType, shape: &[usize]) -> Value {
        let offsets = vec![Offset::Const(0); shape.len()];
        self.op(OpKind::Load { base, offsets }, Type::tile(dtype, shape))
    }

    pub(crate) fn store(&mut self, base: Value, value: Value) {
        let rank = self.kernel.ty(value).shape().expect("a tile").len();
        let offsets = vec![Offset::Const(0); rank];
        self.effect(OpKind::Store { base, offsets, value });
    }

    pub(crate) fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().expect("the body is open");
        self.kernel
    }
}

pub(crate) fn data(dtype: DType, shape: &[usize], space: MemorySpace) -> RefType {
    RefType { elem: Elem::Data(dtype), shape: shape.iter().map(|n| Extent::Static(*n)).collect(), space }
}

pub(crate) fn semaphore(shape: &[usize]) -> RefType {
    RefType {
        elem: Elem::DmaSemaphore,
        shape: shape.iter().map(|n| Extent::Static(*n)).collect(),
        space: MemorySpace::Semaphore,
    }
}
