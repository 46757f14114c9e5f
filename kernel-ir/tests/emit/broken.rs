//! Kernels that no verifier has seen: whatever is wrong with them, the emitter answers.

use kernel_ir::ir::{
    Binary, Block, DType, Elem, Extent, Kernel, Literal, MemorySpace, Offset, OpKind, RefType, Role, Span,
    Type, Value,
};
use proptest::prelude::*;

use crate::build::{Builder, data};
use crate::{kernels, memory};

/// Calls `f` for every block of a kernel, inner ones too.
fn each_block(kernel: &mut Kernel, f: &mut impl FnMut(&mut Block)) {
    fn walk(block: &mut Block, f: &mut impl FnMut(&mut Block)) {
        f(block);
        for op in &mut block.ops {
            match &mut op.kind {
                OpKind::If { then, otherwise, .. } => {
                    [then, otherwise].map(|b| walk(b, f)).into_iter().collect()
                }
                OpKind::For { body, .. } => walk(body, f),
                OpKind::While { cond, body, .. } => [cond, body].map(|b| walk(b, f)).into_iter().collect(),
                _ => {}
            }
        }
    }
    walk(&mut kernel.body, f);
    for w in kernel.params.iter_mut().filter_map(|p| p.window.as_mut()) {
        walk(&mut w.index, f);
    }
}

/// Types that no kernel should have, and some that it may.
fn strange(n: usize) -> Type {
    let d = DType::ALL[n % DType::ALL.len()];
    let shapes: [&[usize]; 9] = [
        &[],
        &[0],
        &[1],
        &[8],
        &[8, 128],
        &[usize::MAX],
        &[usize::MAX, usize::MAX],
        &[1 << 40, 1 << 40],
        &[2, 3, 4, 5, 6],
    ];
    let shape = shapes[n / 7 % shapes.len()];
    let spaces = [MemorySpace::Any, MemorySpace::Vmem, MemorySpace::Smem, MemorySpace::Semaphore];
    let space = spaces[n / 3 % spaces.len()];
    match n / 2 % 4 {
        0 => Type::Scalar(d),
        1 => Type::tile(d, shape),
        2 => Type::Ref(data(d, shape, space)),
        _ => Type::Ref(RefType { elem: Elem::DmaSemaphore, shape: vec![Extent::Dynamic; n % 3], space }),
    }
}

/// Breaks something: `what` says which kind of thing, `a` and `b` which ones.
fn break_it(kernel: &mut Kernel, what: usize, a: usize, b: usize) {
    let values = kernel.values.len();
    let (i, j) = (a % values, b % values);
    let value = Value(j as u32);
    let mut count = 0;
    each_block(kernel, &mut |_| count += 1);
    let at = a % count;
    let mut seen = 0;
    let mut on_block = |kernel: &mut Kernel, f: &mut dyn FnMut(&mut Block)| {
        each_block(kernel, &mut |block| {
            if seen == at {
                f(block);
            }
            seen += 1;
        });
    };
    match what {
        0 => kernel.values[i].ty = strange(b),
        1 => {
            let ty = kernel.values[i].ty.clone();
            kernel.values[i].ty = std::mem::replace(&mut kernel.values[j].ty, ty);
        }
        2 => on_block(kernel, &mut |block| {
            if !block.ops.is_empty() {
                block.ops.remove(b % block.ops.len());
            }
        }),
        3 => on_block(kernel, &mut |block| {
            let n = block.ops.len();
            if n > 1 {
                let results = std::mem::take(&mut block.ops[b % n].results);
                block.ops[b / 2 % n].results = results;
            }
        }),
        4 => on_block(kernel, &mut |block| {
            block.results.push(value);
            block.args.truncate(b % 3);
        }),
        5 => on_block(kernel, &mut |block| {
            let n = block.ops.len();
            if n > 1 {
                block.ops.swap(b % n, b / 2 % n);
            }
        }),
        6 => on_block(kernel, &mut |block| {
            let n = block.ops.len();
            if n > 1 {
                let kind = block.ops[b % n].kind.clone();
                block.ops[b / 2 % n].kind = kind;
                block.ops[b % n].span = Span(u32::MAX);
            }
        }),
        7 => {
            let n = kernel.params.len();
            let p = &mut kernel.params[a % n];
            p.role = [Role::Prefetch, Role::Input, Role::Output, Role::Scratch][b % 4];
            if b.is_multiple_of(3) {
                p.window = None;
            }
            if b.is_multiple_of(5) {
                p.value = Value(b as u32);
            }
        }
        8 => {
            kernel.grid.truncate(b % 3);
        }
        _ => {
            kernel.spans.truncate(b % 4);
            if let Some(w) = kernel.params.iter_mut().find_map(|p| p.window.as_mut()) {
                w.block = vec![usize::MAX; b % 4];
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn a_broken_kernel_gives_an_answer(
        which in 0_usize..20,
        breaks in prop::collection::vec((0_usize..10, 0_usize..10_000, 0_usize..10_000), 1..4),
    ) {
        let mut all = vec![kernels::matmul(DType::Bf16, 256, 256, 512), kernels::lookup()];
        all.extend(memory::views().into_iter().take(6));
        all.extend(memory::control());
        let mut kernel = all.swap_remove(which % all.len());
        for (what, a, b) in breaks {
            break_it(&mut kernel, what, a, b);
        }
        if let Err(report) = kernel.mosaic() {
            prop_assert!(report.has_errors() && report.diagnostics.iter().all(|d| d.code.starts_with("K06")));
        }
    }
}

/// The first diagnostic of a kernel that is not emitted.
fn refusal(b: Builder) -> String {
    b.finish().mosaic().expect_err("the kernel is wrong").to_string()
}

#[test]
fn a_symbolic_array_in_vmem_is_refused_at_its_line() {
    let mut b = Builder::new("k");
    let x = b.whole("x", Role::Input, DType::F32, &["m", "128"], MemorySpace::Vmem);
    b.load(x, DType::F32, &[8, 128]);
    insta::assert_snapshot!(refusal(b));
}

#[test]
fn a_bf16_constant_in_smem_is_refused_at_its_line() {
    let mut b = Builder::new("k");
    let base = b.whole("x", Role::Output, DType::Bf16, &["8"], MemorySpace::Smem);
    let value = b.op(OpKind::Constant(Literal::Float(1.0)), Type::Scalar(DType::Bf16));
    b.effect(OpKind::StoreScalar { base, offsets: vec![Offset::Const(0)], value });
    insta::assert_snapshot!(refusal(b));
}

#[test]
fn mlir_says_what_our_own_checks_let_pass() {
    let mut b = Builder::new("k");
    let x = b.fill(DType::F32, &[8, 128], 0.0);
    let y = b.fill(DType::F32, &[8, 256], 0.0);
    b.op(kernels::binary(Binary::Add, x, y), Type::tile(DType::F32, [8, 128]));
    insta::assert_snapshot!(refusal(b));
}
