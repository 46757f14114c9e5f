use kernel_ir::prelude::*;

fn cube(x: Tile<f32>) -> Tile<f32> {
    let mut y = x;
    for _ in range(0, 3) {
        y = y * x;
    }
    y
}

fn main() {}
