//! Arrays that a caller passes to a kernel and gets back.

use crate::diag::{Diagnostic, Report};
use crate::ir::DType;

use super::data::{Data, Element, Stored, each_data, each_dtype};

/// An owned, row-major array.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    shape: Vec<usize>,
    data: Data,
}

impl Array {
    /// An array of these elements, in row-major order.
    ///
    /// # Errors
    /// K0404 if the shape holds a different number of elements.
    pub fn new<T: Element>(
        shape: impl Into<Vec<usize>>,
        elements: impl Into<Vec<T>>,
    ) -> Result<Self, Report> {
        let (shape, elements) = (shape.into(), elements.into());
        let wanted = shape.iter().try_fold(1_usize, |a, &b| a.checked_mul(b)).unwrap_or(usize::MAX);
        if wanted != elements.len() {
            let message =
                format!("an array of shape {shape:?} has {wanted} elements, not {}", elements.len());
            return Err(Diagnostic::error("K0404", message).into());
        }
        Ok(Self { shape, data: T::into_storage(elements) })
    }

    /// An array whose element at row-major position `i` is `f(i)`.
    pub fn from_fn<T: Element>(shape: impl Into<Vec<usize>>, f: impl FnMut(usize) -> T) -> Self {
        let shape = shape.into();
        let elements = (0..shape.iter().product()).map(f).collect();
        Self { shape, data: T::into_storage(elements) }
    }

    /// An array of zeros (`false` for `bool`).
    pub fn zeros(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let data = Data::zeros(dtype, shape.iter().product());
        Self { shape, data }
    }

    /// The nearest array of `dtype` to these numbers: floats round to nearest even, integers truncate and saturate.
    ///
    /// # Errors
    /// K0404 if the shape holds a different number of elements.
    pub fn from_f64(dtype: DType, shape: impl Into<Vec<usize>>, numbers: &[f64]) -> Result<Self, Report> {
        fn convert<T: Stored>(shape: impl Into<Vec<usize>>, numbers: &[f64]) -> Result<Array, Report> {
            let v: Vec<T> = numbers.iter().map(|x| T::from_f64(*x)).collect();
            Array::new(shape, v)
        }
        each_dtype!(dtype, T => convert::<T>(shape, numbers))
    }

    pub(super) const fn from_data(shape: Vec<usize>, data: Data) -> Self {
        Self { shape, data }
    }

    pub(super) const fn data(&self) -> &Data {
        &self.data
    }

    /// Element type.
    pub const fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Length of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// True when some axis has length zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in row-major order, if they are of type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        T::elements_of(&self.data)
    }

    /// The elements in row-major order, if they are of type `T`.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        T::elements_of_mut(&mut self.data)
    }

    /// The elements as numbers, exact; `true` is 1.
    pub fn to_f64(&self) -> Vec<f64> {
        fn convert<T: Stored>(v: &[T]) -> Vec<f64> {
            v.iter().map(|x| x.to_f64()).collect()
        }
        each_data!(&self.data, v => convert(v))
    }
}
