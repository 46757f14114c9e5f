//! Control flow, windows and memory, run by the executor.

use super::build::Make;
use crate::exec::{Array, Options, call};
use crate::ir::{Kernel, WindowUnit};
use crate::mosaic::read::module::{AffineExpr, Attribute, ValueId};

const SCALARS: &str = "memref<16xi32, smem>";

/// Runs a kernel of one step that fills 16 scalars of SMEM.
fn scalars(body: impl FnOnce(&mut Make, ValueId)) -> Vec<f64> {
    let mut m = Make::new();
    m.main(&[SCALARS], |m, args| body(m, args[0]));
    let kernel = m.lower().unwrap_or_else(|e| panic!("{e:?}"));
    call(&kernel, &[], &Options::default()).unwrap_or_else(|e| panic!("{e:?}\n{kernel}")).remove(0).to_f64()
}

fn put(m: &mut Make, base: ValueId, at: i64, value: ValueId) {
    let at = m.constant("index", at);
    m.effect("memref.store", &[value, base, at], &[]);
}

fn add(m: &mut Make, x: ValueId, y: ValueId) -> ValueId {
    m.op("arith.addi", &[x, y], "i32", &[])
}

#[test]
fn a_loop_takes_any_step() {
    for (lo, hi, step) in [(2, 17, 5), (0, 10, 10), (3, 3, 2), (5, 0, 3), (-4, 5, 4)] {
        for constant in [true, false] {
            let got = scalars(|m, out| {
                let (lo, hi) = (m.constant("i32", lo), m.constant("i32", hi));
                let step_value = m.constant("i32", step);
                // A sum is not known to be a constant.
                let zero = m.constant("i32", 0);
                let step = if constant { step_value } else { add(m, step_value, zero) };
                let body = m.region(&["i32", "i32", "i32"], |m, args| {
                    let one = m.constant("i32", 1);
                    let (sum, count) = (add(m, args[1], args[0]), add(m, args[2], one));
                    m.effect("scf.yield", &[sum, count], &[]);
                });
                let results =
                    m.op_with("scf.for", &[lo, hi, step, zero, zero], &["i32", "i32"], &[], vec![body]);
                put(m, out, 0, results[0]);
                put(m, out, 1, results[1]);
            });
            let steps = || (lo..hi).step_by(step as usize);
            let expected = [steps().sum::<i64>() as f64, steps().count() as f64];
            assert_eq!(got[..2], expected, "{lo}..{hi} by {step}");
        }
    }
}

#[test]
fn a_condition_hands_on_what_it_likes() {
    // while (x = 3 n, n < 5) { n = n + 1; sum += x }, where the body sees x only.
    let got = scalars(|m, out| {
        let zero = m.constant("i32", 0);
        let before = m.region(&["i32", "i32"], |m, args| {
            let (three, end, less) = (m.constant("i32", 3), m.constant("i32", 5), m.int(2));
            let x = m.op("arith.muli", &[args[0], three], "i32", &[]);
            let answer = m.op("arith.cmpi", &[args[0], end], "i1", &[("predicate", less)]);
            m.effect("scf.condition", &[answer, args[1], x, args[0]], &[]);
        });
        let after = m.region(&["i32", "i32", "i32"], |m, args| {
            let one = m.constant("i32", 1);
            let (n, sum) = (add(m, args[2], one), add(m, args[0], args[1]));
            m.effect("scf.yield", &[n, sum], &[]);
        });
        let results = m.op_with("scf.while", &[zero, zero], &["i32", "i32", "i32"], &[], vec![before, after]);
        for (i, x) in results.iter().enumerate() {
            put(m, out, i as i64, *x);
        }
    });
    assert_eq!(got[..3], [30.0, 15.0, 5.0]);
}

#[test]
fn a_condition_may_store() {
    let got = scalars(|m, out| {
        let zero = m.constant("i32", 0);
        let before = m.region(&["i32"], |m, args| {
            let (end, less) = (m.constant("i32", 4), m.int(2));
            let at = m.op("arith.index_cast", &[args[0]], "index", &[]);
            m.effect("memref.store", &[args[0], out, at], &[]);
            let answer = m.op("arith.cmpi", &[args[0], end], "i1", &[("predicate", less)]);
            let one = m.constant("i32", 1);
            let next = add(m, args[0], one);
            m.effect("scf.condition", &[answer, next], &[]);
        });
        let after = m.region(&["i32"], |m, args| m.effect("scf.yield", &[args[0]], &[]));
        m.op_with("scf.while", &[zero], &["i32"], &[], vec![before, after]);
    });
    assert_eq!(got[..5], [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn branches_yield_and_functions_are_inlined() {
    let mut m = Make::new();
    m.function("twice", &["i32"], &[], |m, args| {
        let y = add(m, args[0], args[0]);
        m.effect("func.return", &[y], &[]);
    });
    m.main(&[SCALARS], |m, args| {
        let (three, yes) = (m.constant("i32", 3), m.constant("i1", 1));
        let callee = m.attr(Attribute::Symbol("twice".into()));
        let six = m.op("func.call", &[three], "i32", &[("callee", callee)]);
        let then = m.region(&[], |m, _| {
            let y = m.op("func.call", &[six], "i32", &[("callee", callee)]);
            m.effect("scf.yield", &[y], &[]);
        });
        let otherwise = m.region(&[], |m, _| m.effect("scf.yield", &[three], &[]));
        let y = m.op_with("scf.if", &[yes], &["i32"], &[], vec![then, otherwise])[0];
        put(m, args[0], 0, y);
    });
    let kernel = m.lower().unwrap();
    assert_eq!(call(&kernel, &[], &Options::default()).unwrap()[0].to_f64()[0], 12.0);
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let mut m = Make::new();
    let callee = m.attr(Attribute::Symbol("again".into()));
    m.function("again", &[], &[], |m, _| {
        m.effect("func.call", &[], &[("callee", callee)]);
        m.effect("func.call", &[], &[("callee", callee)]);
        m.effect("func.return", &[], &[]);
    });
    m.main(&[SCALARS], |m, _| m.effect("func.call", &[], &[("callee", callee)]));
    assert!(m.refusal().contains("is nested more than 60 deep"), "{}", m.refusal());
}

/// A kernel over a grid that copies blocks of 2x128 from where an affine map says, one a step.
fn gather(grid: &[i64], map: Vec<AffineExpr>, kind: Option<&str>) -> Kernel {
    let mut m = Make::new();
    let dims = grid.len();
    let bounds = m.ints(grid);
    let from = m.attr(Attribute::AffineMap { dims, symbols: 0, results: map });
    let block = m.ints(&[2, 128]);
    let kind = kind.map(|k| m.opaque(k));
    let mut input = vec![("transform_indices", from), ("window_bounds", block)];
    input.extend(kind.map(|k| ("window_kind", k)));
    let input = m.dictionary(&input);
    let step = (1..dims).fold(AffineExpr::Dim(0), |e, i| {
        let scaled = AffineExpr::Mul(Box::new((e, AffineExpr::Constant(grid[i]))));
        AffineExpr::Add(Box::new((scaled, AffineExpr::Dim(i))))
    });
    let to = m.attr(Attribute::AffineMap { dims, symbols: 0, results: vec![step, AffineExpr::Constant(0)] });
    let output = m.dictionary(&[("transform_indices", to), ("window_bounds", block)]);
    let windows = m.attr(Attribute::Array(vec![input, output]));
    let mut arguments = vec!["i32"; dims];
    arguments.extend(["memref<2x128xi32, vmem>"; 2]);
    m.function("main", &arguments, &[("iteration_bounds", bounds), ("window_params", windows)], |m, args| {
        let x = m.load(args[dims], "vector<2x128xi32>");
        m.store(args[dims + 1], x, 2);
        m.effect("func.return", &[], &[]);
    });
    m.lower().unwrap_or_else(|e| panic!("{e:?}"))
}

/// The first number of each pair of rows that the kernel copied from rows 0, 1, 2 and so on.
fn rows(kernel: &Kernel, steps: i64) -> Vec<f64> {
    let x = Array::from_fn([16, 128], |i| i as i32 / 128);
    let mut options = Options::default();
    options.dims.extend([("out0_0".to_owned(), 2 * steps), ("out0_1".to_owned(), 128)]);
    let out = call(kernel, &[x], &options).unwrap_or_else(|e| panic!("{e:?}\n{kernel}")).remove(0);
    out.to_f64().chunks(256).map(|c| c[0]).collect()
}

#[test]
fn affine_maps_choose_blocks() {
    use AffineExpr::{Add, CeilDiv, Constant, Dim, FloorDiv, Mod};
    let of = |e: fn(Box<(AffineExpr, AffineExpr)>) -> AffineExpr, n| e(Box::new((Dim(0), Constant(n))));
    let one = |e| rows(&gather(&[6], vec![e, Constant(0)], None), 6);
    assert_eq!(one(of(FloorDiv, 3)), [0.0, 0.0, 0.0, 2.0, 2.0, 2.0]);
    assert_eq!(one(of(CeilDiv, 3)), [0.0, 2.0, 2.0, 2.0, 4.0, 4.0]);
    assert_eq!(one(of(Mod, 4)), [0.0, 2.0, 4.0, 6.0, 0.0, 2.0]);
    let sum = Add(Box::new((Dim(0), Dim(1))));
    assert_eq!(rows(&gather(&[2, 3], vec![sum, Constant(0)], None), 6), [0.0, 2.0, 4.0, 2.0, 4.0, 6.0]);
}

#[test]
fn an_element_window_counts_elements_after_padding() {
    let map = || vec![AffineExpr::Dim(0), AffineExpr::Constant(0)];
    let kernel = gather(&[4], map(), Some("#tpu.element_window<[1, 0],[2, 0]>"));
    let unit = &kernel.params[0].window.as_ref().unwrap().unit;
    assert_eq!(*unit, WindowUnit::Elements(vec![(1, 2), (0, 0)]));
    assert_eq!(
        rows(&gather(&[4], map(), Some("#tpu.element_window<[0, 0],[0, 0]>")), 4),
        [0.0, 1.0, 2.0, 3.0]
    );
}

#[test]
fn a_window_without_bounds_that_stays_is_the_whole_array() {
    use AffineExpr::{Constant, Dim};
    let windowed = |index: AffineExpr, bounds: bool| {
        let mut m = Make::new();
        let steps = m.ints(&[3]);
        let map = m.attr(Attribute::AffineMap { dims: 1, symbols: 0, results: vec![index] });
        let mut entries = vec![("transform_indices", map)];
        entries.extend(bounds.then(|| ("window_bounds", m.ints(&[4]))));
        let window = m.dictionary(&entries);
        let windows = m.attr(Attribute::Array(vec![window]));
        let attributes = [("iteration_bounds", steps), ("window_params", windows)];
        m.function("main", &["i32", "memref<4xi32, smem>"], &attributes, |m, args| {
            // Each step stores its number behind the last one: only the whole array still has them at the end.
            m.effect("memref.store", &[args[0], args[1], args[0]], &[]);
            m.effect("func.return", &[], &[]);
        });
        m.lower().unwrap_or_else(|e| panic!("{e:?}"))
    };
    let whole = windowed(Constant(0), false);
    assert_eq!(whole.params[0].window, None);
    let out = call(&whole, &[], &Options::default()).unwrap_or_else(|e| panic!("{e:?}\n{whole}"));
    assert_eq!(out[0].to_f64()[..3], [0.0, 1.0, 2.0]);
    for (index, bounds) in [(Constant(0), true), (Dim(0), false), (Constant(1), false)] {
        assert!(windowed(index.clone(), bounds).params[0].window.is_some(), "{index:?} {bounds}");
    }
}

#[test]
fn a_signal_to_another_core_needs_a_grid_of_cores() {
    let signals = |grid: &[i64], semantics: &str| {
        let mut m = Make::new();
        let axis = m.opaque(semantics);
        let bounds = m.ints(grid);
        let semantics = m.attr(Attribute::Array(vec![axis; grid.len()]));
        let attributes = [("iteration_bounds", bounds), ("dimension_semantics", semantics)];
        m.function("main", &vec!["i32"; grid.len()], &attributes, |m, args| {
            let sem = m.op("tpu.sem_alloc", &[], "memref<!tpu.semaphore, semaphore_mem>", &[]);
            let one = m.constant("i32", 1);
            // Core `i` signals core `2 - i`, so that all must run at once.
            let two = m.constant("i32", 2);
            let other = m.op("arith.subi", &[two, args[0]], "i32", &[]);
            let segments = m.ints(&[1, 1, 0, 1, 0]);
            m.effect("tpu.sem_signal", &[sem, one, other], &[("operandSegmentSizes", segments)]);
            m.effect("tpu.sem_wait", &[sem, one], &[]);
            m.effect("func.return", &[], &[]);
        });
        m
    };
    let parallel = "#tpu.dimension_semantics<parallel>";
    let kernel = signals(&[3], parallel).lower().unwrap_or_else(|e| panic!("{e:?}"));
    call(&kernel, &[], &Options::default()).unwrap_or_else(|e| panic!("{e:?}\n{kernel}"));
    for (grid, semantics) in [(&[3, 1][..], parallel), (&[3], "#tpu.dimension_semantics<arbitrary>")] {
        let said = signals(grid, semantics).refusal();
        assert!(said.contains("K0811") && said.contains("names another core with `core_id`"), "{said}");
    }
}

#[test]
fn memory_is_seen_under_other_shapes_and_types() {
    let x = Array::from_fn([8, 128], |i| i as i32 * 70_001);
    let mut m = Make::new();
    m.main(&["memref<8x128xi32, vmem>", "memref<2x4x128xi32, vmem>"], |m, args| {
        let bits = m.op("tpu.memref_bitcast", &[args[0]], "memref<16x128xbf16, vmem>", &[]);
        let back = m.op("tpu.memref_bitcast", &[bits], "memref<8x128xi32, vmem>", &[]);
        let split = m.op("tpu.memref_reshape", &[back], "memref<2x4x128xi32, vmem>", &[]);
        let zero = m.constant("i32", 0);
        let one = m.constant("i32", 1);
        let half = m.op("tpu.memref_slice", &[split, one, zero, zero], "memref<1x4x128xi32, vmem>", &[]);
        let half = m.op("tpu.memref_squeeze", &[half], "memref<4x128xi32, vmem>", &[]);
        let rows = m.load(half, "vector<4x128xi32>");
        let zero = m.constant("index", 0);
        let (mask, value) = (m.constant("vector<1x4x128xi1>", 1), m.constant("vector<1x4x128xi32>", 7));
        let segments = m.ints(&[1, 1, 3, 1]);
        let segments = [("operandSegmentSizes", segments)];
        m.effect("tpu.vector_store", &[value, args[1], zero, zero, zero, mask], &segments);
        // A vector of fewer axes than the memory.
        let one = m.constant("index", 1);
        m.effect("tpu.vector_store", &[rows, args[1], one, zero, zero], &[]);
        let add = m.int(1);
        m.effect("tpu.vector_store", &[rows, args[1], zero, zero, zero], &[("add", add)]);
    });
    let kernel = m.lower().unwrap_or_else(|e| panic!("{e:?}"));
    let out = call(&kernel, std::slice::from_ref(&x), &Options::default())
        .unwrap_or_else(|e| panic!("{e:?}\n{kernel}"));
    let rows = &x.to_f64()[512..];
    let expected: Vec<f64> =
        rows.iter().map(|v| f64::from((*v as i32).wrapping_add(7))).chain(rows.to_vec()).collect();
    assert_eq!(out[0].to_f64(), expected);
}
