//! Emit, read, run: the kernel that comes back makes the same results, and emits the same module when that is read again.

use kernel_ir::diag::Report;
use kernel_ir::exec::{Array, Options, Outputs, run};
use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{ArrayType, DType, DimExpr, Kernel, Param, Role};
use kernel_ir::mosaic::call::Operand;
use kernel_ir::mosaic::{Module, read, read::CallTypes};

use crate::cases::{Case, together};
use crate::{elementwise, foreign, kernels, layout, memory};

/// A kernel's module. Reading it and emitting what was read settles: nothing changes any more from the second time on.
fn reread(kernel: &Kernel) -> Module {
    let name = &kernel.name;
    let again = |module: &Module| {
        let kernel = read::kernel(&module.bytecode, None);
        let kernel = kernel.unwrap_or_else(|e| panic!("{name}: {e:?}\n{}", module.text().unwrap()));
        kernel.mosaic().unwrap_or_else(|e| panic!("{name}: {e:?}\n{kernel}"))
    };
    let module = kernel.mosaic().unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let second = again(&again(&module));
    let third = again(&second);
    let texts = || format!("{}\n{}", second.text().unwrap(), third.text().unwrap());
    assert!(second.bytecode == third.bytecode, "{name} changes each time:\n{}", texts());
    module
}

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

fn inputs(kernel: &Kernel) -> impl Iterator<Item = &Param> {
    kernel.params.iter().filter(|p| matches!(p.role, Role::Prefetch | Role::Input))
}

/// Runs a kernel on arguments of its own, by name.
fn run_first(kernel: &Kernel, arguments: &[(String, Array)], dims: &Dims) -> Option<Outputs> {
    let named: Vec<(&str, &Array)> = arguments.iter().map(|(n, a)| (n.as_str(), a)).collect();
    run(kernel, &named, &Options { dims: dims.clone(), ..Options::default() }).ok()
}

/// Runs what was read, with the operands that the module is called with.
fn run_again(
    module: &Module,
    read: &Kernel,
    arguments: &[(String, Array)],
    dims: &Dims,
) -> Result<Outputs, Report> {
    let int = |e: &DimExpr| i32::try_from(e.eval(dims).unwrap()).unwrap();
    let mut options = Options::default();
    let mut axes = read.grid.iter().filter_map(|g| match &g.extent {
        DimExpr::Dim(name) => Some(name.to_string()),
        _ => None,
    });
    let mut operands = vec![];
    for operand in &module.operands {
        match operand {
            Operand::Expr(e) => drop(options.dims.insert(axes.next().unwrap(), int(e).into())),
            Operand::Exprs(es) => {
                let numbers: Vec<i32> = es.iter().map(int).collect();
                operands.push(Array::from_fn([es.len()], |i| numbers[i]));
            }
            Operand::Argument(name) => {
                operands.push(arguments.iter().find(|(n, _)| n == name).unwrap().1.clone());
            }
        }
    }
    let operands: Vec<Array> = inputs(read)
        .zip(operands)
        .map(|(p, a)| match p.array.as_ref().unwrap().dtype {
            // Truth values cross the border as numbers.
            DType::I32 if a.dtype() == DType::Bool => {
                Array::from_f64(DType::I32, a.shape().to_vec(), &a.to_f64()).unwrap()
            }
            _ => a,
        })
        .collect();
    let named: Vec<(&str, &Array)> = inputs(read).map(|p| &*p.name).zip(&operands).collect();
    run(read, &named, &options)
}

/// The call of a module with dims of these sizes.
fn call(kernel: &Kernel, module: &Module, dims: &Dims) -> CallTypes {
    let array = |name: &str| {
        let p = kernel.params.iter().find(|p| &*p.name == name).unwrap();
        let ArrayType { dtype, shape } = p.array.as_ref().unwrap();
        let known = |e: &DimExpr| DimExpr::Const(e.eval(dims).unwrap());
        ArrayType { dtype: *dtype, shape: shape.iter().map(known).collect() }
    };
    let operand = |operand: &Operand| match operand {
        Operand::Expr(_) => ArrayType { dtype: DType::I32, shape: vec![] },
        Operand::Exprs(es) => ArrayType { dtype: DType::I32, shape: vec![es.len().into()] },
        Operand::Argument(name) => array(name),
    };
    CallTypes {
        operands: Some(module.operands.iter().map(operand).collect()),
        results: module.results.iter().map(|name| array(name)).collect(),
    }
}

/// Whether the executor ran the kernel, and then got the same from what was read.
fn same(kernel: &Kernel, dims: &[(&str, i64)]) -> bool {
    let dims: Dims = dims.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let module = reread(kernel);
    let read = read::kernel(&module.bytecode, Some(&call(kernel, &module, &dims))).unwrap();
    let arguments: Vec<(String, Array)> =
        inputs(kernel).enumerate().map(|(i, p)| (p.name.to_string(), array_of(p, &dims, i))).collect();
    let Some(first) = run_first(kernel, &arguments, &dims) else { return false };
    let again = match run_again(&module, &read, &arguments, &dims) {
        Ok(again) => again,
        Err(e) => panic!("{e:?}\n{kernel}\n{read}"),
    };
    for ((name, x), (_, y)) in first.iter().zip(again.iter()) {
        // Where nothing was written, a number is no truth value.
        let undefined = |y: f64| x.dtype() == DType::Bool && y != 0.0 && y != 1.0;
        let equal =
            |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan() || undefined(*y);
        let (a, b) = (x.to_f64(), y.to_f64());
        assert_eq!(a.len(), b.len());
        let differs = a.iter().zip(&b).position(|p| !equal(p));
        assert!(differs.is_none(), "{} {name} differs at {differs:?}: {kernel}\n{read}", kernel.name);
    }
    true
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
