//! Copies between HBM and VMEM.

use insta::assert_snapshot;
use kernel_ir::prelude::*;

use super::report;

/// Builds a kernel that copies from `x: [64, 512]` to `buf: [2, 8, 512]`.
macro_rules! build {
    ($kernel:ident) => {
        report(
            $kernel {
                grid: grid([seq(8)]),
                x: hbm([64, 512]),
                o: array([64, 512]).block([8, 512], |[i]| (i, 0)),
                buf: vmem([2, 8, 512]),
                sem: dma_sem(2),
            }
            .build(),
        )
    };
}

#[tpu_kernel]
fn to_both_slots(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let fetch = copy(x.at((ds(0, 8), ..)), buf.at(..), sem.slot(0));
    fetch.clone().start();
    fetch.wait();
    o[..] = buf[0];
}

#[test]
fn a_copy_keeps_the_shape() {
    assert_snapshot!(build!(to_both_slots));
}

#[tpu_kernel]
fn not_waited_for(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    copy(x.at((ds(0, 8), ..)), buf.at(0), sem.slot(1)).start();
    o[..] = buf[1];
}

#[test]
fn a_copy_is_waited_for() {
    assert_snapshot!(build!(not_waited_for));
}

#[tpu_kernel]
fn not_started(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    buf[..] = 0.0;
    copy(x.at((ds(0, 8), ..)), buf.at(0), sem.slot(0)).wait();
    o[..] = buf[0];
}

#[test]
fn a_wait_has_a_start() {
    assert_snapshot!(build!(not_started));
}

#[tpu_kernel]
fn too_early(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let fetch = copy(x.at((ds(0, 8), ..)), buf.at(0), sem.slot(0));
    fetch.clone().start();
    o[..] = buf[0] * 2.0;
    fetch.wait();
}

#[test]
fn data_is_there_after_the_wait() {
    assert_snapshot!(build!(too_early));
}

#[tpu_kernel]
fn half_a_tile(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let fetch = copy(x.at((ds(0, 8), ds(64, 64))), buf.at((0, .., ds(0, 64))), sem.slot(0));
    fetch.clone().start();
    fetch.wait();
    o[..] = buf[0];
}

#[test]
fn a_copy_moves_whole_tiles() {
    assert_snapshot!(build!(half_a_tile));
}

#[tpu_kernel]
fn any_row(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let row = program_id(0) * 4;
    let fetch = copy(x.at((ds(row, 8), ..)), buf.at(0), sem.slot(0));
    fetch.clone().start();
    fetch.wait();
    o[..] = buf[0];
}

#[test]
fn a_traced_row_of_a_copy_starts_a_tile() {
    assert_snapshot!(build!(any_row));
}
