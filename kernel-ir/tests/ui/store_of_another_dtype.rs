use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<bf16>, o: Out<bf16>, acc: Scratch<f32>) {
    acc[..] += dot(x[..], x[..]);
    o[..] = acc[..];
}

fn main() {}
