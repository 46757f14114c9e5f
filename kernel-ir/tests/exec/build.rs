//! Builds kernels by hand, without the DSL: any shape, also those that no TPU takes.

use kernel_ir::diag::SourceLoc;
use kernel_ir::exec::{Array, Options, Outputs, run};
use kernel_ir::ir::{
    ArrayType, Block, DType, DimExpr, Elem, Extent, GridAxis, Kernel, Literal, MemorySpace, Offset, Op,
    OpKind, Param, RefType, Role, Semantics, Size, Span, TileType, Type, Value, ValueInfo, Window,
    WindowUnit,
};

/// A kernel that is being built. Line 1 of `kernel.rs` is its launch; each op is on a line of its own.
pub(crate) struct Build {
    kernel: Kernel,
    open: Vec<Block>,
}

impl Build {
    pub(crate) fn new(grid: &[(DimExpr, Semantics)]) -> Self {
        let axis = |(extent, semantics): &(DimExpr, Semantics)| GridAxis {
            extent: extent.clone(),
            semantics: *semantics,
        };
        let kernel = Kernel {
            name: "under_test".into(),
            span: Span(0),
            grid: grid.iter().map(axis).collect(),
            params: vec![],
            body: Block::default(),
            demands: vec![],
            values: vec![],
            spans: vec![SourceLoc { file: "kernel.rs".into(), line: 1, column: 1 }],
        };
        Self { kernel, open: vec![Block::default()] }
    }

    /// A kernel of one step.
    pub(crate) fn once() -> Self {
        Self::new(&[])
    }

    pub(crate) fn kernel(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    pub(crate) fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().unwrap();
        assert!(self.open.is_empty(), "a block is still open");
        self.kernel
    }

    fn span(&mut self) -> Span {
        let line = self.kernel.spans.len() as u32 + 1;
        self.kernel.spans.push(SourceLoc { file: "kernel.rs".into(), line, column: 1 });
        Span(line - 1)
    }

    pub(crate) fn value(&mut self, ty: Type) -> Value {
        let span = self.span();
        self.kernel.values.push(ValueInfo { ty, span });
        Value(self.kernel.values.len() as u32 - 1)
    }

    pub(crate) fn effect(&mut self, kind: OpKind) {
        let span = self.span();
        self.open.last_mut().unwrap().ops.push(Op { kind, results: vec![], span });
    }

    pub(crate) fn op(&mut self, ty: Type, kind: OpKind) -> Value {
        let v = self.value(ty);
        self.results(&[v], kind);
        v
    }

    pub(crate) fn results(&mut self, results: &[Value], kind: OpKind) {
        let span = self.span();
        self.open.last_mut().unwrap().ops.push(Op { kind, results: results.to_vec(), span });
    }

    /// A block with these arguments; `f` says what it yields.
    pub(crate) fn block(
        &mut self,
        args: &[Type],
        f: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Block {
        let args: Vec<Value> = args.iter().map(|t| self.value(t.clone())).collect();
        self.open.push(Block { args: args.clone(), ..Block::default() });
        let results = f(self, &args);
        let mut block = self.open.pop().unwrap();
        block.results = results;
        block
    }

    pub(crate) fn tile_type(&self, v: Value) -> TileType {
        match self.kernel.ty(v) {
            Type::Tile(t) => t.clone(),
            other => panic!("{other}"),
        }
    }

    fn param(&mut self, name: &str, role: Role, elem: Elem, space: MemorySpace, shape: Vec<Extent>) -> Value {
        let value = self.value(Type::Ref(RefType { elem, shape, space }));
        let span = self.span();
        self.kernel.params.push(Param { name: name.into(), role, value, array: None, window: None, span });
        value
    }

    /// An array seen through a window.
    pub(crate) fn window(
        &mut self,
        (name, role): (&str, Role),
        dtype: DType,
        shape: &[DimExpr],
        block: &[usize],
        index: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Value {
        let extents = block.iter().map(|n| Extent::Static(*n)).collect();
        let v = self.param(name, role, Elem::Data(dtype), MemorySpace::Vmem, extents);
        let ids = vec![Type::Scalar(DType::I32); self.kernel.grid.len()];
        let index = self.block(&ids, index);
        let span = self.span();
        let p = self.kernel.params.last_mut().unwrap();
        p.array = Some(ArrayType { dtype, shape: shape.to_vec() });
        p.window = Some(Window { block: block.to_vec(), index, unit: WindowUnit::Blocks, span });
        v
    }

    /// A whole array in a memory space.
    pub(crate) fn array(
        &mut self,
        (name, role): (&str, Role),
        dtype: DType,
        space: MemorySpace,
        shape: &[DimExpr],
    ) -> Value {
        let extent = |e: &DimExpr| e.known().map_or(Extent::Dynamic, |n| Extent::Static(n as usize));
        let extents = shape.iter().map(extent).collect();
        let v = self.param(name, role, Elem::Data(dtype), space, extents);
        self.kernel.params.last_mut().unwrap().array = Some(ArrayType { dtype, shape: shape.to_vec() });
        v
    }

    pub(crate) fn scratch(&mut self, name: &str, dtype: DType, space: MemorySpace, shape: &[usize]) -> Value {
        let shape = shape.iter().map(|n| Extent::Static(*n)).collect();
        self.param(name, Role::Scratch, Elem::Data(dtype), space, shape)
    }

    pub(crate) fn semaphore(&mut self, name: &str) -> Value {
        self.param(name, Role::Scratch, Elem::DmaSemaphore, MemorySpace::Semaphore, vec![])
    }

    /// Several semaphores for copies.
    pub(crate) fn semaphores(&mut self, name: &str, n: usize) -> Value {
        let shape = vec![Extent::Static(n)];
        self.param(name, Role::Scratch, Elem::DmaSemaphore, MemorySpace::Semaphore, shape)
    }

    /// A counting semaphore.
    pub(crate) fn counter(&mut self, name: &str) -> Value {
        self.param(name, Role::Scratch, Elem::Semaphore, MemorySpace::Semaphore, vec![])
    }

    /// A ref made of another one: the same place, seen otherwise.
    pub(crate) fn seen_as(&mut self, base: Value, dtype: DType, shape: &[usize], kind: OpKind) -> Value {
        let mut ty = self.kernel.ref_ty(base).clone();
        ty.elem = Elem::Data(dtype);
        ty.shape = shape.iter().map(|n| Extent::Static(*n)).collect();
        self.op(Type::Ref(ty), kind)
    }

    pub(crate) fn reshaped(&mut self, base: Value, shape: &[usize]) -> Value {
        let dtype = self.kernel.ref_ty(base).dtype().unwrap();
        self.seen_as(base, dtype, shape, OpKind::ReshapeRef { base })
    }

    pub(crate) fn bitcast_ref(&mut self, base: Value, dtype: DType, shape: &[usize]) -> Value {
        self.seen_as(base, dtype, shape, OpKind::BitcastRef { base })
    }

    pub(crate) fn int(&mut self, x: i64) -> Value {
        self.op(Type::Scalar(DType::I32), OpKind::Constant(Literal::Int(x)))
    }

    pub(crate) fn program_id(&mut self, axis: usize) -> Value {
        self.op(Type::Scalar(DType::I32), OpKind::ProgramId { axis })
    }

    pub(crate) fn splat(&mut self, dtype: DType, shape: &[usize], x: f64) -> Value {
        self.op(Type::tile(dtype, shape), OpKind::Constant(Literal::of(dtype, x)))
    }

    /// All of a ref of static shape.
    pub(crate) fn load(&mut self, base: Value) -> Value {
        let ty = self.kernel.ref_ty(base);
        let (dtype, shape) = (ty.dtype().unwrap(), ty.static_shape().unwrap());
        let offsets = vec![Offset::Const(0); shape.len()];
        self.op(Type::tile(dtype, shape), OpKind::Load { base, offsets })
    }

    /// Into all of a ref.
    pub(crate) fn store(&mut self, base: Value, value: Value) {
        let offsets = vec![Offset::Const(0); self.kernel.ref_ty(base).shape.len()];
        self.effect(OpKind::Store { base, offsets, value });
    }

    pub(crate) fn slice(&mut self, base: Value, offsets: &[Offset], sizes: &[Size]) -> Value {
        let mut ty = self.kernel.ref_ty(base).clone();
        let extent = |s: &Size| if let Size::Const(n) = s { Extent::Static(*n) } else { Extent::Dynamic };
        ty.shape = sizes.iter().map(extent).collect();
        let (offsets, sizes) = (offsets.to_vec(), sizes.to_vec());
        self.op(Type::Ref(ty), OpKind::Slice { base, offsets, sizes })
    }

    pub(crate) fn load_scalar(&mut self, base: Value, at: Offset) -> Value {
        let dtype = self.kernel.ref_ty(base).dtype().unwrap();
        self.op(Type::Scalar(dtype), OpKind::LoadScalar { base, offsets: vec![at] })
    }

    pub(crate) fn store_scalar(&mut self, base: Value, at: Offset, value: Value) {
        self.effect(OpKind::StoreScalar { base, offsets: vec![at], value });
    }
}

/// Builds a kernel of one step over whole arrays in VMEM: named inputs, and the op whose tile becomes output `o`.
pub(crate) fn apply(inputs: &[&Array], op: impl FnOnce(&mut Build, &[Value]) -> Value) -> Array {
    let names = ["x", "y", "z"];
    let mut b = Build::once();
    let refs: Vec<Value> = inputs
        .iter()
        .zip(names)
        .map(|(a, name)| {
            let shape: Vec<DimExpr> = a.shape().iter().map(|n| (*n).into()).collect();
            b.array((name, Role::Input), a.dtype(), MemorySpace::Vmem, &shape)
        })
        .collect();
    let loaded: Vec<Value> = refs.iter().map(|r| b.load(*r)).collect();
    let result = op(&mut b, &loaded);
    let ty = b.tile_type(result);
    let shape: Vec<DimExpr> = ty.shape.iter().map(|n| (*n).into()).collect();
    let o = b.array(("o", Role::Output), ty.dtype, MemorySpace::Vmem, &shape);
    b.store(o, result);
    let kernel = b.finish();
    let named: Vec<(&str, &Array)> = names.into_iter().zip(inputs.iter().copied()).collect();
    run(&kernel, &named, &Options::default()).unwrap()["o"].clone()
}

/// Runs on one thread.
pub(crate) fn run_serial(kernel: &Kernel, inputs: &[(&str, &Array)]) -> Result<Outputs, String> {
    let options = Options { threads: Some(1), ..Options::default() };
    run(kernel, inputs, &options).map_err(|e| e.to_string())
}

/// Numbers from -4 to 4 in steps of 1/8, as good as random.
pub(crate) fn numbers(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let n = shape.iter().product();
    let v: Vec<f64> = (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 65) as f64 / 8.0 - 4.0
        })
        .collect();
    Array::from_f64(dtype, shape, &v).unwrap()
}
