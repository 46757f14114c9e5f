//! Views, offsets, copies and control flow, in every element type: one kernel each.

use kernel_ir::ir::{
    Binary, Block, Compare, DType, Kernel, MemorySpace, Offset, OpKind, Role, Size, Type, Value,
};

use crate::build::{Builder, data, semaphore};
use crate::cases::SHAPE;
use crate::kernels::binary;

const I32: Type = Type::Scalar(DType::I32);

pub(crate) fn views() -> Vec<Kernel> {
    let mut out = vec![];
    for d in DType::ALL {
        out.push(copies(d));
        let mut b = Builder::new(&format!("slices_{d}"));
        let x = b.whole("x", Role::Input, d, &["4", "64", "256"], MemorySpace::Vmem);
        let y = b.whole("y", Role::Output, d, &["32", "128"], MemorySpace::Vmem);
        let n = b.whole("n", Role::Input, DType::I32, &["4"], MemorySpace::Smem);
        let offsets = vec![Offset::Const(2)];
        let i = b.op(OpKind::LoadScalar { base: n, offsets }, I32);
        let i = b.op(OpKind::AssumeMultiple { x: i, multiple: 32 }, I32);
        let part = b.op(
            OpKind::Slice {
                base: x,
                offsets: vec![Offset::Const(1), Offset::Value(i), Offset::Const(128)],
                sizes: vec![Size::Const(1), Size::Const(32), Size::Const(128)],
            },
            Type::Ref(data(d, &[1, 32, 128], MemorySpace::Vmem)),
        );
        let flat =
            b.op(OpKind::Squeeze { base: part, axes: vec![0] }, Type::Ref(data(d, SHAPE, MemorySpace::Vmem)));
        let v = b.load(flat, d, SHAPE);
        b.store(y, v);
        out.push(b.finish());
        // A load and a store at an offset that the kernel computes.
        let mut b = Builder::new(&format!("offsets_{d}"));
        let x = b.whole("x", Role::Input, d, &["128", "256"], MemorySpace::Vmem);
        let y = b.whole("y", Role::Output, d, &["128", "256"], MemorySpace::Vmem);
        let n = b.whole("n", Role::Input, DType::I32, &["4"], MemorySpace::Smem);
        let offsets = vec![Offset::Const(2)];
        let i = b.op(OpKind::LoadScalar { base: n, offsets }, I32);
        let rows = b.int(32);
        let i = b.op(binary(Binary::Mul, i, rows), I32);
        let at = vec![Offset::Value(i), Offset::Const(128)];
        let v = b.op(OpKind::Load { base: x, offsets: at.clone() }, Type::tile(d, SHAPE));
        b.effect(OpKind::Store { base: y, offsets: at, value: v });
        out.push(b.finish());
    }
    out
}

/// A copy from HBM to VMEM and back, with all the views that lead there.
fn copies(d: DType) -> Kernel {
    let mut b = Builder::new(&format!("copies_{d}"));
    let x = b.whole("x", Role::Input, d, &["g", "m", "n"], MemorySpace::Any);
    let y = b.whole("y", Role::Output, d, &["m", "n"], MemorySpace::Any);
    let buffer = b.scratch("buffer", d, &[2, 32, 128], MemorySpace::Vmem);
    let sems = b.semaphores("sems", 2);
    let g = b.op(OpKind::Dim { name: "g".into() }, I32);
    let one = b.int(1);
    let last = b.op(binary(Binary::Sub, g, one), I32);
    let at = b.op(
        OpKind::Slice {
            base: x,
            offsets: vec![Offset::Value(last), Offset::Const(0), Offset::Const(128)],
            sizes: vec![Size::Const(1), Size::Const(32), Size::Const(128)],
        },
        Type::Ref(data(d, &[1, 32, 128], MemorySpace::Any)),
    );
    let src = b.op(OpKind::Squeeze { base: at, axes: vec![0] }, Type::Ref(data(d, SHAPE, MemorySpace::Any)));
    let slot = b.op(
        OpKind::Slice {
            base: buffer,
            offsets: vec![Offset::Const(1), Offset::Const(0), Offset::Const(0)],
            sizes: vec![Size::Const(1), Size::Const(32), Size::Const(128)],
        },
        Type::Ref(data(d, &[1, 32, 128], MemorySpace::Vmem)),
    );
    let dst =
        b.op(OpKind::Squeeze { base: slot, axes: vec![0] }, Type::Ref(data(d, SHAPE, MemorySpace::Vmem)));
    let sem = b.op(
        OpKind::Slice { base: sems, offsets: vec![Offset::Const(1)], sizes: vec![Size::Const(1)] },
        Type::Ref(semaphore(&[1])),
    );
    let sem = b.op(OpKind::Squeeze { base: sem, axes: vec![0] }, Type::Ref(semaphore(&[])));
    b.effect(OpKind::CopyStart { src, dst, sem });
    b.effect(OpKind::CopyWait { src, dst, sem });
    let back = b.op(
        OpKind::Slice {
            base: y,
            offsets: vec![Offset::Const(0), Offset::Const(0)],
            sizes: vec![Size::Const(32), Size::Const(128)],
        },
        Type::Ref(data(d, SHAPE, MemorySpace::Any)),
    );
    b.effect(OpKind::CopyStart { src: dst, dst: back, sem });
    b.effect(OpKind::CopyWait { src: dst, dst: back, sem });
    b.finish()
}

pub(crate) fn control() -> Vec<Kernel> {
    let mut out = vec![];
    for d in DType::ALL {
        for scalar in [false, true] {
            let ty = if scalar { Type::Scalar(d) } else { Type::tile(d, SHAPE) };
            for kind in ["if", "for", "while"] {
                out.push(carried(kind, d, &ty));
            }
        }
    }
    out
}

/// Control flow that yields or carries a value of type `ty`.
fn carried(kind: &str, d: DType, ty: &Type) -> Kernel {
    let scalar = matches!(ty, Type::Scalar(_));
    let mut b = Builder::new(&format!("{kind}_{}{d}", if scalar { "scalar_" } else { "" }));
    let space = if scalar { MemorySpace::Smem } else { MemorySpace::Vmem };
    let shape: &[&str] = if scalar { &["8"] } else { &["32", "128"] };
    let x = b.whole("x", Role::Input, d, shape, space);
    let y = b.whole("y", Role::Output, d, shape, space);
    let n = b.whole("n", Role::Input, DType::I32, &["4"], MemorySpace::Smem);
    let count = b.op(OpKind::LoadScalar { base: n, offsets: vec![Offset::Const(0)] }, I32);
    let first = if scalar {
        b.op(OpKind::LoadScalar { base: x, offsets: vec![Offset::Const(0)] }, ty.clone())
    } else {
        b.load(x, d, SHAPE)
    };
    let step = |b: &mut Builder, v: Value| {
        let op = if d == DType::Bool { Binary::Xor } else { Binary::Add };
        b.op(binary(op, v, v), ty.clone())
    };
    let zero = b.int(0);
    let below = |b: &mut Builder, x: Value, y: Value| {
        b.op(OpKind::Compare { op: Compare::Lt, x, y }, Type::Scalar(DType::Bool))
    };
    let result = match kind {
        "if" => {
            let cond = below(&mut b, zero, count);
            let then = b.block(&[], |b, _| vec![step(b, first)]);
            let otherwise = Block { results: vec![first], ..Block::default() };
            b.op(OpKind::If { cond, then, otherwise }, ty.clone())
        }
        "for" => {
            let body = b.block(&[I32, ty.clone()], |b, a| vec![step(b, a[1])]);
            let init = vec![first];
            b.op(OpKind::For { lo: zero, hi: count, init, body }, ty.clone())
        }
        _ => {
            let types = [I32, ty.clone()];
            let cond = b.block(&types, |b, a| vec![below(b, a[0], count)]);
            let body = b.block(&types, |b, a| {
                let one = b.int(1);
                let next = b.op(binary(Binary::Add, a[0], one), I32);
                vec![next, step(b, a[1])]
            });
            let results = vec![b.fresh(I32), b.fresh(ty.clone())];
            let init = vec![zero, first];
            b.push(OpKind::While { init, cond, body }, results.clone());
            results[1]
        }
    };
    if scalar {
        b.effect(OpKind::StoreScalar { base: y, offsets: vec![Offset::Const(0)], value: result });
    } else {
        b.store(y, result);
    }
    b.finish()
}
