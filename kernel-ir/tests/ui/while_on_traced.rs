use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>) {
    let mut i = program_id(0);
    while i < 8 {
        o[i] = x[i];
        i += 1;
    }
}

fn main() {}
