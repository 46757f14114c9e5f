#![deny(unused_must_use)]

use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    copy(x.at((ds(0, 8), ..)), buf.at(..), sem.slot(0));
    o[..] = buf[..];
}

fn main() {}
