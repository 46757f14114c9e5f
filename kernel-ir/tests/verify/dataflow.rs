//! K0201, K0202, K0206, K0207: what is read was written, what is asked for is made.

use kernel_ir::ir::*;

use super::builder::*;

#[test]
fn an_output_is_written_somewhere() {
    let mut b = Builder::new("seq 1");
    b.block("o", Role::Output, "8 128", &[8, 128], "0 0");
    assert_eq!(b.codes(), ["K0201"]);

    let mut b = Builder::new("seq 4");
    let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
    let p = b.program_id(0);
    let first = b.flag(p);
    b.when(first, |b| b.clear(o));
    b.facts();
}

#[test]
fn an_output_in_hbm_is_written_by_a_copy() {
    let mut b = Builder::new("seq 1");
    let o = b.hbm("o", Role::Output, F32, "8 128");
    assert!(
        codes(&{
            let mut b = Builder::new("seq 1");
            b.hbm("o", Role::Output, F32, "8 128");
            b.finish()
        })
        .contains(&"K0201")
    );
    let s = b.scratch("s", F32, &[8, 128]);
    let sems = b.semaphores("sem", 1);
    b.clear(s);
    let sem = b.slot(sems, Offset::Const(0));
    b.effect(OpKind::CopyStart { src: s, dst: o, sem });
    b.effect(OpKind::CopyWait { src: s, dst: o, sem });
    b.facts();
}

/// What a scratch `s` leads to that `f` uses.
fn scratch(f: impl FnOnce(&mut Builder, Value)) -> Vec<&'static str> {
    let mut b = Builder::new("seq 4");
    let s = b.scratch("s", F32, &[8, 128]);
    let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
    f(&mut b, s);
    b.clear(o);
    b.codes()
}

#[test]
fn scratch_is_written_before_it_is_read() {
    let read = |b: &mut Builder, s| {
        b.read(s);
    };
    assert_eq!(scratch(read), ["K0202"]);
    assert_eq!(
        scratch(|b, s| {
            b.read(s);
            b.clear(s);
        }),
        ["K0202"]
    );
    assert_eq!(
        scratch(|b, s| {
            b.clear(s);
            b.read(s);
        }),
        [""; 0]
    );
}

#[test]
fn a_conditional_write_may_come_first() {
    let codes = scratch(|b, s| {
        let p = b.program_id(0);
        let first = b.flag(p);
        b.when(first, |b| b.clear(s));
        b.read(s);
    });
    assert_eq!(codes, [""; 0]);
}

#[test]
fn a_conditional_read_may_come_later() {
    // In the first step the condition may be false; the write comes before the second one.
    let guarded = scratch(|b, s| {
        let p = b.program_id(0);
        let flag = b.flag(p);
        b.when(flag, |b| {
            b.read(s);
        });
        b.clear(s);
    });
    assert_eq!(guarded, [""; 0]);
    let never_written = scratch(|b, s| {
        let p = b.program_id(0);
        let flag = b.flag(p);
        b.when(flag, |b| {
            b.read(s);
        });
    });
    assert_eq!(never_written, ["K0202"]);
}

#[test]
fn a_loop_that_surely_runs_reads_first() {
    let in_loop = |n: i64| {
        scratch(|b, s| {
            let (lo, hi) = (b.int(0), b.int(n));
            b.range(lo, hi, |b, _| {
                b.read(s);
                b.clear(s);
            });
        })
    };
    assert_eq!(in_loop(3), ["K0202"]);
    assert_eq!(in_loop(0), [""; 0]);
}

#[test]
fn what_is_not_used_is_a_warning() {
    let b = with_blocks(|b, _, _| {
        b.block("y", Role::Input, "8 128", &[8, 128], "0 0");
        b.semaphores("sem", 2);
    });
    let text = b.messages();
    assert!(text.contains("warning[K0206]: input `y` is never used"), "{text}");
    assert!(text.contains("warning[K0206]: semaphore `sem` is never used"), "{text}");
}

#[test]
fn a_prefetched_array_that_a_block_map_reads_is_used() {
    let mut b = Builder::new("seq 4");
    let t = b.prefetch("t", "4");
    let w = b.window(&[8, 128], |b, g| vec![b.get(t, g[0]), b.int(0)]);
    let x = b.param("x", Role::Input, vmem(F32, &[8, 128]), Some("32 128"), Some(w));
    let o = b.block("o", Role::Output, "32 128", &[8, 128], "i0 0");
    let v = b.read(x);
    b.store(o, &[Offset::Const(0); 2], v);
    b.facts();
}

#[test]
fn inputs_are_not_written() {
    assert_eq!(with_blocks(|b, x, _| b.clear(x)).codes(), ["K0207"]);
    let copied_to = with_blocks(|b, _, _| {
        let x = b.hbm("h", Role::Input, F32, "8 128");
        let s = b.scratch("s", F32, &[8, 128]);
        let sems = b.semaphores("sem", 1);
        b.clear(s);
        let sem = b.slot(sems, Offset::Const(0));
        b.effect(OpKind::CopyStart { src: s, dst: x, sem });
        b.effect(OpKind::CopyWait { src: s, dst: x, sem });
    });
    let text = copied_to.messages();
    assert!(text.contains("error[K0207]: input `h` is written"), "{text}");
}
