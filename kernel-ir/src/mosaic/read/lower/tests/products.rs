//! Products of any axes, run by the executor, against their definition.

use super::compute::{floats, run};
use crate::exec::Array;

fn numbers(text: &[usize]) -> impl Fn(usize) -> f64 {
    let seed = text.iter().sum::<usize>();
    move |i| ((i * 7 + seed) % 13) as f64 - 6.0
}

/// A product by its definition: the result's axes are those of the batch, then those left of each side.
fn product(a: &Array, b: &Array, lhs: &[&[usize]; 3], rhs: &[&[usize]; 3]) -> Vec<f64> {
    let (x, y) = (a.to_f64(), b.to_f64());
    let lengths = |axes: &[usize], s: &[usize]| axes.iter().map(|i| s[*i]).collect::<Vec<_>>();
    let sizes = [lengths(lhs[0], a.shape()), lengths(lhs[1], a.shape()), lengths(rhs[1], b.shape())].concat();
    let deep = lengths(lhs[2], a.shape());
    let at = |shape: &[usize], index: &[(usize, usize)]| {
        let along = |axis: usize| index.iter().find(|(a, _)| *a == axis).unwrap().1;
        (0..shape.len()).fold(0, |n, axis| n * shape[axis] + along(axis))
    };
    let split = |mut i: usize, sizes: &[usize]| {
        let mut index = vec![0; sizes.len()];
        for (k, n) in sizes.iter().enumerate().rev() {
            index[k] = i % n;
            i /= n;
        }
        index
    };
    let zip = |axes: &[&[usize]], index: &[&[usize]]| -> Vec<(usize, usize)> {
        axes.concat().into_iter().zip(index.concat()).collect()
    };
    let element = |i: usize| {
        let free = split(i, &sizes);
        let (batch, rest) = free.split_at(lhs[0].len());
        let (left, right) = rest.split_at(lhs[1].len());
        let term = |k: usize| {
            let k = split(k, &deep);
            let l = at(a.shape(), &zip(lhs, &[batch, left, &k]));
            let r = at(b.shape(), &zip(rhs, &[batch, right, &k]));
            x[l] * y[r]
        };
        (0..deep.iter().product()).map(term).sum()
    };
    (0..sizes.iter().product()).map(element).collect()
}

#[test]
fn products_contract_any_axes_and_go_by_batches() {
    // Shapes, batch, free and contracting axes of each side, and the result.
    type Axes<'a> = [&'a [usize]; 3];
    type Case<'a> = (&'a [usize], &'a [usize], Axes<'a>, Axes<'a>, &'a str);
    let cases: [Case<'_>; 8] = [
        (&[4, 3], &[3, 5], [&[], &[0], &[1]], [&[], &[1], &[0]], "4x5xf32"),
        (&[3, 4], &[5, 3], [&[], &[1], &[0]], [&[], &[0], &[1]], "4x5xf32"),
        (&[2, 4, 3], &[2, 3, 5], [&[0], &[1], &[2]], [&[0], &[2], &[1]], "2x4x5xf32"),
        (&[4, 2, 3], &[3, 5, 2], [&[1], &[0], &[2]], [&[2], &[1], &[0]], "2x4x5xf32"),
        (&[2, 4, 3], &[2, 3, 5], [&[], &[1], &[0, 2]], [&[], &[2], &[0, 1]], "4x5xf32"),
        (&[2, 4, 3], &[3, 5], [&[], &[0, 1], &[2]], [&[], &[1], &[0]], "2x4x5xf32"),
        (&[2, 2, 4, 3], &[2, 2, 5, 3], [&[0, 1], &[2], &[3]], [&[0, 1], &[2], &[3]], "2x2x4x5xf32"),
        (&[3], &[3, 5], [&[], &[], &[0]], [&[], &[1], &[0]], "5xf32"),
    ];
    for (a, b, lhs, rhs, out) in cases {
        let (x, y) = (floats(a, numbers(a)), floats(b, numbers(b)));
        let order: Vec<String> = [(0, lhs[0]), (0, lhs[1]), (1, rhs[1])]
            .iter()
            .flat_map(|(side, axes)| axes.iter().map(move |axis| format!("{side}, {axis}")))
            .collect();
        let order = order.join(", ");
        let [(lb, lf, lc), (rb, rf, rc)] = [lhs, rhs].map(|s| (s[0], s[1], s[2]));
        let text =
            format!("#tpu.dot_dimension_numbers<{lc:?}, {rc:?}, {lf:?}, {rf:?}, [{order}], {lb:?}, {rb:?}>");
        let expected: Vec<_> = product(&x, &y, &lhs, &rhs).iter().map(|p| p + 0.5).collect();
        let got = run(&[x, y], out, |m, v| {
            let numbers = m.opaque(&text);
            let out = format!("vector<{out}>");
            let start = m.float(&out, 0.5);
            m.op("tpu.matmul", &[v[0], v[1], start], &out, &[("dimension_numbers", numbers)])
        });
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn flags_of_older_versions_transpose_a_product() {
    let (x, y) = (floats(&[3, 4], numbers(&[1])), floats(&[5, 3], numbers(&[2])));
    let expected = product(&x, &y, &[&[], &[1], &[0]], &[&[], &[0], &[1]]);
    let got = run(&[x, y], "4x5xf32", |m, v| {
        let yes = m.int(1);
        let start = m.float("vector<4x5xf32>", 0.0);
        let flags = [("transpose_lhs", yes), ("transpose_rhs", yes)];
        m.op("tpu.matmul", &[v[0], v[1], start], "vector<4x5xf32>", &flags)
    });
    assert_eq!(got, expected);
}
