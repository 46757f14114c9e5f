//! Shapes: broadcasts, products, stores, indices.

use insta::assert_snapshot;
use kernel_ir::prelude::*;

use super::report;

/// Builds a kernel of one step on blocks `x: [128, 256]`, `q: [1, 64, 128]` and `o: [128, 256]`.
macro_rules! build {
    ($kernel:ident) => {
        report(
            $kernel {
                grid: grid([seq(1)]),
                x: array([128, 256]).block([128, 256], |[_]| (0, 0)),
                q: array([1, 64, 128]).block([1, 64, 128], |[_]| (0, 0, 0)),
                o: array([128, 256]).block([128, 256], |[_]| (0, 0)),
            }
            .build(),
        )
    };
}

#[tpu_kernel]
fn bias_of_the_wrong_length(x: In<f32>, q: In<f32>, o: Out<f32>) {
    let bias = full([1, 64], 1.0) + q[0].sum(0).sum(1);
    o[..] = x[..] + bias;
}

#[test]
fn unequal_lengths_do_not_broadcast() {
    assert_snapshot!(build!(bias_of_the_wrong_length));
}

#[tpu_kernel]
fn unequal_ranks(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..] * q[..];
}

#[test]
fn tiles_never_gain_axes() {
    assert_snapshot!(build!(unequal_ranks));
}

#[tpu_kernel]
fn third_axis(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..] / x[..].sum(2) + q[0].max(0).sum(1);
}

#[test]
fn a_reduction_needs_the_axis() {
    assert_snapshot!(build!(third_axis));
}

#[tpu_kernel]
fn product_of_the_wrong_sides(x: In<f32>, q: In<f32>, o: Out<f32>) {
    let s = dot(x[..], q[0]);
    o[..] = s.exp() + 1.0;
}

#[test]
fn a_dot_contracts_equal_lengths_and_is_reported_once() {
    assert_snapshot!(build!(product_of_the_wrong_sides));
}

#[tpu_kernel]
fn product_of_a_batch(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..] + dot_t(q[..], q[..]).sum(0);
}

#[test]
fn a_dot_takes_matrices() {
    assert_snapshot!(build!(product_of_a_batch));
}

#[tpu_kernel]
fn reshaped(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..] + q[0].reshape([128, 128]).sum(1);
}

#[test]
fn a_reshape_keeps_the_elements() {
    assert_snapshot!(build!(reshaped));
}

#[tpu_kernel]
fn joined(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = concatenate([x[..], q[0]], 0);
}

#[test]
fn joined_tiles_agree_on_the_other_axes() {
    assert_snapshot!(build!(joined));
}

#[tpu_kernel]
fn chosen(x: In<f32>, q: In<f32>, o: Out<f32>) {
    let first = program_id(0) == 0;
    let y = select(first, x[..], q[0].sum(0).sum(1));
    o[..] = x[..] * y;
}

#[test]
fn a_flag_does_not_choose_between_tiles() {
    assert_snapshot!(build!(chosen));
}

#[tpu_kernel]
fn stored(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..].sum(1);
    o[(ds(0, 64), ds(0, 128))] = q[0];
}

#[test]
fn a_stored_tile_fits_its_window() {
    assert_snapshot!(build!(stored));
}

#[tpu_kernel]
fn sliced(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[..];
    o[(ds(64, 128), ds(0, 128))] = q[(0, 64)].reshape([1, 128]);
}

#[test]
fn slices_and_indices_stay_inside() {
    assert_snapshot!(build!(sliced));
}

#[tpu_kernel]
fn indexed(x: In<f32>, q: In<f32>, o: Out<f32>) {
    o[..] = x[(0, 0, 0)] + q[0].max(0).max(1);
}

#[test]
fn indices_are_not_more_than_axes() {
    assert_snapshot!(build!(indexed));
}

#[tpu_kernel]
fn destructured(x: In<f32>, q: In<f32>, o: Out<f32>) {
    let [rows, lanes] = q.shape();
    let [a, b, c] = x[..].shape();
    let _ = (rows, lanes, a, b, c);
    o[..] = x[..];
}

#[test]
fn a_shape_has_the_rank_that_is_asked_for() {
    assert_snapshot!(build!(destructured));
}

#[tpu_kernel]
fn of_traced_length(x: In<f32>, q: In<f32>, o: Out<f32>) {
    let n = num_programs(0) * 8;
    o[..] = x[(ds(0, n), ..)].sum(0) + q[0].sum(0).sum(1);
}

#[test]
fn a_tile_has_a_length_known_while_recording() {
    assert_snapshot!(build!(of_traced_length));
}

#[tpu_kernel]
fn second_grid_axis(x: In<f32>, q: In<f32>, o: Out<f32>) {
    when(program_id(1) == 0, || o[..] = x[..] + q[0].sum(0).sum(1));
}

#[test]
fn the_grid_has_the_axis() {
    assert_snapshot!(build!(second_grid_axis));
}
