use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let n = num_programs(0);
    for i in 0..n {
        o[i] = x[..];
    }
}

fn main() {}
