use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<i32>, o: Out<i32>) {
    o[..] = x[..].exp();
}

fn main() {}
