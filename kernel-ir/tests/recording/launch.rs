//! The launch: blocks, maps, memory, dims.

use insta::assert_snapshot;
use kernel_ir::prelude::*;

use super::report;

#[tpu_kernel]
fn doubled(x: In<f32>, o: Out<f32>) {
    o[..] = x[..] * 2.0;
}

#[test]
fn a_block_is_not_longer_than_its_array() {
    let launch = doubled {
        grid: grid([par(4)]),
        x: array([512, 64]).block([128, 128], |[i]| (i, 0)),
        o: array([512, 128]).block([128, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[test]
fn a_block_is_made_of_whole_tiles() {
    let [m, n] = dims(["m", "n"]);
    let launch = doubled {
        grid: grid([par(m.div_ceil(100)), par(n.div_ceil(64))]),
        x: array([m, n]).block([100, 64], |[i, j]| (i, j)),
        o: array([m, n]).block([100, 64], |[i, j]| (i, j)),
    };
    assert_snapshot!(report(launch.build()));
}

#[test]
fn parallel_steps_write_different_blocks() {
    let launch = doubled {
        grid: grid([par(4), par(8)]),
        x: array([512, 1024]).block([128, 128], |[i, k]| (i, k)),
        o: array([512, 128]).block([128, 128], |[i, _]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn routed(ids: Prefetch<i32>, x: In<f32>, o: Out<f32>) {
    when(ids.get(program_id(0)) >= 0, || o[..] = x[..]);
}

#[test]
fn data_does_not_tell_parallel_steps_apart() {
    let [m] = dims(["m"]);
    let ids = prefetch(m);
    let launch = routed {
        grid: grid([par(m)]),
        ids,
        x: array([512, 128]).block([8, 128], |[_]| (0, 0)),
        o: array([512, 128]).block([8, 128], move |[i]| (ids.get(i), 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[test]
fn an_output_block_is_visited_in_one_go() {
    let launch = doubled {
        grid: grid([seq(8), seq(4)]),
        x: array([512, 1024]).block([128, 128], |[k, i]| (i, k)),
        o: array([512, 128]).block([128, 128], |[_, i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[test]
fn a_block_index_is_not_an_offset() {
    let launch = doubled {
        grid: grid([par(4)]),
        x: array([512, 128]).block([128, 128], |[i]| (i * 128, 0)),
        o: array([512, 128]).block([128, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn hoarding(x: In<f32>, o: Out<f32>, all: Scratch<f32>, mean: Scratch<f32>) {
    all[..] = 0.0;
    mean[..] = all[..].sum(1);
    o[..] = x[..] + all[(ds(0, 512), ds(0, 4096))] - mean[(ds(0, 512), ..)];
}

#[test]
fn vmem_is_finite() {
    let launch = hoarding {
        grid: grid([par(4)]),
        x: array([2048, 4096]).block([512, 4096], |[i]| (i, 0)),
        o: array([2048, 4096]).block([512, 4096], |[i]| (i, 0)),
        all: vmem([4096, 6144]),
        mean: vmem([4096, 1]),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn windowed(starts: Prefetch<i32>, x: In<bf16>, o: Out<bf16>) {
    let start = starts.get(program_id(0));
    o[..] = x[(ds(start, 16), ds(program_id(0) * 64, 128))];
}

#[test]
fn traced_indices_are_known_to_be_aligned() {
    let launch = windowed {
        grid: grid([par(4)]),
        starts: prefetch(4),
        x: array([256, 512]).block([256, 512], |[_]| (0, 0)),
        o: array([64, 128]).block([16, 128], |[i]| (i, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[tpu_kernel]
fn shifted(x: In<f32>, o: Out<f32>) {
    for i in range(0, 8) {
        o[i] = x[i + 1];
    }
}

#[test]
fn a_loop_does_not_reach_beyond_the_block() {
    let launch = shifted {
        grid: grid([seq(1)]),
        x: array([8, 128]).block([8, 128], |[_]| (0, 0)),
        o: array([8, 128]).block([8, 128], |[_]| (0, 0)),
    };
    assert_snapshot!(report(launch.build()));
}

#[test]
fn an_argument_shows_every_dim() {
    let [m, n] = dims(["m", "n"]);
    let launch = doubled {
        grid: grid([par(m.div_ceil(8)), par(n.div_ceil(128))]),
        x: array((m, 128)).block([8, 128], |[i, _]| (i, 0)),
        o: array([m, n]).block([8, 128], |[i, j]| (i, j)),
    };
    let kernel = launch.build().expect("a warning does not stop the build");
    assert_snapshot!(kernel.verify().expect("it was built").warnings);
}
