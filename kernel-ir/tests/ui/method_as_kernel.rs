use kernel_ir::prelude::*;

struct Op;

impl Op {
    #[tpu_kernel]
    fn k(&self, x: In<f32>, o: Out<f32>) {
        o[..] = x[..];
    }
}

fn main() {}
