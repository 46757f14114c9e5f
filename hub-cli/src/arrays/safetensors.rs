//! `.safetensors`: one tensor of a file.

use kernel_ir::exec::Array;
use kernel_ir::ir::DType;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The tensor of this name, or the only one.
pub(super) fn decode(bytes: &[u8], name: Option<&str>) -> Result<Array, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("not a .safetensors file: {e}"))?;
    let mut names = file.names();
    names.sort_unstable();
    let name = match (name, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => *only,
        (None, _) => {
            return Err(format!("it holds {}; name one after a `#`", names.join(", ")));
        }
    };
    let tensor =
        file.tensor(name).map_err(|_| format!("it has no tensor `{name}`; there is {}", names.join(", ")))?;
    let dtype = match tensor.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::BF16 => DType::Bf16,
        Dtype::I32 | Dtype::U32 => DType::I32,
        Dtype::I16 | Dtype::U16 => DType::I16,
        Dtype::I8 | Dtype::U8 => DType::I8,
        Dtype::F8_E4M3 => DType::F8E4M3Fn,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::BOOL => DType::Bool,
        other => return Err(format!("`{name}` is of {other:?}, which no kernel takes here")),
    };
    Array::from_bytes(dtype, tensor.shape(), tensor.data()).map_err(|report| report.to_string())
}

pub(super) fn encode(array: &Array, name: &str) -> Result<Vec<u8>, String> {
    let dtype = match array.dtype() {
        DType::F32 => Dtype::F32,
        DType::Bf16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::F8E4M3Fn => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E4M3B11Fnuz | DType::I4 => {
            return Err(format!("the format has no {}: write a .npy file", array.dtype()));
        }
        DType::Bool => Dtype::BOOL,
    };
    let bytes = array.to_bytes();
    let view = TensorView::new(dtype, array.shape().to_vec(), &bytes).map_err(|e| e.to_string())?;
    safetensors::serialize([(name, view)], None).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_go_both_ways() {
        for dtype in DType::ALL {
            let array = Array::from_f64(dtype, [1, 2], &[1.0, 0.0]).unwrap();
            let bytes = encode(&array, "x").unwrap();
            assert_eq!(decode(&bytes, None).unwrap(), array);
            assert_eq!(decode(&bytes, Some("x")).unwrap(), array);
            assert!(decode(&bytes, Some("y")).unwrap_err().contains("there is x"));
            assert!(decode(&bytes[..bytes.len() - 1], None).is_err());
        }
    }
}
