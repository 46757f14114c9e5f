//! Comparing what a kernel made with what was expected, as `numpy.allclose` does.

use kernel_ir::exec::Array;
use serde::Serialize;

/// How far numbers may be apart: `|made - expected| <= atol + rtol * |expected|`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Elements beyond the tolerance.
    pub(crate) wrong: usize,
    /// All elements.
    pub(crate) elements: usize,
    /// The largest `|made - expected|`; `None` if one is NaN where the other is not, or infinite.
    pub(crate) worst: Option<f64>,
    /// Where that is, as an index.
    pub(crate) at: Vec<usize>,
    /// What was made there.
    pub(crate) made: f64,
    /// What was expected there.
    pub(crate) expected: f64,
}

/// Compares two arrays; equal NaNs and equal infinities are equal.
///
/// # Errors
/// The shapes, when they differ.
pub(crate) fn compare(made: &Array, expected: &Array, tolerance: Tolerance) -> Result<Comparison, String> {
    if made.shape() != expected.shape() {
        return Err(format!("its shape is {:?}, not {:?}", made.shape(), expected.shape()));
    }
    let (a, b) = (made.to_f64(), expected.to_f64());
    let mut found =
        Comparison { wrong: 0, elements: a.len(), worst: Some(0.0), at: vec![], made: 0.0, expected: 0.0 };
    let (mut excess, mut position) = (f64::NEG_INFINITY, 0);
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan());
        let apart = if same { 0.0 } else { (x - y).abs() };
        let over = apart - (tolerance.atol + tolerance.rtol * y.abs());
        let beyond = !same && (over.is_nan() || over > 0.0);
        found.wrong += usize::from(beyond);
        // What is not a number is as far away as can be.
        let rank = if beyond && over.is_nan() { f64::INFINITY } else { over };
        if rank > excess {
            (excess, position) = (rank, i);
            found.worst = Some(apart).filter(|d| d.is_finite());
        }
    }
    if let (Some(x), Some(y)) = (a.get(position), b.get(position)) {
        (found.made, found.expected) = (*x, *y);
        found.at = index(position, made.shape());
    }
    Ok(found)
}

fn index(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut at: Vec<usize> = shape
        .iter()
        .rev()
        .map(|n| {
            let i = position % n;
            position /= n;
            i
        })
        .collect();
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_ir::ir::DType;

    fn of(numbers: &[f64]) -> Array {
        Array::from_f64(DType::F32, [1, numbers.len()], numbers).unwrap()
    }

    #[test]
    fn finds_the_worst_element() {
        let tolerance = Tolerance { rtol: 0.1, atol: 0.0 };
        let found = compare(&of(&[1.0, 2.0, 10.5]), &of(&[1.0, 3.0, 10.0]), tolerance).unwrap();
        assert_eq!((found.wrong, found.at, found.worst), (1, vec![0, 1], Some(1.0)));
    }

    #[test]
    fn nan_equals_nan_only() {
        let tolerance = Tolerance { rtol: 1.0, atol: 1.0 };
        let nan = of(&[f64::NAN, f64::INFINITY]);
        assert_eq!(compare(&nan, &nan, tolerance).unwrap().wrong, 0);
        assert_eq!(compare(&nan, &of(&[0.0, 0.0]), tolerance).unwrap().wrong, 2);
        assert_eq!(compare(&of(&[0.0, 0.0]), &nan, tolerance).unwrap().wrong, 2);
        assert!(compare(&nan, &of(&[0.0]), tolerance).is_err());
    }
}
