//! Whatever passes `verify::well_formed` gets an answer: results or a diagnostic, no panic, in bounded time and memory.

use kernel_ir::diag::codes;
use kernel_ir::exec::{Array, Options, call, run_mesh};
use kernel_ir::ir::{
    ArgReduction, Binary, Block, Compare, DType, DotDims, Kernel, MemorySpace, Offset, OpKind, Precision,
    Reduction, Role, Semantics, Size, Type, Unary, Value, WindowUnit,
};
use kernel_ir::verify::well_formed;
use proptest::prelude::*;

use crate::build::{Build, numbers};
use crate::semaphores::barrier;

const F32: DType = DType::F32;
const I32: DType = DType::I32;

fn at<const N: usize>(offsets: [usize; N]) -> Vec<Offset> {
    offsets.map(Offset::Const).to_vec()
}

/// A kernel with every kind of operation that memory, bits and semaphores have.
fn rich() -> Kernel {
    let int = Type::Scalar(I32);
    let mut b = Build::new(&[(2.into(), Semantics::Parallel), (3.into(), Semantics::Arbitrary)]);
    let t = b.array(("t", Role::Prefetch), I32, MemorySpace::Smem, &[4.into()]);
    let x = b.window(("x", Role::Input), F32, &[24.into(), 16.into()], &[8, 16], |b, i| {
        vec![b.load_scalar(t, Offset::Value(i[1])), b.int(0)]
    });
    let e = b.window(("e", Role::Input), DType::Bf16, &[30.into(), 16.into()], &[16, 16], |b, i| {
        vec![i[1], b.int(0)]
    });
    b.kernel().params[2].window.as_mut().unwrap().unit = WindowUnit::Elements(vec![(3, 4), (0, 0)]);
    let h = b.array(("h", Role::Input), DType::Bf16, MemorySpace::Any, &[32.into(), 16.into()]);
    let o =
        b.window(("o", Role::Output), F32, &[16.into(), 16.into()], &[8, 16], |b, i| vec![i[0], b.int(0)]);
    let g = b.array(("g", Role::Output), DType::Bf16, MemorySpace::Any, &[32.into(), 16.into()]);
    let s = b.scratch("s", DType::Bf16, MemorySpace::Vmem, &[2, 16, 16]);
    let m = b.scratch("m", I32, MemorySpace::Smem, &[4, 4]);
    let (sem, sent, ready) = (b.semaphore("sem"), b.semaphore("sent"), b.counter("ready"));
    let (i, two, zero) = (b.program_id(1), b.int(2), b.int(0));
    let slot = b.op(int.clone(), OpKind::Binary { op: Binary::Rem, x: i, y: two });
    b.effect(OpKind::PrngSeed { seeds: vec![i, slot] });
    // Words of a slot, filled by a copy from HBM; the other slot by a copy to a device.
    let flat = b.reshaped(s, &[32, 16]);
    let words = b.bitcast_ref(flat, I32, &[16, 16]);
    let offsets = [Offset::Value(slot), Offset::Const(0), Offset::Const(0)];
    let part = b.slice(s, &offsets, &[1, 16, 16].map(Size::Const));
    let part = b.reshaped(part, &[16, 16]);
    let rows = b.slice(h, &at([8, 0]), &[16, 16].map(Size::Const));
    b.effect(OpKind::CopyStart { src: rows, dst: part, sem });
    b.effect(OpKind::CopyWait { src: rows, dst: part, sem });
    let device = b.op(int.clone(), OpKind::DeviceId);
    let target = b.slice(g, &at([0, 0]), &[16, 16].map(Size::Const));
    b.effect(OpKind::CopyStartRemote { src: part, sent, dst: target, received: ready, device });
    let one = b.int(1);
    b.effect(OpKind::SemWait { sem: ready, amount: one });
    b.effect(OpKind::CopyWait { src: part, dst: target, sem: sent });
    let shared = barrier(&mut b);
    b.effect(OpKind::SemSignal { sem: shared, amount: two, device: Some(device), core: None });
    b.effect(OpKind::SemWait { sem: shared, amount: two });
    let count = b.op(int.clone(), OpKind::SemRead { sem: ready });
    let cond = b.op(Type::Scalar(DType::Bool), OpKind::Compare { op: Compare::Eq, x: count, y: zero });
    b.effect(OpKind::Assert { cond, message: "nothing is left".into() });
    b.effect(OpKind::StoreScalar { base: m, offsets: vec![Offset::Value(slot), Offset::Const(1)], value: i });
    let back = OpKind::LoadScalar { base: m, offsets: vec![Offset::Value(slot), Offset::Const(1)] };
    let back = b.op(int.clone(), back);
    // Tiles.
    let tile = |dtype, shape: [usize; 2]| Type::tile(dtype, shape);
    let strided = OpKind::LoadStrided { base: words, offsets: at([1, 0]), strides: vec![2, 1] };
    let w = b.op(tile(I32, [4, 16]), strided);
    let w = b.op(tile(I32, [4, 16]), OpKind::Unary { op: Unary::PopCount, x: w });
    let bits = b.op(tile(I32, [4, 16]), OpKind::PrngBits);
    let w = b.op(tile(I32, [4, 16]), OpKind::Binary { op: Binary::DivUnsigned, x: bits, y: w });
    let f = b.op(tile(DType::Bf16, [8, 16]), OpKind::Bitcast { x: w });
    let f = b.op(tile(F32, [8, 16]), OpKind::Cast { x: f });
    let v = b.load(x);
    let arg = OpKind::ArgReduce { op: ArgReduction::Max, x: f, axis: 0 };
    let arg = b.op(tile(I32, [1, 16]), arg);
    let index = b.op(tile(I32, [8, 16]), OpKind::Broadcast { x: arg });
    let picked = b.op(tile(F32, [8, 16]), OpKind::Gather { x: v, index, axis: 0 });
    let u = b.op(tile(F32, [8, 16]), OpKind::CastUnsigned { x: index });
    let less = OpKind::Compare { op: Compare::LtUnsigned, x: index, y: index };
    let mask = b.op(tile(DType::Bool, [8, 16]), less);
    b.store(o, picked);
    b.effect(OpKind::StoreMasked { base: o, offsets: at([0, 0]), value: u, mask });
    let halves = b.op(tile(DType::Bf16, [16, 16]), OpKind::Load { base: e, offsets: at([0, 0]) });
    b.effect(OpKind::StoreStrided { base: flat, offsets: at([1, 0]), strides: vec![2, 1], value: halves });
    let body = b.block(&[int.clone(), tile(F32, [8, 16])], |b, args| {
        let rolled = OpKind::Roll { x: args[1], amount: args[0], axis: 1 };
        let rolled = b.op(tile(F32, [8, 16]), rolled);
        let dims = DotDims { lhs: 1, rhs: 0 };
        let t = b.op(tile(F32, [16, 8]), OpKind::Transpose { x: v, permutation: vec![1, 0] });
        let dot = OpKind::Dot { lhs: t, rhs: rolled, dims, precision: Precision::Bf16 };
        let dot = b.op(tile(F32, [16, 16]), dot);
        let sum = b.op(tile(F32, [1, 16]), OpKind::Reduce { op: Reduction::Sum, x: dot, axis: 0 });
        vec![b.op(tile(F32, [8, 16]), OpKind::Broadcast { x: sum })]
    });
    let last = b.op(tile(F32, [8, 16]), OpKind::For { lo: zero, hi: back, init: vec![f], body });
    b.store(o, last);
    b.finish()
}

fn arguments(kernel: &Kernel) -> Option<Vec<Array>> {
    let of = |role| kernel.params.iter().filter(move |p| p.role == role);
    let array = |p: &kernel_ir::ir::Param| {
        let array = p.array.as_ref()?;
        let shape: Option<Vec<usize>> =
            array.shape.iter().map(|e| usize::try_from(e.known()?).ok()).collect();
        let shape = shape.filter(|s| s.iter().try_fold(1_usize, |n, d| n.checked_mul(*d)) < Some(1 << 16))?;
        let zeros = Array::zeros(array.dtype, shape.clone());
        Some(if p.role == Role::Prefetch { zeros } else { numbers(array.dtype, &shape, 1) })
    };
    of(Role::Prefetch).chain(of(Role::Input)).map(array).collect()
}

fn options() -> Options {
    Options { threads: Some(1), max_iterations: 300, max_rounds: 1000, ..Options::default() }
}

#[test]
fn the_kernel_that_is_mutated_runs() {
    let kernel = rich();
    well_formed(&kernel).unwrap();
    let arguments = arguments(&kernel).unwrap();
    call(&kernel, &arguments, &options()).unwrap();
    run_mesh(&kernel, &vec![arguments; 3], &options()).unwrap();
}

/// Calls `f` with every operand and every number of an op.
fn parts(kind: &mut OpKind, value: &mut dyn FnMut(&mut Value), number: &mut dyn FnMut(&mut usize)) {
    fn place(offsets: &mut [Offset], value: &mut dyn FnMut(&mut Value), number: &mut dyn FnMut(&mut usize)) {
        for o in offsets {
            match o {
                Offset::Const(n) => number(n),
                Offset::Value(v) => value(v),
            }
        }
    }
    match kind {
        OpKind::Unary { x, .. } | OpKind::Cast { x } | OpKind::CastUnsigned { x } | OpKind::Bitcast { x } => {
            value(x)
        }
        OpKind::Broadcast { x } | OpKind::Reshape { x } | OpKind::ToScalar { x } => value(x),
        OpKind::Transpose { x, permutation } => {
            value(x);
            permutation.iter_mut().for_each(number);
        }
        OpKind::Reduce { x, axis, .. } | OpKind::ArgReduce { x, axis, .. } => {
            value(x);
            number(axis);
        }
        OpKind::Binary { x, y, .. } | OpKind::Compare { x, y, .. } => {
            value(x);
            value(y);
        }
        OpKind::Gather { x, index: y, axis } | OpKind::Roll { x, amount: y, axis } => {
            value(x);
            value(y);
            number(axis);
        }
        OpKind::Dot { lhs, rhs, dims, .. } => {
            value(lhs);
            value(rhs);
            number(&mut dims.lhs);
        }
        OpKind::Load { base, offsets } | OpKind::LoadScalar { base, offsets } => {
            value(base);
            place(offsets, value, number);
        }
        OpKind::LoadStrided { base, offsets, strides } => {
            value(base);
            strides.iter_mut().for_each(&mut *number);
            place(offsets, value, number);
        }
        OpKind::Store { base, offsets, value: v } | OpKind::StoreScalar { base, offsets, value: v } => {
            value(base);
            value(v);
            place(offsets, value, number);
        }
        OpKind::StoreStrided { base, offsets, strides, value: v } => {
            value(base);
            value(v);
            strides.iter_mut().for_each(&mut *number);
            place(offsets, value, number);
        }
        OpKind::StoreMasked { base, offsets, value: v, mask } => {
            [base, v, mask].into_iter().for_each(&mut *value);
            place(offsets, value, number);
        }
        OpKind::Slice { base, offsets, sizes } => {
            value(base);
            for s in sizes {
                match s {
                    Size::Const(n) => number(n),
                    Size::Value(v) => value(v),
                }
            }
            place(offsets, value, number);
        }
        OpKind::Squeeze { base, axes } => {
            value(base);
            axes.iter_mut().for_each(number);
        }
        OpKind::ReshapeRef { base } | OpKind::BitcastRef { base } => value(base),
        OpKind::CopyStart { src, dst, sem } | OpKind::CopyWait { src, dst, sem } => {
            [src, dst, sem].into_iter().for_each(value);
        }
        OpKind::CopyStartRemote { src, sent, dst, received, device } => {
            [src, sent, dst, received, device].into_iter().for_each(value);
        }
        OpKind::SemSignal { sem, amount, device, core } => {
            [sem, amount].into_iter().chain(device).chain(core).for_each(value);
        }
        OpKind::SemWait { sem, amount } => [sem, amount].into_iter().for_each(value),
        OpKind::SemRead { sem } => value(sem),
        OpKind::PrngSeed { seeds } => seeds.iter_mut().for_each(value),
        OpKind::Assert { cond, .. } => value(cond),
        OpKind::For { lo, hi, .. } => [lo, hi].into_iter().for_each(value),
        _ => {}
    }
}

/// One change: an operand, a number or a literal of an op, the shape of a ref or tile, an op less, more or elsewhere.
fn mutate(kernel: &mut Kernel, [which, a, b, c]: [u16; 4]) {
    const SIZES: [usize; 16] =
        [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 32, 128, 1 << 20, i32::MAX as usize, usize::MAX];
    let [a, b, c] = [a, b, c].map(usize::from);
    let number = SIZES[c % SIZES.len()];
    let values = kernel.values.len();
    let maps = kernel.params.len();
    let block: &mut Block = match a % 5 {
        0 => match kernel.params.get_mut(b % maps).and_then(|p| p.window.as_mut()) {
            Some(w) => &mut w.index,
            None => &mut kernel.body,
        },
        _ => &mut kernel.body,
    };
    let ops = block.ops.len();
    if ops == 0 {
        return;
    }
    let i = b % ops;
    match which % 10 {
        0..=2 => {
            let (mut n, wanted) = (0, c % 4);
            let value = Value((a * 7 + c) as u32 % values as u32);
            let pick = &mut |v: &mut Value| {
                if n == wanted {
                    *v = value;
                }
                n += 1;
            };
            parts(&mut block.ops[i].kind, pick, &mut |_| {});
        }
        3..=4 => {
            let (mut n, wanted) = (0, a % 4);
            let pick = &mut |x: &mut usize| {
                if n == wanted {
                    *x = number;
                }
                n += 1;
            };
            parts(&mut block.ops[i].kind, &mut |_| {}, pick);
        }
        5 => {
            if let OpKind::Constant(l) = &mut block.ops[i].kind {
                *l = kernel_ir::ir::Literal::Int(i64::from(number as i32));
            }
        }
        6 => drop(block.ops.remove(i)),
        7 => block.ops.swap(i, a % ops),
        8 => match &mut kernel.params[b % maps].window {
            Some(w) => {
                let n = w.block.len();
                w.block[a % n] = number.min(1 << 12);
                w.unit =
                    if c % 2 == 0 { WindowUnit::Blocks } else { WindowUnit::Elements(vec![(number, a); n]) };
            }
            None => kernel.values[b % values].ty = kernel.values[a % values].ty.clone(),
        },
        _ => match &mut kernel.values[b % values].ty {
            Type::Ref(r) if !r.shape.is_empty() => {
                let n = r.shape.len();
                r.shape[a % n] = kernel_ir::ir::Extent::Static(number);
            }
            Type::Tile(t) => {
                let n = t.shape.len();
                t.shape[a % n] = number.min(1 << 8);
            }
            _ => {}
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_mutated_kernel_that_is_well_formed_gets_an_answer(
        changes in prop::collection::vec(any::<[u16; 4]>(), 1..6),
        mesh in any::<bool>(),
    ) {
        let mut kernel = rich();
        changes.into_iter().for_each(|c| mutate(&mut kernel, c));
        if well_formed(&kernel).is_err() {
            return Ok(());
        }
        let Some(arguments) = arguments(&kernel) else { return Ok(()) };
        let done = if mesh {
            run_mesh(&kernel, &[arguments.clone(), arguments], &options()).map(drop)
        } else {
            call(&kernel, &arguments, &options()).map(drop)
        };
        if let Err(report) = done {
            for d in &report.diagnostics {
                prop_assert!(codes::explain(d.code).is_some(), "{}", d.code);
            }
        }
    }
}
