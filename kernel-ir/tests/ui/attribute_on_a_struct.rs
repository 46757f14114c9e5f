use kernel_ir::prelude::*;

#[tpu_kernel]
struct K {
    x: In<f32>,
}

fn main() {}
