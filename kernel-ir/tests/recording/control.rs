//! Regions: what leaves a `when`, what a loop carries, which tokens a launch knows.

use std::cell::Cell;

use insta::assert_snapshot;
use kernel_ir::prelude::*;

use super::report;

#[tpu_kernel]
fn escape(x: In<f32>, o: Out<f32>) {
    let keep = Cell::new(None);
    when(program_id(0) == 0, || keep.set(Some(x[..].exp())));
    o[..] = keep.get().expect("set above") + 1.0;
}

#[test]
fn a_value_stays_in_its_region() {
    let launch = escape {
        grid: grid([seq(2)]),
        x: array([16, 128]).block([8, 128], |[i]| (i, 0)),
        o: array([16, 128]).block([8, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn shrinking(x: In<f32>, o: Out<f32>) {
    let mut s = x[..];
    for _ in range(0, 4) {
        s = s.sum(1);
    }
    o[..] = s;
}

#[test]
fn a_carried_value_keeps_its_shape() {
    let launch = shrinking {
        grid: grid([seq(1)]),
        x: array([8, 128]).block([8, 128], |[_]| (0, 0)),
        o: array([8, 128]).block([8, 128], |[_]| (0, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn gathered(ids: Prefetch<i32>, x: In<f32>, o: Out<f32>) {
    when(ids.get(program_id(0)) >= 0, || o[..] = x[..]);
}

#[test]
fn a_token_belongs_to_the_launch() {
    let (ids, other) = (prefetch(4), prefetch(4));
    let launch = gathered {
        grid: grid([seq(4)]),
        ids,
        x: array([32, 128]).block([8, 128], move |[i]| (other.get(i), 0)),
        o: array([32, 128]).block([8, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn everything(x: In<bf16>, y: In<bf16>, o: Out<f32>, spare: Out<f32>, acc: Scratch<f32>) {
    acc[..] += dot_t(x[..], y[..]);
    let bias = full([1, 64], 1.0);
    let row = acc[..] + bias;
    o[..] = row.sum(1);
    o[(ds(0, 256), ..)] = row;
    spare[..] = acc[..];
}

#[test]
fn one_run_tells_everything() {
    let ([m, k, n], [bm, bk, bn]) = ([512, 500, 256], [128, 100, 256]);
    let launch = everything {
        grid: grid([par(m / bm), par(n / bn), par(k / bk)]),
        x: array([m, k]).block([bm, bk], |[i, _, k]| (i, k)),
        y: array([k, n]).block([bk, bn], |[_, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], |[i, j, _]| (i, j)),
        spare: array([m, n]).block([bm, bn], |[_, j, i]| (i, j)),
        acc: vmem([bm, bn]),
    };
    assert_snapshot!(report(launch.build()));
}
