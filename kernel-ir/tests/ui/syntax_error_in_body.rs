use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let y = x[..];
    o[..] = y + ;
}

fn main() {}
