use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    o[..] = x[..];
}

fn main() {
    let _ = k {
        grid: grid([par(4)]),
        x: array([32, 128]).block([8, 128], |[i]| (i, 0, 0)),
        o: array([32, 128]).block([8, 128], |[i]| (i, 0)),
    };
}
