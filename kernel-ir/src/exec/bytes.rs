//! Arrays as bytes: what files hold and other programs exchange.

use half::bf16;

use crate::diag::{Diagnostic, Report};
use crate::ir::DType;

use super::array::Array;
use super::data::{Element, Stored, each_data, each_dtype};
use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};

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

macro_rules! one_byte {
    ($($t:ty),*) => { $(
        impl Bytes for $t {
            const SIZE: usize = 1;
            fn from_bytes(bytes: &[u8]) -> Self {
                Stored::from_bits(bytes.first().copied().unwrap_or_default().into())
            }
            fn put(self, out: &mut Vec<u8>) {
                out.push(self.bits() as u8);
            }
        }
    )* };
}

one_byte!(F8E4M3Fn, F8E5M2, F8E4M3B11Fnuz);

/// As NumPy has it: sign-extended to a byte.
impl Bytes for I4 {
    const SIZE: usize = 1;
    fn from_bytes(bytes: &[u8]) -> Self {
        Stored::from_bits(bytes.first().copied().unwrap_or_default().into())
    }
    fn put(self, out: &mut Vec<u8>) {
        out.push(self.get() as u8);
    }
}

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
        each_dtype!(dtype, T => read::<T>(shape, bytes))
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
        for dtype in DType::ALL.into_iter().chain(DType::FOREIGN) {
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
