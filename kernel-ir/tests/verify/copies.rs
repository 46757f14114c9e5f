//! K0203 to K0205, K0310, K0313: copies pair with waits, stay alone while under way, and move whole tiles.

use kernel_ir::ir::*;

use super::builder::*;

/// A kernel that copies rows of `x` into `buf[2, 8, 512]`.
struct Rig {
    b: Builder,
    x: Value,
    buf: Value,
    sem: Value,
    o: Value,
}

const NONE: [&str; 0] = [];

fn rig() -> Rig {
    let mut b = Builder::new("seq 4");
    let x = b.hbm("x", Role::Input, F32, "64 512");
    let buf = b.scratch("buf", F32, &[2, 8, 512]);
    let sem = b.semaphores("sem", 2);
    let o = b.block("o", Role::Output, "32 512", &[8, 512], "i0 0");
    b.clear(o);
    Rig { b, x, buf, sem, o }
}

impl Rig {
    fn copy(&mut self, slot: Offset) -> (Value, Value, Value) {
        let at = [Offset::Const(0), Offset::Const(0)];
        let src = self.b.slice(self.x, &at, &[Size::Const(8), Size::Const(512)]);
        let at = [slot, Offset::Const(0), Offset::Const(0)];
        let dst = self.b.slice(self.buf, &at, &[Size::Const(1), Size::Const(8), Size::Const(512)]);
        let dst = self.b.squeeze(dst, &[0]);
        (src, dst, self.b.slot(self.sem, slot))
    }

    fn start(&mut self, slot: Offset) {
        let (src, dst, sem) = self.copy(slot);
        self.b.effect(OpKind::CopyStart { src, dst, sem });
    }

    fn wait(&mut self, slot: Offset) {
        let (src, dst, sem) = self.copy(slot);
        self.b.effect(OpKind::CopyWait { src, dst, sem });
    }

    fn load(&mut self, slot: Offset) {
        let at = [slot, Offset::Const(0), Offset::Const(0)];
        self.b.load(self.buf, &at, &[1, 8, 512]);
    }

    fn codes(self) -> Vec<&'static str> {
        let _ = self.o;
        self.b.codes()
    }
}

const S0: Offset = Offset::Const(0);
const S1: Offset = Offset::Const(1);

#[test]
fn a_copy_that_is_waited_for_passes() {
    let mut r = rig();
    r.start(S0);
    r.start(S1);
    r.wait(S0);
    r.load(S0);
    r.wait(S1);
    assert_eq!(r.codes(), NONE);
}

#[test]
fn a_copy_is_waited_for() {
    let mut r = rig();
    r.start(S0);
    assert_eq!(r.codes(), ["K0203"]);

    let mut r = rig();
    r.start(S0);
    r.start(S0);
    r.wait(S0);
    assert_eq!(r.codes(), ["K0203"]);
}

#[test]
fn slots_are_told_apart_when_they_are_numbers() {
    let mut r = rig();
    r.start(S0);
    r.wait(S1);
    assert_eq!(r.codes(), ["K0203", "K0204"]);
}

#[test]
fn a_traced_slot_may_be_any() {
    let mut r = rig();
    let p = r.b.program_id(0);
    let two = r.b.int(2);
    let slot = r.b.binary(Binary::Rem, p, two);
    r.start(Offset::Value(slot));
    r.wait(S1);
    assert_eq!(r.codes(), NONE);
}

#[test]
fn a_wait_comes_after_its_start() {
    let mut r = rig();
    r.wait(S0);
    assert_eq!(r.codes(), ["K0204"]);

    let mut r = rig();
    r.wait(S0);
    r.start(S0);
    assert_eq!(r.codes(), ["K0204"]);

    let mut r = rig();
    r.start(S0);
    r.wait(S0);
    r.wait(S0);
    assert_eq!(r.codes(), ["K0204"]);
}

#[test]
fn a_copy_that_runs_across_grid_steps_passes() {
    // Waits for the copy that the step before has started, then starts the next one.
    let mut r = rig();
    let p = r.b.program_id(0);
    let (src, dst, sem) = r.copy(S0);
    let first = r.b.flag(p);
    r.b.when(first, |b| b.effect(OpKind::CopyStart { src, dst, sem }));
    r.wait(S0);
    let three = r.b.int(3);
    let more = r.b.op(OpKind::Compare { op: Compare::Lt, x: p, y: three }, scalar(DType::Bool));
    r.b.when(more, |b| b.effect(OpKind::CopyStart { src, dst, sem }));
    assert_eq!(r.codes(), NONE);
}

#[test]
fn a_window_under_way_is_left_alone() {
    let mut r = rig();
    r.start(S0);
    r.load(S0);
    r.wait(S0);
    assert_eq!(r.codes(), ["K0205"]);

    let mut r = rig();
    r.start(S0);
    r.load(S1);
    r.wait(S0);
    assert_eq!(r.codes(), NONE);

    let mut r = rig();
    let (p, two) = (r.b.program_id(0), r.b.int(2));
    let slot = Offset::Value(r.b.binary(Binary::Rem, p, two));
    r.start(slot);
    r.load(slot);
    r.wait(slot);
    assert_eq!(r.codes(), ["K0205"]);
}

/// Codes for a copy of a part of `x[512, 512]` to scratch of the same shape, and the other way round.
fn part(d: DType, at: [Offset; 2], shape: [usize; 2], b: &mut Builder) -> (Value, Value, Value) {
    let x = b.hbm("x", Role::Input, d, "512 512");
    let s = b.scratch("s", d, &shape);
    let sems = b.semaphores("sem", 1);
    let sem = b.slot(sems, Offset::Const(0));
    (b.slice(x, &at, &shape.map(Size::Const)), s, sem)
}

fn window(d: DType, at: impl FnOnce(&mut Builder) -> [Offset; 2], shape: [usize; 2]) -> Vec<&'static str> {
    let mut b = Builder::new("seq 4");
    let at = at(&mut b);
    let (src, dst, sem) = part(d, at, shape, &mut b);
    b.effect(OpKind::CopyStart { src, dst, sem });
    b.effect(OpKind::CopyWait { src, dst, sem });
    b.codes()
}

fn fixed(d: DType, at: [usize; 2], shape: [usize; 2]) -> Vec<&'static str> {
    window(d, |_| at.map(Offset::Const), shape)
}

/// A row offset that is `n` times the step's index.
fn times(d: DType, n: i64, rows: usize) -> Vec<&'static str> {
    window(
        d,
        |b| {
            let p = b.program_id(0);
            [Offset::Value(b.times(p, n)), Offset::Const(0)]
        },
        [rows, 512],
    )
}

// Each of these was compiled by libtpu 0.0.52 for v5e, v6e and v7x; a finding here is an error there.
#[test]
fn a_copy_moves_whole_tiles_of_lanes() {
    assert_eq!(fixed(F32, [0, 128], [16, 128]), NONE);
    assert_eq!(fixed(BF16, [0, 128], [16, 128]), NONE);
    assert_eq!(fixed(I8, [0, 128], [32, 128]), NONE);
    assert_eq!(fixed(F32, [0, 64], [16, 128]), ["K0310"]);
    assert_eq!(fixed(F32, [0, 0], [16, 64]), ["K0310"]);
    assert_eq!(fixed(BF16, [0, 0], [16, 64]), ["K0310"]);
    assert_eq!(fixed(F32, [0, 0], [16, 192]), ["K0310"]);
}

#[test]
fn a_copy_moves_whole_tiles_of_rows() {
    assert_eq!(fixed(F32, [3, 0], [5, 512]), NONE);
    assert_eq!(fixed(F32, [8, 0], [5, 512]), NONE);
    assert_eq!(fixed(F32, [0, 0], [12, 512]), ["K0310"]);
    assert_eq!(fixed(BF16, [8, 0], [5, 512]), ["K0310"]);
    assert_eq!(fixed(BF16, [0, 0], [1, 512]), ["K0310"]);
    assert_eq!(fixed(BF16, [2, 0], [3, 512]), ["K0310"]);
    assert_eq!(fixed(BF16, [8, 0], [24, 512]), NONE);
    assert_eq!(fixed(I8, [4, 0], [8, 512]), ["K0310"]);
    assert_eq!(fixed(I8, [8, 0], [8, 512]), NONE);
    assert_eq!(fixed(I8, [0, 0], [5, 512]), ["K0310"]);
}

#[test]
fn a_traced_row_of_a_copy_is_known_to_start_a_tile() {
    assert_eq!(times(F32, 8, 8), NONE);
    assert_eq!(times(F32, 1, 8), ["K0308"]);
    assert_eq!(times(F32, 4, 8), ["K0308"]);
    assert_eq!(times(F32, 4, 4), NONE);
    assert_eq!(times(F32, 2, 4), ["K0308"]);
    assert_eq!(times(F32, 1, 1), NONE);
    assert_eq!(times(BF16, 8, 64), NONE);
    assert_eq!(times(BF16, 2, 4), ["K0308"]);
    assert_eq!(times(BF16, 2, 1), ["K0310"]);
    assert_eq!(times(I8, 16, 64), ["K0308"]);
    assert_eq!(times(I8, 32, 64), NONE);
    assert_eq!(times(I8, 8, 16), ["K0308"]);
    assert_eq!(times(I8, 16, 16), NONE);
}

#[test]
fn rows_of_a_symbolic_array_are_counted_while_recording() {
    let rows = |array: &str| {
        let mut b = Builder::new("seq 4");
        let n = b.prefetch("n", "1");
        let x = b.hbm("x", Role::Input, F32, array);
        let s = b.scratch("s", F32, &[64, 512]);
        let sems = b.semaphores("sem", 1);
        let sem = b.slot(sems, Offset::Const(0));
        let zero = b.int(0);
        let count = b.get(n, zero);
        let lens = [Size::Value(count), Size::Const(512)];
        let at = [Offset::Const(0), Offset::Const(0)];
        let (src, dst) = (b.slice(x, &at, &lens), b.slice(s, &at, &lens));
        b.effect(OpKind::CopyStart { src, dst, sem });
        b.effect(OpKind::CopyWait { src, dst, sem });
        b.codes()
    };
    assert_eq!(rows("64 512"), NONE);
    assert_eq!(rows("m 512"), ["K0313"]);
}
