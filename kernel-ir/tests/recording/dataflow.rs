//! Data flow: outputs, scratch, inputs.

use insta::assert_snapshot;
use kernel_ir::prelude::*;

use super::report;

#[tpu_kernel]
fn forgetful(x: In<f32>, o: Out<f32>, spare: Out<f32>) {
    o[..] = x[..];
    let _ = spare;
}

#[test]
fn an_output_is_written() {
    let launch = forgetful {
        grid: grid([par(4)]),
        x: array([32, 128]).block([8, 128], |[i]| (i, 0)),
        o: array([32, 128]).block([8, 128], |[i]| (i, 0)),
        spare: array([32, 128]).block([8, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn row_sums(x: In<f32>, o: Out<f32>, acc: Scratch<f32>) {
    acc[..] += x[..].sum(1);
    o[..] = acc[..];
}

#[test]
fn scratch_is_cleared_before_it_accumulates() {
    let launch = row_sums {
        grid: grid([par(4), seq(8)]),
        x: array([32, 1024]).block([8, 128], |[i, k]| (i, k)),
        o: array([32, 1]).block([8, 1], |[i, _]| (i, 0)),
        acc: vmem([8, 1]),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn exchanged(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let fetch = copy(buf.at(..), x.at((ds(0, 8), ..)), sem.slot(0));
    fetch.clone().start();
    fetch.wait();
    o[..] = buf[..];
}

#[test]
fn an_input_is_not_written() {
    let launch = exchanged {
        grid: grid([seq(1)]),
        x: hbm([64, 128]),
        o: array([8, 128]).block([8, 128], |[_]| (0, 0)),
        buf: vmem([8, 128]),
        sem: dma_sem(1),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn unused(x: In<f32>, weights: In<f32>, o: Out<f32>) {
    o[..] = x[..];
    let _ = weights;
}

#[test]
fn an_unused_parameter_is_a_warning() {
    let kernel = unused {
        grid: grid([par(4)]),
        x: array([32, 128]).block([8, 128], |[i]| (i, 0)),
        weights: array([32, 128]).block([8, 128], |[i]| (i, 0)),
        o: array([32, 128]).block([8, 128], |[i]| (i, 0)),
    };
    let kernel = kernel.build().expect("a warning does not stop the build");
    assert_snapshot!(kernel.verify().expect("it was built").warnings);
}

#[tpu_kernel]
fn narrow(x: In<i8>, o: Out<i8>) {
    o[..] = (x[..] & full([32, 128], 15i8)) + 1i8;
}

#[test]
fn narrow_arithmetic_is_a_warning() {
    let kernel = narrow {
        grid: grid([par(4)]),
        x: array([128, 128]).block([32, 128], |[i]| (i, 0)),
        o: array([128, 128]).block([32, 128], |[i]| (i, 0)),
    };
    let kernel = kernel.build().expect("a warning does not stop the build");
    assert_snapshot!(kernel.verify().expect("it was built").warnings);
}
