use kernel_ir::prelude::*;

#[tpu_kernel(grid = 4)]
fn k(x: In<f32>, o: Out<f32>) {
    o[..] = x[..];
}

fn main() {}
