use kernel_ir::prelude::*;

fn reset(acc: &Scratch<f32>) {
    acc[..] = 0.0;
}

fn main() {}
