use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let mut y = x[..];
    when(program_id(0) == 0, || y = y * 2.0);
    o[..] = y;
}

fn main() {}
