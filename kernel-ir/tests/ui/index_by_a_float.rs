use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let half = x[..].max(0).max(1);
    o[..] = x[half];
}

fn main() {}
