//! Random programs of integer ops, memory and control flow, against an evaluation op by op: what the plan fuses, delays,
//! moves and frees must not show.

use kernel_ir::exec::Array;
use kernel_ir::ir::{
    ArgReduction, Binary, Compare, DType, DotDims, MemorySpace, Offset, OpKind, Precision, Reduction, Role,
    Type, Value,
};
use proptest::prelude::*;

use crate::build::{Build, numbers, run_serial};

/// The two shapes of the programs: each op stays in one or goes to the other.
const SHAPES: [[usize; 2]; 2] = [[4, 6], [6, 4]];

/// Kinds of steps.
const OPS: u8 = 21;

/// A tile value with what it must hold.
#[derive(Clone)]
struct Known {
    value: Value,
    shape: [usize; 2],
    data: Vec<i32>,
}

struct Program {
    b: Build,
    values: Vec<Known>,
    /// Scratch of each shape, with what it must hold.
    memory: [(Value, Vec<i32>); 2],
}

fn ty(shape: [usize; 2]) -> Type {
    Type::tile(DType::I32, shape)
}

fn other(shape: [usize; 2]) -> [usize; 2] {
    [shape[1], shape[0]]
}

fn which(shape: [usize; 2]) -> usize {
    usize::from(shape != SHAPES[0])
}

impl Program {
    fn pick(&self, n: u8) -> Known {
        self.values[usize::from(n) % self.values.len()].clone()
    }

    /// A value of the same shape.
    fn pick_like(&self, shape: [usize; 2], n: u8) -> Known {
        let alike: Vec<_> = self.values.iter().filter(|v| v.shape == shape).collect();
        alike[usize::from(n) % alike.len()].clone()
    }

    fn push(&mut self, shape: [usize; 2], kind: OpKind, at: impl Fn(usize, usize) -> i32) {
        let value = self.b.op(ty(shape), kind);
        let data = (0..shape[0] * shape[1]).map(|i| at(i / shape[1], i % shape[1])).collect();
        self.values.push(Known { value, shape, data });
    }

    fn step(&mut self, [op, a, c, d]: [u8; 4]) {
        let x = self.pick(a);
        let ([m, n], v) = (x.shape, x.data.clone());
        let y = self.pick_like(x.shape, c);
        let at = move |i: usize, j: usize| v[i * n + j];
        let then = |r: usize, q: usize| y.data[r * n + q];
        match op % OPS {
            0..=3 => {
                type F = fn(i32, i32) -> i32;
                let table: [(Binary, F); 7] = [
                    (Binary::Add, i32::wrapping_add),
                    (Binary::Sub, i32::wrapping_sub),
                    (Binary::Mul, i32::wrapping_mul),
                    (Binary::Min, i32::min),
                    (Binary::Max, i32::max),
                    (Binary::And, |x, y| x & y),
                    (Binary::Xor, |x, y| x ^ y),
                ];
                let (op, f) = table[usize::from(d) % table.len()];
                self.push(x.shape, OpKind::Binary { op, x: x.value, y: y.value }, |i, j| {
                    f(at(i, j), then(i, j))
                });
            }
            4 => {
                let less = OpKind::Compare { op: Compare::Lt, x: x.value, y: y.value };
                let mask = self.b.op(Type::tile(DType::Bool, x.shape), less);
                let select = OpKind::Select { mask, x: y.value, y: x.value };
                self.push(x.shape, select, |i, j| at(i, j).max(then(i, j)));
            }
            5 => {
                let kind = OpKind::Transpose { x: x.value, permutation: vec![1, 0] };
                self.push([n, m], kind, |i, j| at(j, i));
            }
            6 => self.push([n, m], OpKind::Reshape { x: x.value }, |i, j| {
                let k = i * m + j;
                at(k / n, k % n)
            }),
            7 => {
                let row = usize::from(d) % m;
                let slice = OpKind::ExtractSlice { x: x.value, offsets: vec![row, 0] };
                let slice = self.b.op(Type::tile(DType::I32, [1, n]), slice);
                self.push(x.shape, OpKind::Broadcast { x: slice }, |_, j| at(row, j));
            }
            8 => {
                let sum = OpKind::Reduce { op: Reduction::Sum, x: x.value, axis: 1 };
                let sum = self.b.op(Type::tile(DType::I32, [m, 1]), sum);
                let total = |i: usize| (0..n).map(|j| at(i, j)).fold(0, i32::wrapping_add);
                self.push(x.shape, OpKind::Broadcast { x: sum }, |i, _| total(i));
            }
            9 => {
                let amount = self.b.int(i64::from(d));
                let kind = OpKind::Roll { x: x.value, amount, axis: 1 };
                self.push(x.shape, kind, |i, j| at(i, (j + n * 100 - usize::from(d)) % n));
            }
            10 => {
                let joined = OpKind::Concatenate { xs: vec![x.value, y.value], axis: 0 };
                let joined = self.b.op(Type::tile(DType::I32, [2 * m, n]), joined);
                let first = usize::from(d) % m;
                let slice = OpKind::ExtractSlice { x: joined, offsets: vec![first, 0] };
                self.push(x.shape, slice, |i, j| {
                    if i + first < m { at(i + first, j) } else { then(i + first - m, j) }
                });
            }
            11 => {
                let z = self.pick_like(other(x.shape), c);
                let w = self.pick_like([m, m], d);
                let dot = OpKind::Dot {
                    lhs: x.value,
                    rhs: z.value,
                    dims: DotDims { lhs: 1, rhs: 0 },
                    precision: Precision::Highest,
                };
                let square = self.b.op(ty([m, m]), dot);
                let sum = OpKind::Binary { op: Binary::Add, x: w.value, y: square };
                self.push([m, m], sum, |i, j| {
                    let products = (0..n).map(|p| at(i, p).wrapping_mul(z.data[p * m + j]));
                    products.fold(w.data[i * m + j], i32::wrapping_add)
                });
            }
            12 => {
                let (base, data) = &self.memory[which(x.shape)];
                let (base, data) = (*base, data.clone());
                let load = OpKind::Load { base, offsets: vec![Offset::Const(0); 2] };
                self.push(x.shape, load, |i, j| data[i * n + j]);
            }
            13 => {
                let (base, data) = &mut self.memory[which(x.shape)];
                self.b.store(*base, x.value);
                data.clone_from(&x.data);
            }
            14 => {
                // One row, loaded from the memory that it is stored to.
                let (base, data) = &mut self.memory[which(x.shape)];
                let (from, to) = (usize::from(c) % m, usize::from(d) % m);
                let offsets = vec![Offset::Const(from), Offset::Const(0)];
                let row = self.b.op(Type::tile(DType::I32, [1, n]), OpKind::Load { base: *base, offsets });
                let offsets = vec![Offset::Const(to), Offset::Const(0)];
                self.b.effect(OpKind::Store { base: *base, offsets, value: row });
                data.copy_within(from * n..(from + 1) * n, to * n);
            }
            15 => self.loop_over_memory(&x, &y),
            other => self.newer_step(other, &x, &y),
        }
    }

    /// Ops that pick, pack, and see memory otherwise.
    fn newer_step(&mut self, op: u8, x: &Known, y: &Known) {
        let ([m, n], v) = (x.shape, x.data.clone());
        let (zero, other_shape) = (vec![Offset::Const(0); 2], other(x.shape));
        match op {
            16 => {
                let kind = OpKind::Gather { x: x.value, index: y.value, axis: 1 };
                self.push(x.shape, kind, |i, j| v[i * n + y.data[i * n + j].rem_euclid(n as i32) as usize]);
            }
            17 => {
                // Every other row, twice.
                let (base, data) = self.memory[which(x.shape)].clone();
                let load = OpKind::LoadStrided { base, offsets: zero, strides: vec![2, 1] };
                let half = self.b.op(ty([m / 2, n]), load);
                let both = OpKind::Concatenate { xs: vec![half, half], axis: 0 };
                self.push(x.shape, both, |i, j| data[i % (m / 2) * 2 * n + j]);
            }
            18 => {
                let less = OpKind::Compare { op: Compare::LtUnsigned, x: x.value, y: y.value };
                let mask = self.b.op(Type::tile(DType::Bool, x.shape), less);
                let (base, data) = &mut self.memory[which(x.shape)];
                self.b.effect(OpKind::StoreMasked { base: *base, offsets: zero, value: x.value, mask });
                for ((d, x), y) in data.iter_mut().zip(&x.data).zip(&y.data) {
                    *d = if (*x as u32) < *y as u32 { *x } else { *d };
                }
            }
            19 => {
                // The memory of this shape as one of the other, as floats.
                let (base, data) = self.memory[which(x.shape)].clone();
                let r = self.b.reshaped(base, &other_shape);
                let r = self.b.bitcast_ref(r, DType::F32, &other_shape);
                let floats = OpKind::Load { base: r, offsets: zero };
                let floats = self.b.op(Type::tile(DType::F32, other_shape), floats);
                self.push(other_shape, OpKind::Bitcast { x: floats }, |i, j| data[i * m + j]);
            }
            _ => {
                let arg = OpKind::ArgReduce { op: ArgReduction::Min, x: x.value, axis: 0 };
                let arg = self.b.op(ty([1, n]), arg);
                let least = |j: usize| (0..m).min_by_key(|i| v[i * n + j]).unwrap_or(0);
                self.push(x.shape, OpKind::Broadcast { x: arg }, |_, j| least(j) as i32);
            }
        }
    }

    /// `for 3 rounds { c = 3 c + memory; memory = c ^ y }`, with `c` from `x`; yields `c`.
    fn loop_over_memory(&mut self, x: &Known, y: &Known) {
        let shape = x.shape;
        let (base, memory) = &mut self.memory[which(shape)];
        let (lo, hi) = (self.b.int(0), self.b.int(3));
        let base = *base;
        let body = self.b.block(&[Type::Scalar(DType::I32), ty(shape)], |b, args| {
            let three = b.splat(DType::I32, &shape, 3.0);
            let old = b.load(base);
            let c = b.op(ty(shape), OpKind::Binary { op: Binary::Mul, x: args[1], y: three });
            let c = b.op(ty(shape), OpKind::Binary { op: Binary::Add, x: c, y: old });
            let new = b.op(ty(shape), OpKind::Binary { op: Binary::Xor, x: c, y: y.value });
            b.store(base, new);
            vec![c]
        });
        let value = self.b.op(ty(shape), OpKind::For { lo, hi, init: vec![x.value], body });
        let mut data = x.data.clone();
        for _ in 0..3 {
            for ((c, old), y) in data.iter_mut().zip(memory.iter_mut()).zip(&y.data) {
                *c = c.wrapping_mul(3).wrapping_add(*old);
                *old = *c ^ y;
            }
        }
        self.values.push(Known { value, shape, data });
    }
}

/// What the kernel's module is read as makes the same.
#[cfg(feature = "emit")]
fn comes_back(kernel: &kernel_ir::ir::Kernel, inputs: &[Array], out: &kernel_ir::exec::Outputs) {
    let module = kernel.mosaic().unwrap_or_else(|e| panic!("{e:?}\n{kernel}"));
    let outputs = kernel.params.iter().filter(|p| p.role == Role::Output);
    let results = outputs.filter_map(|p| p.array.clone()).collect();
    let types = kernel_ir::mosaic::read::CallTypes { operands: None, results };
    let read = kernel_ir::mosaic::read::kernel(&module.bytecode, Some(&types));
    let read = read.unwrap_or_else(|e| panic!("{e:?}\n{kernel}"));
    let again = kernel_ir::exec::call(&read, inputs, &Default::default()).unwrap();
    for ((name, array), again) in out.iter().zip(&again) {
        assert_eq!(array, again, "{name} of\n{kernel}\n{read}");
    }
}

/// Runs a program; `all` makes every value an output, otherwise only the last one is, and most values die early.
fn check(steps: &[[u8; 4]], all: bool) {
    let mut b = Build::once();
    let inputs: Vec<Array> =
        [[4, 6], [6, 4], [4, 4], [6, 6]].iter().map(|s| numbers(DType::I32, s, 1)).collect();
    let names = ["x", "y", "z", "w"];
    let mut values = vec![];
    for (name, array) in names.iter().zip(&inputs) {
        let shape = [array.shape()[0], array.shape()[1]];
        let r = b.array((*name, Role::Input), DType::I32, MemorySpace::Vmem, &shape.map(Into::into));
        let value = b.load(r);
        values.push(Known { value, shape, data: array.as_slice().unwrap().to_vec() });
    }
    let memory = [0, 1].map(|i| {
        let known: &Known = &values[i];
        let s = b.scratch(["s", "t"][i], DType::I32, MemorySpace::Vmem, &known.shape);
        b.store(s, known.value);
        (s, known.data.clone())
    });
    let mut p = Program { b, values, memory };
    for step in steps {
        // Products are square; everything else works on the two shapes with memory.
        let square = {
            let s = p.pick(step[1]).shape;
            s[0] == s[1]
        };
        if !(square && matches!(step[0] % OPS, 11..=15 | 17..=19)) {
            p.step(*step);
        }
    }
    let mut wanted = vec![];
    let Program { mut b, values, memory } = p;
    for (i, v) in values.iter().enumerate().skip(if all { 4 } else { values.len() - 1 }) {
        let o = b.array(
            (&format!("o{i}"), Role::Output),
            DType::I32,
            MemorySpace::Vmem,
            &v.shape.map(Into::into),
        );
        b.store(o, v.value);
        wanted.push((format!("o{i}"), v.data.clone()));
    }
    for (i, (s, data)) in memory.iter().enumerate() {
        let v = b.load(*s);
        let o = b.array(
            (&format!("m{i}"), Role::Output),
            DType::I32,
            MemorySpace::Vmem,
            &SHAPES[i].map(Into::into),
        );
        b.store(o, v);
        wanted.push((format!("m{i}"), data.clone()));
    }
    let kernel = b.finish();
    let named: Vec<(&str, &Array)> = names.into_iter().zip(&inputs).collect();
    let out = run_serial(&kernel, &named).unwrap();
    #[cfg(feature = "emit")]
    comes_back(&kernel, &inputs, &out);
    for (name, data) in wanted {
        assert_eq!(out[&*name].as_slice::<i32>().unwrap(), data, "{name} of\n{kernel}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn random_programs_equal_their_evaluation_op_by_op(steps in prop::collection::vec(any::<[u8; 4]>(), 1..40)) {
        check(&steps, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn long_chains_equal_their_evaluation(steps in prop::collection::vec(any::<[u8; 3]>(), 30..80)) {
        // The newest value is always an operand.
        let chain: Vec<[u8; 4]> = steps.iter().enumerate().map(|(i, [op, c, d])| [*op, (i % 200) as u8, *c, *d]).collect();
        check(&chain, false);
    }
}
