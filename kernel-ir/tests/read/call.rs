//! What a call adds to a module: shapes of arrays, and which of them are results.

use kernel_ir::ir::{ArrayType, DType, DimExpr, Kernel, Role};
use kernel_ir::mosaic::read::{self, CallTypes};

use crate::kernels::matmul;

fn array(dtype: DType, shape: &[i64]) -> ArrayType {
    ArrayType { dtype, shape: shape.iter().map(|n| DimExpr::Const(*n)).collect() }
}

/// A matmul is called with three grid bounds, its dims, and two arrays.
fn operands(x: &[i64], w: &[i64]) -> Vec<ArrayType> {
    let bound = || array(DType::I32, &[]);
    let (x, w) = (array(DType::F32, x), array(DType::F32, w));
    vec![bound(), bound(), bound(), array(DType::I32, &[1]), x, w]
}

fn read(call: Option<&CallTypes>) -> Result<Kernel, String> {
    let module = matmul(DType::F32, 16, 128, 128).mosaic().unwrap();
    let first = |e: kernel_ir::diag::Report| {
        let d = &e.diagnostics[0];
        format!("{} {}", d.code, d.message)
    };
    read::kernel(&module.bytecode, call).map_err(first)
}

fn shapes(kernel: &Kernel) -> Vec<String> {
    let shape = |a: &ArrayType| a.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let arrays = kernel.params.iter().map(|p| {
        let array = p.array.as_ref().map_or_else(String::new, shape);
        format!("{} {array}", p.name)
    });
    arrays.collect()
}

#[test]
fn without_a_call_lengths_are_dims() {
    let kernel = read(None).unwrap();
    let all = ["prefetch0 1", "in0 in0_0xin0_1", "in1 in1_0xin1_1", "out0 out0_0xout0_1", "scratch0 "];
    assert_eq!(shapes(&kernel), all);
    let grid: Vec<_> = kernel.grid.iter().map(|g| g.extent.to_string()).collect();
    assert_eq!(grid, ["grid0", "grid1", "grid2"]);
}

#[test]
fn a_call_says_the_lengths() {
    let call = CallTypes {
        operands: Some(operands(&[20, 300], &[300, 130])),
        results: vec![array(DType::F32, &[20, 130])],
    };
    let all = ["prefetch0 1", "in0 20x300", "in1 300x130", "out0 20x130", "scratch0 "];
    assert_eq!(shapes(&read(Some(&call)).unwrap()), all);
}

#[test]
fn the_number_of_results_says_which_arrays_they_are() {
    let results = vec![array(DType::F32, &[300, 130]), array(DType::F32, &[20, 130])];
    let kernel = read(Some(&CallTypes { operands: None, results })).unwrap();
    let outputs: Vec<_> = kernel.params.iter().filter(|p| p.role == Role::Output).collect();
    assert_eq!(outputs.len(), 2);
    assert_eq!(shapes(&kernel)[2..4], ["out0 300x130", "out1 20x130"]);
}

#[test]
fn a_call_that_does_not_fit_is_refused() {
    let out = || vec![array(DType::F32, &[20, 130])];
    let call = |operands, results| read(Some(&CallTypes { operands: Some(operands), results })).unwrap_err();
    let mut few = operands(&[20, 300], &[300, 130]);
    few.pop();
    assert_eq!(call(few, out()), "K0812 `func.func` takes 6 operands, but is called with 5");
    let mut other = operands(&[20, 300], &[300, 130]);
    other[4].dtype = DType::Bf16;
    assert_eq!(
        call(other, out()),
        "K0812 `func.func` takes `in0` as a vmem f32[16, 128], but is called with bf16[20, 300]"
    );
    let flat = operands(&[6000], &[300, 130]);
    assert_eq!(
        call(flat, out()),
        "K0812 `func.func` takes `in0` as a vmem f32[16, 128], but is called with f32[6000]"
    );
    let four = vec![array(DType::F32, &[20, 130]); 4];
    assert_eq!(
        call(operands(&[20, 300], &[300, 130]), four),
        "K0812 `func.func` has 3 arrays, but is called for 4 results"
    );
}
