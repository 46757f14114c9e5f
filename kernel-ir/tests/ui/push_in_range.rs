use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let mut seen = vec![];
    for i in range(0, 4) {
        seen.push(x[i]);
    }
    o[..] = seen[0];
}

fn main() {}
