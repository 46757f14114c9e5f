//! Builds kernels op by op, also ones that the DSL would refuse.

use std::sync::Arc;

use kernel_ir::diag::SourceLoc;
use kernel_ir::ir::*;
use kernel_ir::verify::{Facts, verify};

/// A kernel in the making; operations go to the innermost open block.
pub(crate) struct Builder {
    pub(crate) kernel: Kernel,
    open: Vec<Block>,
}

pub(crate) const F32: DType = DType::F32;
pub(crate) const BF16: DType = DType::Bf16;
pub(crate) const I32: DType = DType::I32;
pub(crate) const I8: DType = DType::I8;

pub(crate) fn scalar(d: DType) -> Type {
    Type::Scalar(d)
}

pub(crate) fn tile(d: DType, shape: &[usize]) -> Type {
    Type::tile(d, shape)
}

pub(crate) fn vmem(d: DType, shape: &[usize]) -> RefType {
    RefType {
        elem: Elem::Data(d),
        shape: shape.iter().map(|n| Extent::Static(*n)).collect(),
        space: MemorySpace::Vmem,
    }
}

/// `"m"` is a dim, `"512"` a number.
pub(crate) fn size(text: &str) -> DimExpr {
    text.parse().map_or_else(|_| DimExpr::dim(text), DimExpr::Const)
}

pub(crate) fn sizes(text: &str) -> Vec<DimExpr> {
    text.split_whitespace().map(size).collect()
}

impl Builder {
    /// A kernel with a grid such as `"par 4 seq m"`.
    pub(crate) fn new(grid: &str) -> Self {
        let words: Vec<_> = grid.split_whitespace().collect();
        let axis = |w: &[&str]| GridAxis {
            semantics: if w[0] == "par" { Semantics::Parallel } else { Semantics::Arbitrary },
            extent: size(w[1]),
        };
        let kernel = Kernel {
            name: "k".to_owned(),
            span: Span(0),
            grid: words.chunks(2).map(axis).collect(),
            params: vec![],
            body: Block::default(),
            demands: vec![],
            values: vec![],
            spans: vec![SourceLoc { file: "k.rs".into(), line: 1, column: 1 }],
        };
        Self { kernel, open: vec![Block::default()] }
    }

    pub(crate) fn span(&mut self) -> Span {
        let n = self.kernel.spans.len() as u32;
        self.kernel.spans.push(SourceLoc { file: "k.rs".into(), line: n + 1, column: 1 });
        Span(n)
    }

    pub(crate) fn value(&mut self, ty: Type) -> Value {
        let span = self.span();
        self.kernel.values.push(ValueInfo { ty, span });
        Value(self.kernel.values.len() as u32 - 1)
    }

    /// An operation with one result.
    pub(crate) fn op(&mut self, kind: OpKind, ty: Type) -> Value {
        let v = self.value(ty);
        let span = self.kernel.values[v.0 as usize].span;
        self.open.last_mut().unwrap().ops.push(Op { kind, results: vec![v], span });
        v
    }

    pub(crate) fn push(&mut self, op: Op) {
        self.open.last_mut().unwrap().ops.push(op);
    }

    pub(crate) fn effect(&mut self, kind: OpKind) {
        let span = self.span();
        self.open.last_mut().unwrap().ops.push(Op { kind, results: vec![], span });
    }

    pub(crate) fn region(&mut self, f: impl FnOnce(&mut Self)) -> Block {
        self.open.push(Block::default());
        f(self);
        self.open.pop().unwrap()
    }

    pub(crate) fn param(
        &mut self,
        name: &str,
        role: Role,
        ty: RefType,
        array: Option<&str>,
        window: Option<Window>,
    ) -> Value {
        let dtype = ty.dtype();
        let value = self.value(Type::Ref(ty));
        let array = array.map(|a| ArrayType { dtype: dtype.unwrap(), shape: sizes(a) });
        let span = self.span();
        self.kernel.params.push(Param { name: name.into(), role, value, array, window, span });
        value
    }

    /// A window whose map yields what `f` computes of the grid indices.
    pub(crate) fn window(
        &mut self,
        block: &[usize],
        f: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Window {
        let args: Vec<_> = (0..self.kernel.grid.len()).map(|_| self.value(scalar(I32))).collect();
        let mut results = vec![];
        let mut index = self.region(|b| results = f(b, &args));
        (index.args, index.results) = (args, results);
        Window { block: block.to_vec(), index, unit: WindowUnit::Blocks, span: self.span() }
    }

    /// A windowed `f32` parameter; the map is a list of grid axes or numbers, e.g. `"i0 0"`.
    pub(crate) fn block(&mut self, name: &str, role: Role, array: &str, block: &[usize], map: &str) -> Value {
        let w = self.window(block, |b, g| {
            map.split_whitespace()
                .map(|m| {
                    m.strip_prefix('i')
                        .map_or_else(|| b.int(m.parse().unwrap()), |i| g[i.parse::<usize>().unwrap()])
                })
                .collect()
        });
        self.param(name, role, vmem(F32, block), Some(array), Some(w))
    }

    pub(crate) fn scratch(&mut self, name: &str, d: DType, shape: &[usize]) -> Value {
        self.param(name, Role::Scratch, vmem(d, shape), None, None)
    }

    pub(crate) fn semaphores(&mut self, name: &str, n: usize) -> Value {
        let ty = RefType {
            elem: Elem::DmaSemaphore,
            shape: vec![Extent::Static(n)],
            space: MemorySpace::Semaphore,
        };
        self.param(name, Role::Scratch, ty, None, None)
    }

    /// A whole array in HBM.
    pub(crate) fn hbm(&mut self, name: &str, role: Role, d: DType, array: &str) -> Value {
        let extent = |e: DimExpr| e.known().map_or(Extent::Dynamic, |n| Extent::Static(n as usize));
        let shape = sizes(array).into_iter().map(extent).collect();
        let ty = RefType { elem: Elem::Data(d), shape, space: MemorySpace::Any };
        self.param(name, role, ty, Some(array), None)
    }

    pub(crate) fn prefetch(&mut self, name: &str, n: &str) -> Value {
        let extent = size(n).known().map_or(Extent::Dynamic, |n| Extent::Static(n as usize));
        let ty = RefType { elem: Elem::Data(I32), shape: vec![extent], space: MemorySpace::Smem };
        self.param(name, Role::Prefetch, ty, Some(n), None)
    }

    pub(crate) fn int(&mut self, n: i64) -> Value {
        self.op(OpKind::Constant(Literal::Int(n)), scalar(I32))
    }

    pub(crate) fn program_id(&mut self, axis: usize) -> Value {
        self.op(OpKind::ProgramId { axis }, scalar(I32))
    }

    pub(crate) fn binary(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let ty = self.kernel.ty(x).clone();
        self.op(OpKind::Binary { op, x, y }, ty)
    }

    pub(crate) fn times(&mut self, x: Value, n: i64) -> Value {
        let n = self.int(n);
        self.binary(Binary::Mul, x, n)
    }

    pub(crate) fn get(&mut self, base: Value, index: Value) -> Value {
        self.op(OpKind::LoadScalar { base, offsets: vec![Offset::Value(index)] }, scalar(I32))
    }

    pub(crate) fn load(&mut self, base: Value, offsets: &[Offset], shape: &[usize]) -> Value {
        let d = self.kernel.ty(base).dtype().unwrap();
        self.op(OpKind::Load { base, offsets: offsets.to_vec() }, tile(d, shape))
    }

    pub(crate) fn zeros(&mut self, d: DType, shape: &[usize]) -> Value {
        let l = if d.is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        self.op(OpKind::Constant(l), tile(d, shape))
    }

    pub(crate) fn store(&mut self, base: Value, offsets: &[Offset], value: Value) {
        self.effect(OpKind::Store { base, offsets: offsets.to_vec(), value });
    }

    /// Stores zeros to all of a ref.
    pub(crate) fn clear(&mut self, base: Value) {
        let ty = self.kernel.ref_ty(base).clone();
        let shape = ty.static_shape().unwrap();
        let zeros = self.zeros(ty.dtype().unwrap(), &shape);
        self.store(base, &vec![Offset::Const(0); shape.len()], zeros);
    }

    /// Loads all of a ref.
    pub(crate) fn read(&mut self, base: Value) -> Value {
        let shape = self.kernel.ref_ty(base).static_shape().unwrap();
        self.load(base, &vec![Offset::Const(0); shape.len()], &shape)
    }

    pub(crate) fn slice(&mut self, base: Value, offsets: &[Offset], lens: &[Size]) -> Value {
        let mut ty = self.kernel.ref_ty(base).clone();
        ty.shape = lens
            .iter()
            .map(|s| if let Size::Const(n) = s { Extent::Static(*n) } else { Extent::Dynamic })
            .collect();
        let (offsets, sizes) = (offsets.to_vec(), lens.to_vec());
        self.op(OpKind::Slice { base, offsets, sizes }, Type::Ref(ty))
    }

    pub(crate) fn squeeze(&mut self, base: Value, axes: &[usize]) -> Value {
        let mut ty = self.kernel.ref_ty(base).clone();
        let left = ty.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, e)| *e).collect();
        ty.shape = left;
        self.op(OpKind::Squeeze { base, axes: axes.to_vec() }, Type::Ref(ty))
    }

    /// One semaphore of several.
    pub(crate) fn slot(&mut self, sem: Value, i: Offset) -> Value {
        let one = self.slice(sem, &[i], &[Size::Const(1)]);
        self.squeeze(one, &[0])
    }

    pub(crate) fn when(&mut self, cond: Value, f: impl FnOnce(&mut Self)) {
        let then = self.region(f);
        self.effect(OpKind::If { cond, then, otherwise: Block::default() });
    }

    pub(crate) fn flag(&mut self, x: Value) -> Value {
        let zero = self.int(0);
        self.op(OpKind::Compare { op: Compare::Eq, x, y: zero }, scalar(DType::Bool))
    }

    /// `for i in lo..hi`, carrying nothing.
    pub(crate) fn range(&mut self, lo: Value, hi: Value, f: impl FnOnce(&mut Self, Value)) {
        let i = self.value(scalar(I32));
        let mut body = self.region(|b| f(b, i));
        body.args = vec![i];
        self.effect(OpKind::For { lo, hi, init: vec![], body });
    }

    pub(crate) fn demand(&mut self, left: DimExpr, compare: DimCompare, right: i64) {
        self.kernel.demands.push(Demand { compare, left, right: DimExpr::Const(right) });
    }

    pub(crate) fn finish(mut self) -> Kernel {
        assert_eq!(self.open.len(), 1, "a region is still open");
        self.kernel.body = self.open.pop().unwrap();
        self.kernel
    }

    /// Codes of all findings, warnings too.
    pub(crate) fn codes(self) -> Vec<&'static str> {
        codes(&self.finish())
    }

    /// Concise text of all findings.
    pub(crate) fn messages(self) -> String {
        match verify(&self.finish()) {
            Ok(facts) => facts.warnings.concise(),
            Err(report) => report.concise(),
        }
    }

    /// Facts of a kernel that passes without warnings.
    #[track_caller]
    pub(crate) fn facts(self) -> Facts {
        let kernel = self.finish();
        let facts = verify(&kernel).unwrap_or_else(|r| panic!("{r}\n{kernel}"));
        assert!(facts.warnings.is_empty(), "{}", facts.warnings);
        facts
    }
}

pub(crate) fn codes(kernel: &Kernel) -> Vec<&'static str> {
    let report = verify(kernel).map_or_else(|r| r, |f| f.warnings);
    report.diagnostics.iter().map(|d| d.code).collect()
}

/// `x` and `o`, blocks of `[8, 128]` in a grid of one step, with `o` written after `f` has run.
pub(crate) fn with_blocks(f: impl FnOnce(&mut Builder, Value, Value)) -> Builder {
    let mut b = Builder::new("seq 1");
    let x = b.block("x", Role::Input, "8 128", &[8, 128], "0 0");
    let o = b.block("o", Role::Output, "8 128", &[8, 128], "0 0");
    let loaded = b.read(x);
    f(&mut b, x, o);
    b.store(o, &[Offset::Const(0), Offset::Const(0)], loaded);
    b
}

pub(crate) fn dim_name(n: &str) -> Arc<str> {
    n.into()
}
