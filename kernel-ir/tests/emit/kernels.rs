//! Whole kernels in IR: a matmul over any m, k, n, and a gather of rows by DMA.

use kernel_ir::ir::{
    Binary, Block, Compare, DType, DimExpr, DimOp, DotDims, Kernel, MemorySpace, Offset, OpKind, Precision,
    Role, Semantics, Type,
};

use crate::build::Builder;

const I32: Type = Type::Scalar(DType::I32);
const BOOL: Type = Type::Scalar(DType::Bool);

/// `out[m, n] = x[m, k] @ w[k, n]` with symbolic m, k, n, which the last step masks.
pub(crate) fn matmul(dtype: DType, bm: usize, bn: usize, bk: usize) -> Kernel {
    let mut b = Builder::new("matmul");
    let blocks = |d: &str, n: usize| DimExpr::op(DimOp::CeilDiv, DimExpr::dim(d), n.into());
    b.axis(blocks("m", bm), Semantics::Parallel)
        .axis(blocks("n", bn), Semantics::Parallel)
        .axis(blocks("k", bk), Semantics::Arbitrary);
    let x = b.windowed("x", Role::Input, dtype, &["m", "k"], &[bm, bk], |_, g| vec![g[0], g[2]]);
    let w = b.windowed("w", Role::Input, dtype, &["k", "n"], &[bk, bn], |_, g| vec![g[2], g[1]]);
    let out = b.windowed("out", Role::Output, dtype, &["m", "n"], &[bm, bn], |_, g| vec![g[0], g[1]]);
    let acc = b.scratch("acc", DType::F32, &[bm, bn], MemorySpace::Vmem);

    let step = b.op(OpKind::ProgramId { axis: 2 }, I32);
    let zero = b.int(0);
    let first = compare(&mut b, Compare::Eq, step, zero);
    when(&mut b, first, |b| {
        let z = b.fill(DType::F32, &[bm, bn], 0.0);
        b.store(acc, z);
    });

    let k = b.op(OpKind::Dim { name: "k".into() }, I32);
    let width = b.int(bk as i64);
    let start = b.op(binary(Binary::Mul, step, width), I32);
    let left = b.op(binary(Binary::Sub, k, start), I32);
    let lhs = masked(&mut b, x, dtype, &[bm, bk], 1, left);
    let rhs = masked(&mut b, w, dtype, &[bk, bn], 0, left);
    let tile = Type::tile(DType::F32, [bm, bn]);
    let product = b.op(
        OpKind::Dot { lhs, rhs, dims: DotDims { lhs: 1, rhs: 0 }, precision: Precision::Highest },
        tile.clone(),
    );
    let before = b.load(acc, DType::F32, &[bm, bn]);
    let sum = b.op(binary(Binary::Add, before, product), tile);
    b.store(acc, sum);

    let steps = b.op(OpKind::NumPrograms { axis: 2 }, I32);
    let one = b.int(1);
    let end = b.op(binary(Binary::Sub, steps, one), I32);
    let last = compare(&mut b, Compare::Eq, step, end);
    when(&mut b, last, |b| {
        let sum = b.load(acc, DType::F32, &[bm, bn]);
        let sum = match dtype {
            DType::F32 => sum,
            _ => b.op(OpKind::Cast { x: sum }, Type::tile(dtype, [bm, bn])),
        };
        b.store(out, sum);
    });
    b.finish()
}

pub(crate) fn binary(op: Binary, x: kernel_ir::ir::Value, y: kernel_ir::ir::Value) -> OpKind {
    OpKind::Binary { op, x, y }
}

pub(crate) fn compare(
    b: &mut Builder,
    op: Compare,
    x: kernel_ir::ir::Value,
    y: kernel_ir::ir::Value,
) -> kernel_ir::ir::Value {
    b.op(OpKind::Compare { op, x, y }, BOOL)
}

pub(crate) fn when(b: &mut Builder, cond: kernel_ir::ir::Value, f: impl FnOnce(&mut Builder)) {
    let then = b.block(&[], |b, _| {
        f(b);
        vec![]
    });
    b.effect(OpKind::If { cond, then, otherwise: Block::default() });
}

/// The block of `base` with zeros from position `left` of `axis` on.
fn masked(
    b: &mut Builder,
    base: kernel_ir::ir::Value,
    dtype: DType,
    shape: &[usize],
    axis: usize,
    left: kernel_ir::ir::Value,
) -> kernel_ir::ir::Value {
    let x = b.load(base, dtype, shape);
    let ints = Type::tile(DType::I32, shape);
    let at = b.op(OpKind::Iota { axis }, ints.clone());
    let left = b.op(OpKind::Broadcast { x: left }, ints);
    let mask = b.op(OpKind::Compare { op: Compare::Lt, x: at, y: left }, Type::tile(DType::Bool, shape));
    let zero = b.fill(dtype, shape, 0.0);
    b.op(OpKind::Select { mask, x, y: zero }, Type::tile(dtype, shape))
}

/// `out[i] = x[table[i]]` by blocks of 8 rows: windows that a prefetched array of symbolic length steers.
pub(crate) fn lookup() -> Kernel {
    let mut b = Builder::new("lookup");
    b.axis(DimExpr::dim("n"), Semantics::Arbitrary);
    let table = b.whole("table", Role::Prefetch, DType::I32, &["n"], MemorySpace::Smem);
    let x = b.windowed("x", Role::Input, DType::F32, &["m", "128"], &[8, 128], |b, g| {
        let offsets = vec![Offset::Value(g[0])];
        let row = b.op(OpKind::LoadScalar { base: table, offsets }, I32);
        let steps = b.op(OpKind::NumPrograms { axis: 0 }, I32);
        let last = b.op(OpKind::Dim { name: "m".into() }, I32);
        let row = b.op(binary(Binary::Min, row, steps), I32);
        let row = b.op(binary(Binary::Min, row, last), I32);
        vec![row, b.int(0)]
    });
    let out =
        b.windowed("out", Role::Output, DType::F32, &["l", "128"], &[8, 128], |b, g| vec![g[0], b.int(0)]);
    let v = b.load(x, DType::F32, &[8, 128]);
    b.store(out, v);
    b.finish()
}
