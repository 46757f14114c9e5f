//! NumPy's `.npy`: the header through `npyz`, the elements as they lie.
//!
//! NumPy has no bfloat16: `ml_dtypes` saves it as raw data of two bytes (`<V2`), and that is how it is read and written.
//! Its types of one byte or less are all saved as `|V1`: they are read as `i8`, and the module that takes them knows
//! better. Unsigned integers become the signless ones of their width.

use kernel_ir::exec::Array;
use kernel_ir::ir::DType;
use npyz::{DType as Descr, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriterBuilder as _};

pub(super) fn decode(bytes: &[u8]) -> Result<Array, String> {
    let mut rest = bytes;
    let header = NpyHeader::from_reader(&mut rest).map_err(|e| format!("not a .npy file: {e}"))?;
    let Descr::Plain(ty) = header.dtype() else {
        return Err("it holds records, not numbers".to_owned());
    };
    let dtype = dtype(&ty)?;
    if header.order() == Order::Fortran && header.shape().len() > 1 {
        return Err("its elements are in Fortran order; save it with `np.ascontiguousarray`".to_owned());
    }
    let shape: Option<Vec<usize>> = header.shape().iter().map(|n| usize::try_from(*n).ok()).collect();
    let shape = shape.ok_or("its shape is too large")?;
    let elements = shape.iter().try_fold(1_usize, |a, n| a.checked_mul(*n));
    let size = usize::try_from(ty.size_field()).unwrap_or(usize::MAX);
    let wanted = elements.and_then(|n| n.checked_mul(size));
    if wanted != Some(rest.len()) {
        return Err(format!("its shape is {shape:?} of {}, but it holds {} bytes", ty, rest.len()));
    }
    Array::from_bytes(dtype, shape, rest).map_err(|report| report.to_string())
}

fn dtype(ty: &TypeStr) -> Result<DType, String> {
    if ty.endianness() == Endianness::Big {
        return Err(format!("its elements are big-endian ({ty})"));
    }
    match (ty.type_char(), ty.size_field()) {
        (TypeChar::Float, 4) => Ok(DType::F32),
        (TypeChar::RawData, 2) => Ok(DType::Bf16),
        (TypeChar::Int | TypeChar::Uint, 4) => Ok(DType::I32),
        (TypeChar::Int | TypeChar::Uint, 2) => Ok(DType::I16),
        (TypeChar::Int | TypeChar::Uint | TypeChar::RawData, 1) => Ok(DType::I8),
        (TypeChar::Bool, _) => Ok(DType::Bool),
        _ => Err(format!(
            "its elements are `{ty}`; kernels have f32, bf16 (ml_dtypes' `<V2`), 8 to 32-bit integers and bool"
        )),
    }
}

pub(super) fn encode(array: &Array) -> Result<Vec<u8>, String> {
    let ty = match array.dtype() {
        DType::F32 => "<f4",
        DType::Bf16 => "<V2",
        DType::I32 => "<i4",
        DType::I16 => "<i2",
        DType::I8 => "|i1",
        DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E4M3B11Fnuz | DType::I4 => "|V1",
        DType::Bool => "|b1",
    };
    let ty: TypeStr = ty.parse().map_err(|e| format!("{e}"))?;
    let shape: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
    let header = npyz::WriteOptions::new_header_only()
        .dtype(Descr::Plain(ty))
        .shape(&shape)
        .writer(vec![])
        .write_header_only()
        .map_err(|e| e.to_string())?;
    let mut bytes: Vec<u8> = header;
    bytes.extend(array.to_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_go_both_ways() {
        for dtype in DType::ALL {
            for shape in [vec![], vec![2], vec![1, 2]] {
                let n = shape.iter().product();
                let array = Array::from_f64(dtype, shape, &[1.0, 0.0][..n]).unwrap();
                assert_eq!(decode(&encode(&array).unwrap()).unwrap(), array);
            }
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        let good = encode(&Array::from_f64(DType::F32, [2, 2], &[1.0; 4]).unwrap()).unwrap();
        for n in 0..good.len() {
            assert!(decode(&good[..n]).is_err(), "cut at {n}");
        }
        let longer = [good.as_slice(), &[0]].concat();
        assert!(decode(&longer).unwrap_err().contains("holds 17 bytes"));
        let fortran = String::from_utf8_lossy(&good[..128]).replace("False", "True ").into_bytes();
        assert!(decode(&[&fortran[..], &good[128..]].concat()).is_err());
    }
}
