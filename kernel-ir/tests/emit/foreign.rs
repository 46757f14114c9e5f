//! Operations that modules from elsewhere hold and the DSL does not offer: libtpu takes the form they are written in.

use kernel_ir::ir::{
    ArgReduction, Binary, Compare, DType, Elem, Extent, Kernel, MemorySpace, Offset, OpKind, RefType, Role,
    Size, Type, Unary, Value,
};

use crate::build::{Builder, data, semaphore};
use crate::cases::{Case, SHAPE};

const I32: Type = Type::Scalar(DType::I32);

/// One register of 32-bit elements: what look-ups along an axis are made for.
const REGISTER: &[usize] = &[8, 128];

pub(crate) fn tiles() -> Vec<Case> {
    use DType::{Bf16, F32, I8, I16, I32};
    let mut out = vec![];
    for op in [Unary::Log1p, Unary::Tan, Unary::Round, Unary::RoundEven] {
        out.push(unary(op, F32));
        out.push(unary(op, Bf16));
    }
    for op in [Unary::LeadingZeros, Unary::PopCount] {
        out.push(unary(op, I32));
    }
    for op in [Binary::Pow, Binary::Atan2] {
        out.push(binary(op, F32));
    }
    for op in [
        Binary::ShrUnsigned,
        Binary::DivUnsigned,
        Binary::RemUnsigned,
        Binary::MinUnsigned,
        Binary::MaxUnsigned,
    ] {
        out.push(binary(op, I32));
        out.push(binary(op, I16));
    }
    for op in [Compare::LtUnsigned, Compare::LeUnsigned, Compare::GtUnsigned, Compare::GeUnsigned] {
        let name = format!("{op:?}");
        out.push(Case::tiles(&name, &[(I32, SHAPE), (I32, SHAPE)], (DType::Bool, SHAPE), move |b, x| {
            b.op(OpKind::Compare { op, x: x[0], y: x[1] }, Type::tile(DType::Bool, SHAPE))
        }));
    }
    for (from, to) in [(I32, F32), (F32, I32), (I16, I32), (I8, I32), (I16, F32), (I32, Bf16), (I32, I8)] {
        let name = format!("unsigned_{from}_{to}");
        out.push(Case::tiles(&name, &[(from, SHAPE)], (to, SHAPE), move |b, x| {
            b.op(OpKind::CastUnsigned { x: x[0] }, Type::tile(to, SHAPE))
        }));
    }
    for (from, to, shape) in [
        (F32, I32, SHAPE),
        (I32, F32, SHAPE),
        (Bf16, I16, SHAPE),
        (Bf16, I32, &[16, 128]),
        (I8, I32, &[8, 128]),
        (I32, Bf16, &[64, 128]),
    ] {
        let name = format!("bitcast_{from}_{to}");
        out.push(Case::tiles(&name, &[(from, SHAPE)], (to, shape), move |b, x| {
            b.op(OpKind::Bitcast { x: x[0] }, Type::tile(to, shape))
        }));
    }
    for axis in [0, 1] {
        let name = format!("gather_{axis}");
        out.push(Case::tiles(&name, &[(F32, REGISTER), (I32, REGISTER)], (F32, REGISTER), move |b, x| {
            b.op(OpKind::Gather { x: x[0], index: x[1], axis }, Type::tile(F32, REGISTER))
        }));
        for op in [ArgReduction::Max, ArgReduction::Min] {
            let shape = if axis == 0 { [1, 128] } else { [32, 1] };
            let name = format!("arg_{op:?}_{axis}");
            out.push(Case::tiles(&name, &[(F32, SHAPE)], (I32, &shape), move |b, x| {
                b.op(OpKind::ArgReduce { op, x: x[0], axis }, Type::tile(I32, shape))
            }));
        }
    }
    out
}

fn unary(op: Unary, d: DType) -> Case {
    Case::tiles(&format!("{op:?}_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, x| {
        b.op(OpKind::Unary { op, x: x[0] }, Type::tile(d, SHAPE))
    })
}

fn binary(op: Binary, d: DType) -> Case {
    Case::tiles(&format!("{op:?}_{d}"), &[(d, SHAPE), (d, SHAPE)], (d, SHAPE), move |b, x| {
        b.op(OpKind::Binary { op, x: x[0], y: x[1] }, Type::tile(d, SHAPE))
    })
}

/// Products of which only the upper half is kept exist on the scalar core and not in vectors of every generation.
pub(crate) fn memory() -> Vec<Kernel> {
    vec![strided(), masked(), recast(), counting(), random()]
}

fn zeros(n: usize) -> Vec<Offset> {
    vec![Offset::Const(0); n]
}

fn strided() -> Kernel {
    let mut b = Builder::new("strided");
    let x = b.whole("x", Role::Input, DType::F32, &["32", "128"], MemorySpace::Vmem);
    let y = b.whole("y", Role::Output, DType::F32, &["32", "128"], MemorySpace::Vmem);
    let offsets = vec![Offset::Const(1), Offset::Const(0)];
    let strides = vec![4, 1];
    let v = b.op(
        OpKind::LoadStrided { base: x, offsets: offsets.clone(), strides: strides.clone() },
        Type::tile(DType::F32, [8, 128]),
    );
    b.effect(OpKind::StoreStrided { base: y, offsets, strides, value: v });
    b.finish()
}

fn masked() -> Kernel {
    let mut b = Builder::new("masked");
    let x = b.whole("x", Role::Input, DType::F32, &["32", "128"], MemorySpace::Vmem);
    let y = b.whole("y", Role::Output, DType::F32, &["32", "128"], MemorySpace::Vmem);
    let v = b.load(x, DType::F32, SHAPE);
    let zero = b.fill(DType::F32, SHAPE, 0.0);
    let mask = b.op(OpKind::Compare { op: Compare::Gt, x: v, y: zero }, Type::tile(DType::Bool, SHAPE));
    b.effect(OpKind::StoreMasked { base: y, offsets: zeros(2), value: v, mask });
    b.finish()
}

/// Refs under other shapes and element types.
fn recast() -> Kernel {
    let mut b = Builder::new("recast");
    let x = b.whole("x", Role::Input, DType::Bf16, &["4", "16", "128"], MemorySpace::Vmem);
    let y = b.whole("y", Role::Output, DType::I32, &["32", "128"], MemorySpace::Vmem);
    let vmem = |d, shape: &[usize]| Type::Ref(data(d, shape, MemorySpace::Vmem));
    let flat = b.op(OpKind::ReshapeRef { base: x }, vmem(DType::Bf16, &[64, 128]));
    let words = b.op(OpKind::BitcastRef { base: flat }, vmem(DType::I32, &[32, 128]));
    let v = b.load(words, DType::I32, SHAPE);
    b.store(y, v);
    b.finish()
}

/// Semaphores that count, the ids of this device, and an assertion.
fn counting() -> Kernel {
    let mut b = Builder::new("counting");
    let y = b.whole("y", Role::Output, DType::I32, &["8"], MemorySpace::Smem);
    let many =
        RefType { elem: Elem::Semaphore, shape: vec![Extent::Static(2)], space: MemorySpace::Semaphore };
    let sems = b.param("sems", Role::Scratch, many.clone(), None, None);
    let one = RefType { shape: vec![Extent::Static(1)], ..many.clone() };
    let slot = OpKind::Slice { base: sems, offsets: vec![Offset::Const(1)], sizes: vec![Size::Const(1)] };
    let slot = b.op(slot, Type::Ref(one));
    let sem =
        b.op(OpKind::Squeeze { base: slot, axes: vec![0] }, Type::Ref(RefType { shape: vec![], ..many }));
    let three = b.int(3);
    b.effect(OpKind::SemSignal { sem, amount: three, device: None, core: None });
    let n = b.op(OpKind::SemRead { sem }, I32);
    b.effect(OpKind::SemWait { sem, amount: three });
    let same = b.op(OpKind::Compare { op: Compare::Eq, x: n, y: three }, Type::Scalar(DType::Bool));
    b.effect(OpKind::Assert { cond: same, message: "three signals".into() });
    b.effect(OpKind::StoreScalar { base: y, offsets: zeros(1), value: n });
    b.finish()
}

fn random() -> Kernel {
    let mut b = Builder::new("random");
    let y = b.whole("y", Role::Output, DType::I32, &["32", "128"], MemorySpace::Vmem);
    let seed = b.int(7);
    b.effect(OpKind::PrngSeed { seeds: vec![seed] });
    let bits = b.op(OpKind::PrngBits, Type::tile(DType::I32, SHAPE));
    b.store(y, bits);
    b.finish()
}

/// A ring: each device sends its block to the next one, when the next one is ready.
pub(crate) fn ring() -> Kernel {
    let mut b = Builder::new("ring");
    let x = b.whole("x", Role::Input, DType::F32, &["32", "128"], MemorySpace::Any);
    let y = b.whole("y", Role::Output, DType::F32, &["32", "128"], MemorySpace::Any);
    let one_semaphore =
        |b: &mut Builder, name: &str| -> Value { b.param(name, Role::Scratch, semaphore(&[]), None, None) };
    let (sent, received) = (one_semaphore(&mut b, "sent"), one_semaphore(&mut b, "received"));
    let barrier = RefType { elem: Elem::Semaphore, shape: vec![], space: MemorySpace::Semaphore };
    let barrier = b.op(OpKind::BarrierSemaphore, Type::Ref(barrier));
    let me = b.op(OpKind::DeviceId, I32);
    let (one, four) = (b.int(1), b.int(4));
    let next = b.op(OpKind::Binary { op: Binary::Add, x: me, y: one }, I32);
    let next = b.op(OpKind::Binary { op: Binary::Rem, x: next, y: four }, I32);
    b.effect(OpKind::SemSignal { sem: barrier, amount: one, device: Some(next), core: None });
    b.effect(OpKind::SemWait { sem: barrier, amount: one });
    b.effect(OpKind::CopyStartRemote { src: x, sent, dst: y, received, device: next });
    b.effect(OpKind::CopyWait { src: x, dst: y, sem: sent });
    b.effect(OpKind::CopyWait { src: x, dst: y, sem: received });
    b.finish()
}
