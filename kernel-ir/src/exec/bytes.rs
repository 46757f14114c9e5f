//! Arrays as bytes: what files hold and other programs exchange.

use half::bf16;

use crate::diag::{Diagnostic, Report};
use crate::ir::DType;

use super::array::Array;
use super::data::{Element, each_data};

/// An element as little-endian bytes, as many as [`DType::bytes`] says; a `bool` takes one, 0 or 1.
trait Bytes: Element {
    const SIZE: usize;
    fn from_bytes(bytes: &[u8]) -> Self;
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! bytes {
    ($($t:ty: $size:literal),*) => { $(
        impl Bytes for $t {
            const SIZE: usize = $size;
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut all = [0; $size];
                all.copy_from_slice(bytes);
                Self::from_le_bytes(all)
            }
            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
        }
    )* };
}

bytes!(f32: 4, bf16: 2, i32: 4, i16: 2, i8: 1);

impl Bytes for bool {
    const SIZE: usize = 1;
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes != [0]
    }
    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
}

impl Array {
    /// An array from its elements as little-endian bytes, in row-major order; a `bool` takes one byte.
    ///
    /// # Errors
    /// K0404 if the shape holds another number of elements.
    pub fn from_bytes(dtype: DType, shape: impl Into<Vec<usize>>, bytes: &[u8]) -> Result<Self, Report> {
        fn read<T: Bytes>(shape: Vec<usize>, bytes: &[u8]) -> Result<Array, Report> {
            if !bytes.len().is_multiple_of(T::SIZE) {
                let message = format!("{} bytes are no whole number of elements of {}", bytes.len(), T::SIZE);
                return Err(Diagnostic::error("K0404", message).into());
            }
            let elements: Vec<T> = bytes.chunks_exact(T::SIZE).map(T::from_bytes).collect();
            Array::new(shape, elements)
        }
        let shape = shape.into();
        match dtype {
            DType::F32 => read::<f32>(shape, bytes),
            DType::Bf16 => read::<bf16>(shape, bytes),
            DType::I32 => read::<i32>(shape, bytes),
            DType::I16 => read::<i16>(shape, bytes),
            DType::I8 => read::<i8>(shape, bytes),
            DType::Bool => read::<bool>(shape, bytes),
        }
    }

    /// The elements as little-endian bytes, in row-major order; a `bool` takes one byte.
    pub fn to_bytes(&self) -> Vec<u8> {
        fn write<T: Bytes>(elements: &[T]) -> Vec<u8> {
            let mut out = Vec::with_capacity(elements.len() * T::SIZE);
            elements.iter().for_each(|x| x.put(&mut out));
            out
        }
        each_data!(self.data(), v => write(v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_both_ways() {
        for dtype in DType::ALL {
            let numbers = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
            let array = Array::from_f64(dtype, [2, 3], &numbers).unwrap();
            let bytes = array.to_bytes();
            assert_eq!(Array::from_bytes(dtype, [2, 3], &bytes).unwrap(), array);
            assert!(Array::from_bytes(dtype, [2, 4], &bytes).is_err());
        }
        let one = Array::new::<i32>([1], [0x0102_0304]).unwrap();
        assert_eq!(one.to_bytes(), [4, 3, 2, 1]);
        assert!(Array::from_bytes(DType::F32, [1], &[0; 5]).is_err());
    }
}
