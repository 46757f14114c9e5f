//! Whatever happens to a kernel, the verifier answers: it neither panics nor runs away. What it lets pass, later stages
//! answer too.

use kernel_ir::exec::{self, Array};
use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::*;
use kernel_ir::verify::verify;
use proptest::prelude::*;

use super::builder::*;

/// A kernel with a bit of everything: loops, branches, copies, prefetched block maps, products, reductions.
fn rich() -> Kernel {
    let mut b = Builder::new("par 4 seq m");
    let t = b.prefetch("t", "m");
    let w = b.window(&[8, 128], |b, g| vec![b.get(t, g[1]), b.int(0)]);
    let x = b.param("x", Role::Input, vmem(F32, &[8, 128]), Some("m 128"), Some(w));
    let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
    let h = b.hbm("h", Role::Input, F32, "m 128");
    let s = b.scratch("s", F32, &[2, 8, 128]);
    let sems = b.semaphores("sem", 2);
    let (p, zero) = (b.program_id(1), b.int(0));
    let first = b.flag(p);
    b.when(first, |b| b.clear(s));
    let two = b.int(2);
    let slot = b.binary(Binary::Rem, p, two);
    let row = b.times(slot, 8);
    let src = b.slice(h, &[Offset::Value(row), Offset::Const(0)], &[Size::Const(8), Size::Const(128)]);
    let at = [Offset::Value(slot), Offset::Const(0), Offset::Const(0)];
    let dst = b.slice(s, &at, &[Size::Const(1), Size::Const(8), Size::Const(128)]);
    let dst = b.squeeze(dst, &[0]);
    let sem = b.slot(sems, Offset::Value(slot));
    b.effect(OpKind::CopyStart { src, dst, sem });
    b.effect(OpKind::CopyWait { src, dst, sem });
    b.range(zero, two, |b, i| {
        let v = b.load(s, &[Offset::Value(i), Offset::Const(0), Offset::Const(0)], &[1, 8, 128]);
        let v = b.op(OpKind::Reshape { x: v }, tile(F32, &[8, 128]));
        let y = b.read(x);
        let dims = DotDims { lhs: 1, rhs: 1 };
        let d = b.op(OpKind::Dot { lhs: v, rhs: y, dims, precision: Precision::Highest }, tile(F32, &[8, 8]));
        let r = b.op(OpKind::Reduce { op: Reduction::Max, x: d, axis: 1 }, tile(F32, &[8, 1]));
        let r = b.op(OpKind::Broadcast { x: r }, tile(F32, &[8, 128]));
        let z = b.op(OpKind::Concatenate { xs: vec![r, v], axis: 0 }, tile(F32, &[16, 128]));
        let z = b.op(OpKind::ExtractSlice { x: z, offsets: vec![8, 0] }, tile(F32, &[8, 128]));
        let z = b.op(OpKind::Roll { x: z, amount: i, axis: 1 }, tile(F32, &[8, 128]));
        b.store(o, &[Offset::Const(0); 2], z);
    });
    b.finish()
}

#[test]
fn the_kernel_that_is_mutated_is_correct() {
    verify(&rich()).unwrap_or_else(|r| panic!("{r}"));
}

fn operands(kind: &mut OpKind) -> Vec<&mut Value> {
    fn at(offsets: &mut [Offset]) -> impl Iterator<Item = &mut Value> {
        offsets.iter_mut().filter_map(|o| if let Offset::Value(v) = o { Some(v) } else { None })
    }
    match kind {
        OpKind::Unary { x, .. } | OpKind::Cast { x } | OpKind::Broadcast { x } | OpKind::Reshape { x } => {
            vec![x]
        }
        OpKind::ExtractSlice { x, .. } | OpKind::Reduce { x, .. } => vec![x],
        OpKind::Binary { x, y, .. } | OpKind::Compare { x, y, .. } => vec![x, y],
        OpKind::Concatenate { xs, .. } => xs.iter_mut().collect(),
        OpKind::Roll { x, amount, .. } => vec![x, amount],
        OpKind::Dot { lhs, rhs, .. } => vec![lhs, rhs],
        OpKind::Load { base, offsets } | OpKind::LoadScalar { base, offsets } => {
            std::iter::once(base).chain(at(offsets)).collect()
        }
        OpKind::Store { base, offsets, value } => [base, value].into_iter().chain(at(offsets)).collect(),
        OpKind::Slice { base, offsets, .. } => std::iter::once(base).chain(at(offsets)).collect(),
        OpKind::Squeeze { base, .. } => vec![base],
        OpKind::CopyStart { src, dst, sem } | OpKind::CopyWait { src, dst, sem } => vec![src, dst, sem],
        OpKind::If { cond, .. } => vec![cond],
        OpKind::For { lo, hi, init, .. } => [lo, hi].into_iter().chain(init).collect(),
        _ => vec![],
    }
}

fn numbers(kind: &mut OpKind) -> Vec<&mut usize> {
    match kind {
        OpKind::Iota { axis } | OpKind::ProgramId { axis } | OpKind::NumPrograms { axis } => vec![axis],
        OpKind::Concatenate { axis, .. } | OpKind::Roll { axis, .. } | OpKind::Reduce { axis, .. } => {
            vec![axis]
        }
        OpKind::ExtractSlice { offsets, .. } => offsets.iter_mut().collect(),
        OpKind::Squeeze { axes, .. } => axes.iter_mut().collect(),
        OpKind::Dot { dims, .. } => vec![&mut dims.lhs, &mut dims.rhs],
        _ => vec![],
    }
}

fn blocks(kernel: &mut Kernel, inside: bool) -> Vec<&mut Block> {
    let maps = kernel.params.iter_mut().filter_map(|p| p.window.as_mut()).map(|w| &mut w.index);
    let mut all: Vec<_> = maps.collect();
    // The body, or the first region in it.
    let body = &mut kernel.body;
    let at = body.ops.iter().position(|op| inside && !op.kind.blocks().is_empty());
    let Some(i) = at else {
        all.push(body);
        return all;
    };
    match &mut body.ops[i].kind {
        OpKind::If { then: inner, .. }
        | OpKind::For { body: inner, .. }
        | OpKind::While { body: inner, .. } => {
            all.push(inner);
        }
        _ => unreachable!("only these have regions"),
    }
    all
}

/// One random change. `which` picks what kind, `a` and `b` where and what.
fn mutate(kernel: &mut Kernel, which: u8, a: usize, b: usize) {
    let values = kernel.values.len();
    if kernel.params.is_empty() {
        return;
    }
    let pick = |n: usize| a % n.max(1);
    match which % 16 {
        0 => kernel.values[pick(values)].ty = kernel.values[b % values].ty.clone(),
        1 => kernel.values[pick(values)].ty = Type::tile(F32, vec![b % 300, a % 300]),
        2 => kernel.values[pick(values)].ty = Type::Scalar([F32, I32, DType::Bool][b % 3]),
        3 => {
            if let Type::Ref(r) = &mut kernel.values[pick(values)].ty {
                r.space =
                    [MemorySpace::Any, MemorySpace::Vmem, MemorySpace::Smem, MemorySpace::Semaphore][b % 4];
            }
        }
        4 => {
            if let Type::Ref(r) = &mut kernel.values[pick(values)].ty {
                r.shape.push(Extent::Static(b));
            }
        }
        5 => {
            let n = kernel.params.len();
            kernel.params[pick(n)].role = [Role::Prefetch, Role::Input, Role::Output, Role::Scratch][b % 4];
        }
        6 => {
            let n = kernel.params.len();
            let p = &mut kernel.params[pick(n)];
            if let Some(w) = &mut p.window {
                w.block = vec![b % 5, usize::MAX - b % 3];
            } else if let Some(array) = &mut p.array {
                array.shape = vec![DimExpr::Const(b as i64 - 5)];
            }
        }
        7 => {
            if let Some(g) = kernel.grid.get_mut(a % 2) {
                g.extent = [DimExpr::Const(0), DimExpr::Const(i64::MAX), size("q")][b % 3].clone();
            }
        }
        8 => kernel.grid.truncate(b % 3),
        9 => kernel.demands.push(Demand {
            compare: DimCompare::ALL[a % 6],
            left: DimExpr::op(DimOp::ALL[b % 8], DimExpr::dim("m"), (a % 9).into()),
            right: DimExpr::Const(b as i64),
        }),
        10 => {
            let n = kernel.params.len();
            kernel.params.remove(pick(n));
        }
        other => {
            let mut all = blocks(kernel, a.is_multiple_of(3));
            let n = all.len();
            let block = &mut all[b % n];
            let ops = block.ops.len();
            if ops == 0 {
                block.results.pop();
                return;
            }
            let i = pick(ops);
            match other {
                11 => drop(block.ops.remove(i)),
                12 => block.ops.swap(i, b % ops),
                13 => {
                    let op = block.ops[i].clone();
                    block.ops.insert(b % ops, op);
                }
                14 => {
                    if let Some(v) = operands(&mut block.ops[i].kind).into_iter().nth(b % 3) {
                        *v = Value((b % (values + 1)) as u32);
                    }
                }
                _ => {
                    if let Some(x) = numbers(&mut block.ops[i].kind).into_iter().nth(b % 2) {
                        *x = if b.is_multiple_of(7) { usize::MAX } else { b % 5 };
                    }
                }
            }
        }
    }
}

/// Runs a kernel on zeros. What it answers is its own business, as long as it answers.
fn run(kernel: &Kernel) {
    let dims = Dims::from([("m".to_owned(), 16), ("q".to_owned(), 3)]);
    let mut inputs: Vec<(&str, Array)> = vec![];
    for p in kernel.params.iter().filter(|p| matches!(p.role, Role::Input | Role::Prefetch)) {
        let Some(array) = &p.array else { continue };
        let shape: Option<Vec<usize>> =
            array.shape.iter().map(|e| e.eval(&dims).and_then(|n| usize::try_from(n).ok())).collect();
        let Some(shape) = shape.filter(|s| s.iter().product::<usize>() < 1 << 20) else { return };
        inputs.push((&p.name, Array::zeros(array.dtype, shape)));
    }
    let inputs: Vec<_> = inputs.iter().map(|(n, a)| (*n, a)).collect();
    let options = exec::Options { threads: Some(1), dims, max_iterations: 1000, ..exec::Options::default() };
    let _ = exec::run(kernel, &inputs, &options);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_kernel_gets_an_answer(changes in prop::collection::vec((any::<u8>(), 0..4000_usize, 0..4000_usize), 1..5)) {
        let mut kernel = rich();
        for (which, a, b) in changes {
            mutate(&mut kernel, which, a, b);
        }
        let report = match verify(&kernel) {
            Ok(facts) => {
                run(&kernel);
                let _ = kernel.to_string();
                #[cfg(feature = "emit")]
                let _ = kernel.mosaic();
                facts.warnings
            }
            Err(report) => report,
        };
        for d in &report.diagnostics {
            prop_assert!(kernel_ir::diag::codes::explain(d.code).is_some(), "{}", d.code);
        }
    }
}
