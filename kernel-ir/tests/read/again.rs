//! Emit, read, run: the kernel that comes back makes the same results, and emits the same module when that is read again.

use kernel_ir::exec::Array;
use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{
    Binary, DType, Elem, Kernel, MemorySpace, OpKind, Param, RefType, Role, Semantics, Type,
};

use crate::build::Builder;
use crate::cases::{Case, together};
use crate::trip::{self, inputs, reread};
use crate::{elementwise, foreign, kernels, layout, memory};

/// Numbers of many signs and sizes.
fn numbers(dtype: DType, shape: Vec<usize>, seed: usize) -> Array {
    let len = shape.iter().product::<usize>();
    let number = |i: usize| {
        let n = ((i * 37 + seed * 11) % 101) as f64 - 50.0;
        if dtype.is_float() { n / 8.0 } else { n }
    };
    let numbers: Vec<f64> = (0..len).map(number).collect();
    Array::from_f64(dtype, shape, &numbers).unwrap()
}

fn array_of(p: &Param, dims: &Dims, seed: usize) -> Array {
    let array = p.array.as_ref().unwrap();
    let shape = array.shape.iter().map(|e| usize::try_from(e.eval(dims).unwrap()).unwrap()).collect();
    numbers(array.dtype, shape, seed)
}

/// Whether the executor ran the kernel, and then got the same from what was read.
fn same(kernel: &Kernel, dims: &[(&str, i64)]) -> bool {
    let dims: Dims = dims.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let arguments: Vec<(String, Array)> =
        inputs(kernel).enumerate().map(|(i, p)| (p.name.to_string(), array_of(p, &dims, i))).collect();
    trip::same(kernel, &arguments, dims).is_some()
}

fn each_same(cases: Vec<Case>) -> usize {
    cases.iter().filter(|case| same(&together(&case.name, &[*case]), &[])).count()
}

#[test]
fn elementwise_operations_come_back() {
    assert!(each_same(elementwise::tiles()) > 100);
}

#[test]
fn scalar_operations_come_back() {
    assert!(each_same(elementwise::scalars()) > 100);
}

#[test]
fn operations_that_move_elements_come_back() {
    assert!(each_same(layout::moves()) > 50);
}

#[test]
fn products_come_back() {
    assert!(each_same(layout::dots()) > 20);
}

#[test]
fn operations_of_other_peoples_modules_come_back() {
    each_same(foreign::tiles());
    for kernel in foreign::memory() {
        same(&kernel, &[]);
    }
    reread(&foreign::ring());
}

/// Each of two cores signals the other one, and writes its number when the other one has signalled.
fn cores() -> Kernel {
    let mut b = Builder::new("cores");
    b.axis(2.into(), Semantics::Parallel);
    let scalar = Type::Scalar(DType::I32);
    let tile = Type::tile(DType::I32, [8, 128]);
    let o = b.windowed("o", Role::Output, DType::I32, &["16", "128"], &[8, 128], |b, i| vec![i[0], b.int(0)]);
    let counter = RefType { elem: Elem::Semaphore, shape: vec![], space: MemorySpace::Semaphore };
    let sem = b.param("sem", Role::Scratch, counter, None, None);
    let (i, one) = (b.op(OpKind::ProgramId { axis: 0 }, scalar.clone()), b.int(1));
    let other = b.op(OpKind::Binary { op: Binary::Sub, x: one, y: i }, scalar);
    b.effect(OpKind::SemSignal { sem, amount: one, device: None, core: Some(other) });
    b.effect(OpKind::SemWait { sem, amount: one });
    let number = b.op(OpKind::Broadcast { x: i }, tile);
    b.store(o, number);
    b.finish()
}

#[test]
fn signals_to_other_cores_come_back() {
    assert!(same(&cores(), &[]));
}

#[test]
fn views_copies_and_control_flow_come_back() {
    let kernels = [memory::views(), memory::control()].concat();
    let ran = kernels.iter().filter(|k| same(k, &[("g", 3), ("m", 100), ("n", 300)])).count();
    assert!(ran * 2 > kernels.len(), "{ran} of {} ran", kernels.len());
}

#[test]
fn whole_kernels_of_any_size_come_back() {
    for dtype in [DType::Bf16, DType::F32] {
        let kernel = kernels::matmul(dtype, 16, 128, 128);
        for (m, k, n) in [(1, 7, 1), (40, 256, 128), (33, 300, 130)] {
            assert!(same(&kernel, &[("m", m), ("k", k), ("n", n)]));
        }
    }
    reread(&kernels::lookup());
}
