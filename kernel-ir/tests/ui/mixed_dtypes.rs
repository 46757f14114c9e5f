use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<bf16>, o: Out<f32>, acc: Scratch<f32>) {
    let s = acc[..] * 2.0 + x[..];
    o[..] = s;
}

fn main() {}
