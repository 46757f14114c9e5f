//! No module makes the reader panic, hang or take much memory: modules with anything in any place, and absurd sizes.

use proptest::prelude::*;

use super::build::Make;
use crate::mosaic::read::module::{Attribute, Block, Module, Operation, TypeId, ValueId};

/// A kernel of many operations, so that most code has something to go wrong with.
fn sample() -> Module {
    let mut m = Make::new();
    let (bounds, axes, zero_axes) = (m.ints(&[2, i64::MIN]), m.ints(&[1, 0]), m.ints(&[0]));
    let block = m.ints(&[8, 128]);
    let symbol = m.attr(Attribute::Symbol("index".into()));
    let window = m.dictionary(&[("transform_indices", symbol), ("window_bounds", block)]);
    let none = m.dictionary(&[]);
    let windows = m.attr(Attribute::Array(vec![window, none, window]));
    let (prefetch, scratch) = (m.int(1), m.int(2));
    let attributes = [
        ("iteration_bounds", bounds),
        ("window_params", windows),
        ("scalar_prefetch", prefetch),
        ("scratch_operands", scratch),
    ];
    let (tile, smem) = ("vector<8x128xf32>", "memref<4xi32, smem>");
    let (vmem, any) = ("memref<8x128xf32, vmem>", "memref<?x128xf32, any>");
    let semaphore = "memref<!tpu.dma_semaphore, semaphore_mem>";
    m.function("main", &["i32", "i32", smem, vmem, any, vmem, vmem, semaphore], &attributes, |m, args| {
        let x = m.load(args[3], tile);
        let (zero, one, three) = (m.constant("i32", 0), m.constant("i32", 1), m.constant("i32", 3));
        let size = m.constant("i32", 8);
        let slice = m.op("tpu.memref_slice", &[args[4], zero, zero], "memref<8x128xf32, any>", &[]);
        let open = m.op("tpu.memref_slice", &[args[4], zero, zero, size], "memref<?x128xf32, any>", &[]);
        m.op("tpu.memref_squeeze", &[open], "memref<?x128xf32, any>", &[]);
        m.effect("tpu.enqueue_dma", &[slice, args[6], args[7]], &[]);
        m.effect("tpu.wait_dma2", &[args[7], slice, args[6]], &[]);
        let numbers = m.opaque("#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>");
        let start = m.float("vector<8x8xf32>", 0.0);
        let dot = m.op("tpu.matmul", &[x, x, start], "vector<8x8xf32>", &[("dimension_numbers", numbers)]);
        let flipped = m.op("tpu.transpose", &[dot], "vector<8x8xf32>", &[("permutation", axes)]);
        let (kind, start) = (m.opaque("#vector.kind<maximumf>"), m.float("vector<8xf32>", -1.0));
        let reduced = [("kind", kind), ("reduction_dims", zero_axes)];
        let most = m.op("vector.multi_reduction", &[flipped, start], "vector<8xf32>", &reduced);
        let column = m.op("vector.shape_cast", &[most], "vector<8x1xf32>", &[]);
        let wide = m.op("vector.broadcast", &[column], tile, &[]);
        let less = m.int(4);
        let mask = m.op("arith.cmpf", &[x, wide], "vector<8x128xi1>", &[("predicate", less)]);
        let y = m.op("arith.select", &[mask, x, wide], tile, &[]);
        let (axis, index) = (m.int(1), m.constant("index", 1));
        let y = m.op("tpu.dynamic_rotate", &[y, three], tile, &[("dimension", axis)]);
        let narrow = m.op("arith.truncf", &[y], "vector<8x128xbf16>", &[]);
        let y = m.op("arith.extf", &[narrow], tile, &[]);
        let n = m.op("memref.load", &[args[2], index], "i32", &[]);
        let body = m.region(&["i32", tile], |m, inner| {
            let less = m.int(2);
            let cond = m.op("arith.cmpi", &[inner[0], args[0]], "i1", &[("predicate", less)]);
            let then = m.region(&[], |m, _| {
                let z = m.op("arith.addf", &[inner[1], y], tile, &[]);
                m.effect("scf.yield", &[z], &[]);
            });
            let otherwise = m.region(&[], |m, _| m.effect("scf.yield", &[inner[1]], &[]));
            let z = m.op_with("scf.if", &[cond], &[tile], &[], vec![then, otherwise]);
            m.effect("scf.yield", &z, &[]);
        });
        let z = m.op_with("scf.for", &[zero, n, one, x], &[tile], &[], vec![body]);
        let before = m.region(&["i32"], |m, inner| {
            let less = m.int(2);
            let cond = m.op("arith.cmpi", &[inner[0], n], "i1", &[("predicate", less)]);
            m.effect("scf.condition", &[cond, inner[0], inner[0]], &[]);
        });
        let after = m.region(&["i32", "i32"], |m, inner| {
            let next = m.op("arith.addi", &[inner[0], inner[1]], "i32", &[]);
            m.effect("scf.yield", &[next], &[]);
        });
        let w = m.op_with("scf.while", &[one], &["i32", "i32"], &[], vec![before, after]);
        m.effect("memref.store", &[w[0], args[2], index], &[]);
        let region = m.region(&[], |m, _| {
            let scratch = m.op("memref.alloca", &[], vmem, &[]);
            m.store(scratch, z[0], 2);
            m.effect("tpu.yield", &[], &[]);
        });
        m.op_with("tpu.region", &[], &[], &[], vec![region]);
        m.store(args[5], z[0], 2);
        m.effect("func.return", &[], &[]);
    });
    m.function("index", &["i32", "i32", smem], &[], |m, args| {
        let at = m.op("arith.index_cast", &[args[0]], "index", &[]);
        let i = m.op("memref.load", &[args[2], at], "i32", &[]);
        m.effect("func.return", &[i, args[1]], &[]);
    });
    m.module
}

#[test]
fn the_sample_is_a_kernel() {
    let m = Make::of(sample());
    m.lower().unwrap_or_else(|e| panic!("{e:?}"));
}

/// Operation `n` of all, counted round.
fn nth(ops: &mut [Operation], n: &mut usize) -> Option<Operation> {
    for op in ops {
        if *n == 0 {
            return Some(op.clone());
        }
        *n -= 1;
        for Block { operations, .. } in op.regions.iter_mut().flat_map(|r| &mut r.blocks) {
            if let Some(found) = nth(operations, n) {
                return Some(found);
            }
        }
    }
    None
}

/// Calls `f` with operation `n`.
fn with_nth(ops: &mut [Operation], n: &mut usize, f: &mut impl FnMut(&mut Operation)) -> bool {
    ops.iter_mut().any(|op| {
        if *n == 0 {
            f(op);
            return true;
        }
        *n -= 1;
        op.regions.iter_mut().flat_map(|r| &mut r.blocks).any(|b| with_nth(&mut b.operations, n, f))
    })
}

fn count(ops: &[Operation]) -> usize {
    let inside = |op: &Operation| {
        op.regions.iter().flat_map(|r| &r.blocks).map(|b| count(&b.operations)).sum::<usize>()
    };
    ops.iter().map(|op| 1 + inside(op)).sum()
}

/// One change: an operand, a name, a type or an attribute becomes another one of the module, or something is lost.
fn mutate(module: &mut Module, [what, a, b, c]: [u32; 4]) {
    let total = count(&module.body);
    let (values, types) = (module.values.len() as u32, module.types.len() as u32);
    let attributes = module.attributes.len() as u32;
    let other = nth(&mut module.body.clone(), &mut (b as usize % total)).unwrap();
    let numbers = [0, 1, -1, 2, 7, 8, 127, 1 << 31, i64::MIN, i64::MAX, 1 << 40];
    let number = numbers[c as usize % numbers.len()];
    match what % 10 {
        0 => module.values[(a % values) as usize] = TypeId(b % types),
        1 => {
            let ty = module.types[(b % types) as usize].clone();
            module.types[(a % types) as usize] = ty;
        }
        2 => match &mut module.attributes[(a % attributes) as usize] {
            Attribute::Integer { value, .. } => *value = number,
            Attribute::DenseArray { values, .. } if !values.is_empty() => {
                let at = b as usize % values.len();
                values[at] = number;
            }
            Attribute::DenseArray { values, .. } => values.push(number),
            Attribute::Opaque(text) => {
                let at = b as usize % text.len();
                *text =
                    text.char_indices().filter(|(i, _)| *i != at).map(|(_, c)| c).collect::<String>().into();
            }
            _ => {}
        },
        3 => {
            let attribute = module.attributes[(b % attributes) as usize].clone();
            // A dictionary of itself is no module.
            if !matches!(attribute, Attribute::Dictionary(_) | Attribute::Array(_)) {
                module.attributes[(a % attributes) as usize] = attribute;
            }
        }
        _ => {
            let change = |op: &mut Operation| match what % 10 {
                4 if !op.operands.is_empty() => {
                    let at = b as usize % op.operands.len();
                    op.operands[at] = ValueId(c % values);
                }
                5 => op.name = other.name.clone(),
                6 => op.attributes = other.attributes,
                7 => op.operands.truncate(b as usize % 4),
                8 => op.operands.push(ValueId(c % values)),
                _ => match b % 4 {
                    0 => op.results.clear(),
                    1 => op.regions = other.regions.clone(),
                    2 => op.regions.iter_mut().flat_map(|r| &mut r.blocks).for_each(|b| {
                        b.operations.pop();
                    }),
                    _ => op.regions.iter_mut().for_each(|r| r.blocks.clear()),
                },
            };
            let mut change = change;
            with_nth(&mut module.body, &mut (a as usize % total), &mut change);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn any_module_gets_an_answer(changes in prop::collection::vec(any::<[u32; 4]>(), 1..6)) {
        let mut module = sample();
        for change in changes {
            mutate(&mut module, change);
        }
        // Errors are answers; what is a kernel hangs together.
        let _answer = Make::of(module).lower();
    }
}

#[test]
fn deep_nesting_is_refused() {
    fn nest(m: &mut Make, depth: usize, cond: ValueId, bounds: [ValueId; 2]) {
        let [zero, one] = bounds;
        if depth == 0 {
            return m.effect("cf.assert", &[cond], &[]);
        }
        let arguments: &[&str] = if depth.is_multiple_of(3) { &["i32"] } else { &[] };
        let end = if depth % 3 == 1 { "tpu.yield" } else { "scf.yield" };
        let region = m.region(arguments, |m, _| {
            nest(m, depth - 1, cond, bounds);
            m.effect(end, &[], &[]);
        });
        let (name, operands) = match depth % 3 {
            0 => ("scf.for", vec![zero, one, one]),
            1 => ("tpu.region", vec![]),
            _ => ("scf.if", vec![cond]),
        };
        m.op_with(name, &operands, &[], &[], vec![region]);
    }
    let made = |depth| {
        let mut m = Make::new();
        m.main(&["memref<4xi1, smem>"], |m, args| {
            let at = m.constant("index", 0);
            let cond = m.op("memref.load", &[args[0], at], "i1", &[]);
            let bounds = [m.constant("i32", 0), m.constant("i32", 1)];
            nest(m, depth, cond, bounds);
        });
        m.refusal()
    };
    assert!(made(58).starts_with("none"), "{}", made(58));
    assert!(made(300).contains("K0811") && made(300).contains("deep"), "{}", made(300));
}

#[test]
fn what_a_small_module_unrolls_to_is_bounded() {
    // 16 calls of a function that makes 16 calls, six deep.
    let mut m = Make::new();
    for level in 0..6 {
        let callee = m.attr(Attribute::Symbol(format!("f{}", level + 1).into()));
        m.function(&format!("f{level}"), &["i32"], &[], |m, args| {
            let mut x = args[0];
            for _ in 0..16 {
                x = m.op("func.call", &[x], "i32", &[("callee", callee)]);
            }
            m.effect("func.return", &[x], &[]);
        });
    }
    m.function("f6", &["i32"], &[], |m, args| {
        let x = m.op("arith.addi", &[args[0], args[0]], "i32", &[]);
        m.effect("func.return", &[x], &[]);
    });
    let callee = m.attr(Attribute::Symbol("f0".into()));
    m.main(&["memref<16xi32, smem>"], |m, args| {
        let (one, at) = (m.constant("i32", 1), m.constant("index", 0));
        let x = m.op("func.call", &[one], "i32", &[("callee", callee)]);
        m.effect("memref.store", &[x, args[0], at], &[]);
    });
    assert!(m.refusal().contains("gets more than"), "{}", m.refusal());

    let mut m = Make::new();
    m.main(&["memref<8x128xf32, vmem>"], |m, args| {
        let x = m.load(args[0], "vector<8x128xf32>");
        let (axis, times) = (m.int(0), m.int(1 << 20));
        let y = m.op("tpu.repeat", &[x], "vector<8388608x128xf32>", &[("dimension", axis), ("times", times)]);
        m.store(args[0], y, 2);
    });
    assert!(
        m.refusal().contains("larger than any TPU's memory") || m.refusal().contains("`times`"),
        "{}",
        m.refusal()
    );
}
