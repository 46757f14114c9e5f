use kernel_ir::prelude::*;

#[tpu_kernel]
fn k(x: In<f32>, o: Out<f32>, names: Vec<String>) {
    o[..] = x[..] * names.len() as f32;
}

fn main() {}
