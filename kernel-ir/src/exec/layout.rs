//! Strided layouts: how a box of elements lies in storage, and the loops that read and copy one.

use std::ops::Deref;

/// The most axes that an array or tile may have here.
pub(super) const MAX_RANK: usize = 8;

/// A short list of numbers, one an axis; lives on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Axes {
    len: usize,
    items: [usize; MAX_RANK],
}

impl Axes {
    /// Appends a number; ranks are bounded before anything runs.
    pub(super) fn push(&mut self, x: usize) {
        self.items[self.len] = x;
        self.len += 1;
    }
}

impl Deref for Axes {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.items[..self.len]
    }
}

impl std::ops::DerefMut for Axes {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.items[..self.len]
    }
}

impl FromIterator<usize> for Axes {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        let mut axes = Self::default();
        iter.into_iter().for_each(|x| axes.push(x));
        axes
    }
}

/// Distance between neighbours along each axis of a dense row-major array.
pub(super) fn row_major(shape: &[usize]) -> Axes {
    let mut strides: Axes = shape.iter().map(|_| 1).collect();
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Where a box of elements lies in a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Position of the first element.
    pub(super) offset: usize,
    /// Length of each axis.
    pub(super) shape: Axes,
    /// Distance between neighbours along each axis; 0 repeats.
    pub(super) strides: Axes,
}

impl Layout {
    /// All of a dense row-major array.
    pub(super) fn dense(shape: &[usize]) -> Self {
        Self { offset: 0, shape: shape.iter().copied().collect(), strides: row_major(shape) }
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The same elements in the same order with as few axes as possible.
    pub(super) fn collapse(&self) -> Self {
        let (mut shape, mut strides) = (Axes::default(), Axes::default());
        for (&n, &s) in self.shape.iter().zip(self.strides.iter()) {
            if n == 1 {
                continue;
            }
            match (shape.last_mut(), strides.last_mut()) {
                (Some(m), Some(t)) if *t == s * n => {
                    *m *= n;
                    *t = s;
                }
                _ => {
                    shape.push(n);
                    strides.push(s);
                }
            }
        }
        Self { offset: self.offset, shape, strides }
    }

    /// The elements as one slice, when they lie side by side in order.
    pub(super) fn contiguous<'a, T>(&self, data: &'a [T]) -> Option<&'a [T]> {
        let c = self.collapse();
        match (&*c.shape, &*c.strides) {
            ([], []) => Some(&data[c.offset..=c.offset]),
            ([n], [1]) => Some(&data[c.offset..c.offset + n]),
            _ => None,
        }
    }
}

/// Calls `row(position)` for the elements `start .. start + n` in row-major order, a run along the last axis at a
/// time: `row(address of the first, stride, place in the range, length of the run)`.
fn runs(l: &Layout, start: usize, n: usize, mut row: impl FnMut(usize, usize, std::ops::Range<usize>)) {
    let rank = l.shape.len();
    if n == 0 {
        return;
    }
    if rank == 0 {
        return row(l.offset, 0, 0..n);
    }
    let (inner, stride) = (l.shape[rank - 1], l.strides[rank - 1]);
    if rank == 1 {
        return row(l.offset + start * stride, stride, 0..n);
    }
    let mut index = l.shape;
    let mut rest = start / inner;
    let mut column = start % inner;
    let mut base = l.offset;
    for axis in (0..rank - 1).rev() {
        index[axis] = rest % l.shape[axis];
        rest /= l.shape[axis];
        base += index[axis] * l.strides[axis];
    }
    let mut done = 0;
    while done < n {
        let run = (inner - column).min(n - done);
        row(base + column * stride, stride, done..done + run);
        done += run;
        column = 0;
        for axis in (0..rank - 1).rev() {
            index[axis] += 1;
            base += l.strides[axis];
            if index[axis] < l.shape[axis] {
                break;
            }
            base -= l.strides[axis] * l.shape[axis];
            index[axis] = 0;
        }
    }
}

/// Calls `f` with the number and the position of every element, in row-major order.
pub(super) fn each(l: &Layout, mut f: impl FnMut(usize, usize)) {
    runs(l, 0, l.len(), |at, stride, place| {
        let first = place.start;
        place.for_each(|i| f(i, at + (i - first) * stride));
    });
}

/// Reads the elements `start .. start + out.len()`, in row-major order, through `f`. `l` is best collapsed.
pub(super) fn gather<S: Copy, D: Copy>(
    src: &[S],
    l: &Layout,
    start: usize,
    out: &mut [D],
    f: impl Fn(S) -> D + Copy,
) {
    runs(l, start, out.len(), |at, stride, place| {
        convert_run(src, at, stride, &mut out[place], f);
    });
}

/// Writes the position of each element instead of the element: an index along an axis, for a suitable layout.
pub(super) fn gather_positions(l: &Layout, start: usize, out: &mut [i32]) {
    runs(l, start, out.len(), |at, stride, place| {
        for (i, o) in out[place].iter_mut().enumerate() {
            *o = (at + i * stride) as i32;
        }
    });
}

#[inline(always)]
fn convert_run<S: Copy, D: Copy>(
    src: &[S],
    at: usize,
    stride: usize,
    out: &mut [D],
    f: impl Fn(S) -> D + Copy,
) {
    match (stride, out.len()) {
        (_, 0) => {}
        (1, n) => {
            for (o, s) in out.iter_mut().zip(&src[at..at + n]) {
                *o = f(*s);
            }
        }
        (0, _) => out.fill(f(src[at])),
        (_, _) => {
            for (o, s) in out.iter_mut().zip(src[at..].iter().step_by(stride)) {
                *o = f(*s);
            }
        }
    }
}

/// Copies a box of elements through `f`; both layouts have one shape.
pub(super) fn copy<S: Copy, D: Copy>(
    src: &[S],
    from: &Layout,
    dst: &mut [D],
    to: &Layout,
    f: impl Fn(S) -> D + Copy,
) {
    debug_assert_eq!(*from.shape, *to.shape, "a copy keeps its shape");
    if from.len() == 0 {
        return;
    }
    // Merge the axes that both sides walk as one.
    let mut axes: Vec<(usize, usize, usize)> = Vec::with_capacity(MAX_RANK);
    for i in 0..from.shape.len() {
        let (n, s, d) = (from.shape[i], from.strides[i], to.strides[i]);
        match axes.last_mut() {
            _ if n == 1 => {}
            Some(a) if a.1 == s * n && a.2 == d * n => *a = (a.0 * n, s, d),
            _ => axes.push((n, s, d)),
        }
    }
    copy_axes(src, from.offset, dst, to.offset, &axes, f);
}

fn copy_axes<S: Copy, D: Copy>(
    src: &[S],
    s0: usize,
    dst: &mut [D],
    d0: usize,
    axes: &[(usize, usize, usize)],
    f: impl Fn(S) -> D + Copy,
) {
    match *axes {
        [] => dst[d0] = f(src[s0]),
        [(n, s, 1)] => convert_run(src, s0, s, &mut dst[d0..d0 + n], f),
        [(n, s, d)] => {
            for i in 0..n {
                dst[d0 + i * d] = f(src[s0 + i * s]);
            }
        }
        // A transpose: squares of 16 keep both sides in the cache.
        [(rows, rs, rd), (cols, cs, 1)] if cs > 1 && rs < cs => {
            for r0 in (0..rows).step_by(16) {
                for c0 in (0..cols).step_by(16) {
                    for r in r0..(r0 + 16).min(rows) {
                        let (a, n) = (s0 + r * rs + c0 * cs, 16.min(cols - c0));
                        let b = d0 + r * rd + c0;
                        convert_run(src, a, cs, &mut dst[b..b + n], f);
                    }
                }
            }
        }
        [(n, s, d), ref rest @ ..] => {
            for i in 0..n {
                copy_axes(src, s0 + i * s, dst, d0 + i * d, rest, f);
            }
        }
    }
}
