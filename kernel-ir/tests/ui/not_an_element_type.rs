use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f64>, o: Out<f32>) {
    o[..] = x[..].to::<f32>();
}

fn main() {}
