//! K0301, K0302, K0305, K0306, K0311, K0312, and bounds that the launch decides: K0109.

use kernel_ir::ir::*;

use super::builder::*;

const NONE: [&str; 0] = [];

/// Codes for one output with this array and block, all of whose blocks are the first.
fn block(d: DType, array: &str, block: &[usize]) -> Vec<&'static str> {
    let mut b = Builder::new("seq 1");
    if array.contains(char::is_alphabetic) {
        b.hbm("shows_dims", Role::Input, F32, array);
    }
    let w = b.window(block, |b, _| block.iter().map(|_| b.int(0)).collect());
    let o = b.param("o", Role::Output, vmem(d, block), Some(array), Some(w));
    if !block.is_empty() && !block.contains(&0) {
        b.clear(o);
    }
    let mut codes = b.codes();
    codes.retain(|c| *c != "K0206");
    codes
}

#[test]
fn a_block_fits_its_array() {
    assert_eq!(block(F32, "512 512", &[128, 128]), NONE);
    assert_eq!(block(F32, "512 64", &[128, 128]), ["K0301"]);
    assert_eq!(block(F32, "m 512", &[4096, 128]), NONE);
    assert_eq!(block(F32, "512 512", &[0, 128]), ["K0301", "K0201"]);
    assert!(block(F32, "512", &[128, 128]).contains(&"K0306"));
}

#[test]
fn a_block_is_made_of_whole_tiles() {
    for d in [F32, BF16, I8, I32] {
        assert_eq!(block(d, "512 512", &[8, 128]), NONE, "{d}");
        assert_eq!(block(d, "512 512", &[4, 128]), ["K0302"], "{d}");
        assert_eq!(block(d, "512 512", &[8, 64]), ["K0302"], "{d}");
    }
    assert_eq!(block(F32, "4 64", &[4, 64]), NONE);
    assert_eq!(block(F32, "512 64", &[128, 64]), NONE);
    assert_eq!(block(F32, "3 512 512", &[1, 8, 128]), NONE);
    assert_eq!(block(F32, "3 512 512", &[3, 12, 100]), ["K0302", "K0302"]);
    assert_eq!(block(F32, "m n", &[128, 64]), ["K0302"]);
    assert_eq!(block(F32, "m n", &[100, 128]), ["K0302"]);
}

#[test]
fn a_rank_1_block_is_whole_or_long() {
    assert_eq!(block(F32, "100", &[100]), NONE);
    assert_eq!(block(F32, "400", &[100]), ["K0302"]);
    assert_eq!(block(F32, "512", &[128]), NONE);
    assert_eq!(block(BF16, "512", &[128]), ["K0302"]);
    assert_eq!(block(BF16, "512", &[256]), NONE);
    assert_eq!(block(F32, "6144", &[3072]), NONE);
    assert_eq!(block(F32, "512", &[384]), ["K0302"]);
}

#[test]
fn help_names_legal_sizes() {
    let mut b = Builder::new("seq 1");
    let o = b.block("o", Role::Output, "512 500", &[8, 200], "0 0");
    b.clear(o);
    let report = kernel_ir::verify::verify(&b.finish()).unwrap_err();
    let help = report.diagnostics[0].help.clone().unwrap();
    assert_eq!(help, "use 128 or 256, or 500, the whole axis");
}

#[test]
fn a_block_map_takes_grid_indices_to_block_indices() {
    let map = |f: &dyn Fn(&mut Builder, &[Value]) -> Vec<Value>| {
        let mut b = Builder::new("seq 4 seq 1");
        let t = b.prefetch("t", "4");
        let zero = b.kernel.params[0].value;
        assert_eq!(zero, t);
        let w = b.window(&[8, 128], f);
        let o = b.param("o", Role::Output, vmem(F32, &[8, 128]), Some("32 128"), Some(w));
        b.clear(o);
        let mut codes = b.codes();
        codes.retain(|c| *c != "K0206");
        codes
    };
    assert_eq!(map(&|b, g| vec![g[0], b.int(0)]), NONE);
    assert_eq!(map(&|_, g| vec![g[0]]), ["K0306"]);
    assert_eq!(map(&|b, g| vec![g[0], b.int(0), b.int(0)]), ["K0306"]);
    assert_eq!(map(&|b, _| vec![b.program_id(0), b.int(0)]), ["K0306"]);
    assert_eq!(map(&|b, g| vec![g[0], b.op(OpKind::Constant(Literal::Float(0.0)), scalar(F32))]), ["K0306"]);
    assert_eq!(
        map(&|b, g| {
            b.zeros(F32, &[8, 128]);
            vec![g[0], b.int(0)]
        }),
        ["K0306"]
    );
    let too_few = {
        let mut b = Builder::new("seq 4 seq 1");
        let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
        b.clear(o);
        let mut k = b.finish();
        k.params[0].window.as_mut().unwrap().index.args.pop();
        codes(&k)
    };
    assert_eq!(too_few, ["K0306"]);
}

#[test]
fn vmem_is_counted_in_padded_tiles_and_buffers() {
    let scratch = |shape: &[usize]| {
        with_blocks(|b, _, _| {
            let s = b.scratch("s", F32, shape);
            b.clear(s);
        })
    };
    assert_eq!(scratch(&[16384, 1024]).codes(), NONE);
    assert_eq!(scratch(&[32768, 1024]).codes(), ["K0305"]);
    // One lane takes a row of 128.
    assert_eq!(scratch(&[262_144, 1]).codes(), ["K0305"]);
    let text = scratch(&[32768, 1024]).messages();
    assert!(
        text.contains("kernel `k` needs 128.0 MiB of VMEM, but no TPU has more than 128.0 MiB"),
        "{text}"
    );

    let window = |map: &str| {
        let mut b = Builder::new("seq 2");
        let o = b.block("o", Role::Output, "40960 1024", &[20480, 1024], map);
        b.clear(o);
        b.codes()
    };
    assert_eq!(window("0 0"), NONE);
    assert_eq!(window("i0 0"), ["K0305"]);
}

#[test]
fn smem_is_small() {
    let prefetch = |n: &str| {
        with_blocks(|b, _, _| {
            let t = b.prefetch("t", n);
            let zero = b.int(0);
            b.get(t, zero);
        })
        .codes()
    };
    assert_eq!(prefetch("260000"), NONE);
    assert_eq!(prefetch("262144"), ["K0311"]);
}

#[test]
fn an_argument_shows_every_dim() {
    let kernel = |input: &str, grid: &str| {
        let mut b = Builder::new(&format!("seq {grid}"));
        let x = b.hbm("x", Role::Input, F32, input);
        let o = b.block("o", Role::Output, "m 128", &[8, 128], "0 0");
        let _ = x;
        b.clear(o);
        let mut codes = b.codes();
        codes.retain(|c| *c == "K0312");
        codes
    };
    assert_eq!(kernel("m 128", "1"), NONE);
    assert_eq!(kernel("64 128", "1"), ["K0312"]);
    assert_eq!(kernel("m 128", "n"), ["K0312"]);
    let read = with_blocks(|b, _, _| {
        b.op(OpKind::Dim { name: dim_name("n") }, scalar(I32));
    });
    assert_eq!(read.codes(), ["K0312"]);
}

/// Codes for loads of one row of `x[8, 128]` at this index.
fn row(f: impl FnOnce(&mut Builder) -> Value) -> Vec<&'static str> {
    with_blocks(|b, x, _| {
        let at = f(b);
        b.load(x, &[Offset::Value(at), Offset::Const(0)], &[1, 128]);
    })
    .codes()
}

#[test]
fn an_index_that_surely_leaves_is_found() {
    assert_eq!(row(|b| b.int(7)), NONE);
    assert_eq!(row(|b| b.int(8)), ["K0109"]);
    assert_eq!(row(|b| b.int(-1)), ["K0109"]);
    assert_eq!(
        row(|b| {
            let p = b.program_id(0);
            let nine = b.int(9);
            b.binary(Binary::Add, p, nine)
        }),
        ["K0109"]
    );
}

#[test]
fn an_index_that_reaches_too_far_is_found() {
    let in_loop = |n: i64, guarded: bool| {
        with_blocks(|b, x, _| {
            let (lo, hi) = (b.int(0), b.int(n));
            b.range(lo, hi, |b, i| {
                let read = |b: &mut Builder| {
                    b.load(x, &[Offset::Value(i), Offset::Const(0)], &[1, 128]);
                };
                if guarded {
                    let flag = b.flag(i);
                    b.when(flag, read);
                } else {
                    read(b);
                }
            });
        })
        .codes()
    };
    assert_eq!(in_loop(8, false), NONE);
    assert_eq!(in_loop(9, false), ["K0109"]);
    assert_eq!(in_loop(9, true), NONE);
}

#[test]
fn an_index_that_nobody_knows_passes() {
    let mut b = Builder::new("seq 4");
    let t = b.prefetch("t", "4");
    let s = b.scratch("s", F32, &[8, 128]);
    b.clear(s);
    let p = b.program_id(0);
    let at = b.get(t, p);
    b.load(s, &[Offset::Value(at), Offset::Const(0)], &[1, 128]);
    let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
    b.clear(o);
    b.facts();
}
