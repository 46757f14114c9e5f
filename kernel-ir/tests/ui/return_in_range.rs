use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    for i in range(0, 4) {
        o[i] = x[i];
        return;
    }
}

fn main() {}
