use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let n: usize = "four";
    o[..] = x[..].exp().sqroot() + n;
}

fn main() {}
