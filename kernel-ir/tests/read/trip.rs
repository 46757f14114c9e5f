//! There and back: a kernel is emitted and read, and what was read must do the same.

use kernel_ir::exec::{Array, Options, Outputs, call, run};
use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{ArrayType, DType, DimExpr, Kernel, Param, Role};
use kernel_ir::mosaic::call::Operand;
use kernel_ir::mosaic::{Module, read, read::CallTypes};

/// A kernel's module. Reading it and emitting what was read settles: nothing changes any more from the second time on.
pub(crate) fn reread(kernel: &Kernel) -> Module {
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

/// The parameters that the caller fills, in the order of the module's operands.
pub(crate) fn inputs(kernel: &Kernel) -> impl Iterator<Item = &Param> {
    let of = |role| kernel.params.iter().filter(move |p| p.role == role);
    of(Role::Prefetch).chain(of(Role::Input))
}

/// The call of a module with dims of these sizes.
fn call_types(kernel: &Kernel, module: &Module, dims: &Dims) -> CallTypes {
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

/// Runs what was read, with the operands that the module is called with.
fn run_again(module: &Module, read: &Kernel, arguments: &[(String, Array)], dims: &Dims) -> Vec<Array> {
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
    call(read, &operands, &options).unwrap_or_else(|e| panic!("{e:?}\n{read}"))
}

/// What the kernel makes of these arguments, unless the executor refuses it; then what was read must make the same,
/// bit for bit. `dims` has the sizes that no argument shows.
pub(crate) fn same(kernel: &Kernel, arguments: &[(String, Array)], mut dims: Dims) -> Option<Outputs> {
    for p in inputs(kernel) {
        let array = &arguments.iter().find(|(n, _)| **n == *p.name).unwrap().1;
        for (e, n) in p.array.as_ref().unwrap().shape.iter().zip(array.shape()) {
            if let DimExpr::Dim(name) = e {
                dims.insert(name.to_string(), *n as i64);
            }
        }
    }
    let module = reread(kernel);
    let read = read::kernel(&module.bytecode, Some(&call_types(kernel, &module, &dims))).unwrap();
    let named: Vec<(&str, &Array)> = arguments.iter().map(|(n, a)| (n.as_str(), a)).collect();
    let first = run(kernel, &named, &Options { dims: dims.clone(), ..Options::default() }).ok()?;
    let again = run_again(&module, &read, arguments, &dims);
    for ((name, x), y) in first.iter().zip(again) {
        // Where nothing was written, a number is no truth value.
        let undefined = |y: f64| x.dtype() == DType::Bool && y != 0.0 && y != 1.0;
        let equal =
            |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan() || undefined(*y);
        let (a, b) = (x.to_f64(), y.to_f64());
        assert_eq!(a.len(), b.len());
        let differs = a.iter().zip(&b).position(|p| !equal(p));
        assert!(differs.is_none(), "{} {name} differs at {differs:?}: {kernel}\n{read}", kernel.name);
    }
    Some(first)
}
