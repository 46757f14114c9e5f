//! Stores of a tile over all of a memory, which take the tile's own elements when nobody reads it any more.

use kernel_ir::exec::Array;
use kernel_ir::ir::{Binary, DType, MemorySpace, OpKind, Role, Type, Value};

use crate::build::{Build, numbers, run_serial};

/// Runs `f` on a tile that was computed from `x[8, 8]`, and a scratch memory of that shape; what `f` returns is the result.
fn run(x: &Array, f: impl FnOnce(&mut Build, Value, Value) -> Value) -> Vec<f64> {
    let mut b = Build::once();
    let i = b.array(("x", Role::Input), DType::F32, MemorySpace::Vmem, &[8.into(), 8.into()]);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[8.into(), 8.into()]);
    let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[8, 8]);
    let v = b.load(i);
    let twice = sum(&mut b, v, v);
    let result = f(&mut b, twice, s);
    b.store(o, result);
    run_serial(&b.finish(), &[("x", x)]).unwrap()["o"].to_f64()
}

fn sum(b: &mut Build, x: Value, y: Value) -> Value {
    b.op(Type::tile(DType::F32, [8, 8]), OpKind::Binary { op: Binary::Add, x, y })
}

fn product(b: &mut Build, x: Value, y: Value) -> Value {
    b.op(Type::tile(DType::F32, [8, 8]), OpKind::Binary { op: Binary::Mul, x, y })
}

#[test]
fn a_tile_that_is_read_again_keeps_its_elements() {
    let x = numbers(DType::F32, &[8, 8], 1);
    // The memory is overwritten while the tile lives: trading their elements would change the tile.
    let got = run(&x, |b, tile, s| {
        b.store(s, tile);
        let stored = b.load(s);
        let square = product(b, stored, stored);
        b.store(s, square);
        let square = b.load(s);
        sum(b, tile, square)
    });
    let want: Vec<f64> = x.to_f64().iter().map(|x| 2.0 * x + 4.0 * x * x).collect();
    assert_eq!(got, want);
}

#[test]
fn a_tile_that_is_read_no_more_becomes_the_memory() {
    let x = numbers(DType::F32, &[8, 8], 2);
    let got = run(&x, |b, tile, s| {
        b.store(s, tile);
        let first = b.load(s);
        let square = product(b, first, first);
        b.store(s, square);
        b.load(s)
    });
    assert_eq!(got, x.to_f64().iter().map(|x| 4.0 * x * x).collect::<Vec<_>>());
}

#[test]
fn a_tile_seen_turned_is_stored_turned() {
    let x = numbers(DType::F32, &[8, 8], 3);
    let got = run(&x, |b, tile, s| {
        let turned = OpKind::Transpose { x: tile, permutation: vec![1, 0] };
        let turned = b.op(Type::tile(DType::F32, [8, 8]), turned);
        b.store(s, turned);
        b.load(s)
    });
    let x = x.to_f64();
    assert_eq!(got, (0..64).map(|i| 2.0 * x[i % 8 * 8 + i / 8]).collect::<Vec<_>>());
}
