//! K0303, K0304, K0307: block maps, tried out on grid steps.

use kernel_ir::ir::*;

use super::builder::*;

const NONE: [&str; 0] = [];

/// Codes for an output `[512, 512]` in blocks of `[128, 128]`.
fn output(grid: &str, map: &str) -> Vec<&'static str> {
    let mut b = Builder::new(grid);
    let o = b.block("o", Role::Output, "512 512", &[128, 128], map);
    b.clear(o);
    b.codes()
}

#[test]
fn steps_of_a_parallel_axis_have_blocks_of_their_own() {
    assert_eq!(output("par 4 par 4", "i0 i1"), NONE);
    assert_eq!(output("par 4 seq 4", "i0 0"), NONE);
    assert_eq!(output("par 4 par 4", "i0 0"), ["K0303"]);
    assert_eq!(output("par 4 par 1", "i0 0"), NONE);
    assert_eq!(output("seq 4 par 4", "i0 0"), ["K0303"]);
}

#[test]
fn a_race_is_shown_by_two_steps() {
    let mut b = Builder::new("par 2 par 2");
    let w = b.window(&[128, 128], |b, g| vec![b.binary(Binary::Add, g[0], g[1]), b.int(0)]);
    let o = b.param("o", Role::Output, vmem(F32, &[128, 128]), Some("512 128"), Some(w));
    b.clear(o);
    let report = kernel_ir::verify::verify(&b.finish()).unwrap_err();
    let text = report.to_string();
    assert!(text.contains("error[K0303]: steps of parallel axis 0 write the same block of `o`"), "{text}");
    assert!(text.contains("grid steps (0, 1) and (1, 0)"), "{text}");
}

#[test]
fn arithmetic_that_keeps_steps_apart_passes() {
    // Block 4 * i + j.
    let mut b = Builder::new("par 2 par 4");
    let w = b.window(&[128, 128], |b, g| {
        let i = b.times(g[0], 4);
        vec![b.binary(Binary::Add, i, g[1]), b.int(0)]
    });
    let o = b.param("o", Role::Output, vmem(F32, &[128, 128]), Some("1024 128"), Some(w));
    b.clear(o);
    b.facts();
}

/// Codes for an output whose row of blocks comes from a prefetched array, indexed by grid axis `by`.
fn through_prefetch(grid: &str, by: usize) -> Vec<&'static str> {
    let mut b = Builder::new(grid);
    let t = b.prefetch("t", "4");
    let w = b.window(&[128, 128], |b, g| vec![b.get(t, g[by]), g[1]]);
    let o = b.param("o", Role::Output, vmem(F32, &[128, 128]), Some("512 512"), Some(w));
    b.clear(o);
    b.codes()
}

#[test]
fn data_does_not_tell_parallel_steps_apart() {
    assert_eq!(through_prefetch("seq 4 par 4", 0), NONE);
    assert_eq!(through_prefetch("seq 4 seq 4", 0), NONE);
    assert_eq!(through_prefetch("par 4 seq 4", 0), ["K0303"]);
}

#[test]
fn an_output_block_is_visited_in_one_go() {
    assert_eq!(output("seq 4 seq 4", "i0 0"), NONE);
    assert_eq!(output("seq 4 seq 4", "0 i1"), ["K0304"]);
    assert_eq!(output("seq 4", "i0 i0"), NONE);
    assert_eq!(output("seq 1 seq 4", "0 i1"), NONE);
}

#[test]
fn inputs_may_come_back() {
    let mut b = Builder::new("seq 4 seq 4");
    let x = b.block("x", Role::Input, "512 512", &[128, 128], "0 i1");
    let o = b.block("o", Role::Output, "512 512", &[128, 128], "i0 i1");
    let v = b.read(x);
    b.store(o, &[Offset::Const(0); 2], v);
    b.facts();
}

#[test]
fn a_block_index_is_inside_the_array() {
    assert_eq!(output("par 4", "i0 3"), NONE);
    assert_eq!(output("par 4", "i0 4"), ["K0307"]);
    assert_eq!(output("par 5", "i0 0"), ["K0307"]);
    // Only the last of many steps is outside.
    assert_eq!(output("par 1000000", "i0 0"), ["K0307"]);
    assert_eq!(output("seq 0", "4 4"), NONE);
}

#[test]
fn element_offsets_are_recognised() {
    let mut b = Builder::new("par 4");
    let w = b.window(&[128, 128], |b, g| vec![b.times(g[0], 128), b.int(0)]);
    let o = b.param("o", Role::Output, vmem(F32, &[128, 128]), Some("512 128"), Some(w));
    b.clear(o);
    let text = kernel_ir::verify::verify(&b.finish()).unwrap_err().to_string();
    assert!(text.contains("block 128 on axis 0 of `o` is out of bounds"), "{text}");
    assert!(text.contains("a block map yields block indices, not element offsets"), "{text}");
}

#[test]
fn symbolic_sizes_are_tried_out() {
    let kernel = |extent: DimExpr, demand: Option<i64>| {
        let mut b = Builder::new("par 1");
        b.kernel.grid[0].extent = extent;
        if let Some(n) = demand {
            b.demand(DimExpr::dim("m"), DimCompare::Le, n);
        }
        let x = b.hbm("x", Role::Input, F32, "m 128");
        let o = b.block("o", Role::Output, "m 128", &[128, 128], "i0 0");
        let _ = x;
        b.clear(o);
        let mut codes = b.codes();
        codes.retain(|c| *c != "K0206");
        codes
    };
    let blocks = |n: usize| DimExpr::op(DimOp::CeilDiv, DimExpr::dim("m"), n.into());
    assert_eq!(kernel(blocks(128), None), NONE);
    assert_eq!(kernel(blocks(64), None), ["K0307"]);
    // Demands choose the sizes that are tried: at most 64 rows are one block either way.
    assert_eq!(kernel(blocks(64), Some(64)), NONE);
}
