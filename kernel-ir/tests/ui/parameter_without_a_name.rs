use kernel_ir::prelude::*;

#[tpu_kernel]
fn k((x, y): (In<f32>, In<f32>), o: Out<f32>) {
    o[..] = x[..] + y[..];
}

fn main() {}
