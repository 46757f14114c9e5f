use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, out: Out<f32>) {
    out[..] = x[..];
}

fn main() {
    let _ = k {
        grid: grid([par(4)]),
        x: array([32, 128]).block([8, 128], |[i]| (i, 0)),
        output: array([32, 128]).block([8, 128], |[i]| (i, 0)),
    };
}
