use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    if program_id(0) == 0 {
        o[..] = x[..];
    }
}

fn main() {}
