use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let mut count = 0usize;
    for i in range(0, 4) {
        o[i] = x[i];
        count += 1;
    }
    let _ = count;
}

fn main() {}
