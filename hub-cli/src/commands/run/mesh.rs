//! Arrays of a simulated mesh: their first axis is the device.

use kernel_ir::exec::Array;

use crate::error::{Code, Error, Result};

/// The arrays of each device; one device without a mesh.
///
/// # Errors
/// `H0602` if an array's first axis is not the number of devices.
pub(super) fn split(arrays: Vec<Array>, devices: Option<usize>) -> Result<Vec<Vec<Array>>> {
    let Some(devices) = devices else { return Ok(vec![arrays]) };
    let mut out = vec![vec![]; devices];
    for (i, array) in arrays.iter().enumerate() {
        let Some((_, shape)) = array.shape().split_first().filter(|(n, _)| **n == devices) else {
            let message = format!(
                "argument {i} has shape {:?}: with --devices {devices} the first axis has length {devices}",
                array.shape()
            );
            return Err(Error::new(Code::RunArguments, message));
        };
        let bytes = array.to_bytes();
        let size = bytes.len() / devices;
        for (device, arrays) in out.iter_mut().enumerate() {
            let part = &bytes[device * size..(device + 1) * size];
            arrays.push(Array::from_bytes(array.dtype(), shape, part).map_err(|r| Error::refused(&r))?);
        }
    }
    Ok(out)
}

/// The results of all devices, joined along a new first axis.
///
/// # Errors
/// `H0604` if devices made different shapes, which a module cannot.
pub(super) fn join(devices: Vec<Vec<Array>>) -> Result<Vec<Array>> {
    let count = devices.first().map_or(0, Vec::len);
    let mut out = vec![];
    for i in 0..count {
        let parts: Vec<&Array> = devices.iter().filter_map(|d| d.get(i)).collect();
        let bytes: Vec<u8> = parts.iter().flat_map(|a| a.to_bytes()).collect();
        let shape = [&[parts.len()], parts[0].shape()].concat();
        out.push(Array::from_bytes(parts[0].dtype(), shape, &bytes).map_err(|r| Error::refused(&r))?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_ir::ir::DType;

    #[test]
    fn devices_get_their_part_and_give_it_back() {
        let all = Array::from_f64(DType::I32, [2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let parts = split(vec![all.clone()], Some(2)).unwrap();
        assert_eq!(parts[1][0].to_f64(), [4.0, 5.0, 6.0]);
        assert_eq!(join(parts).unwrap(), std::slice::from_ref(&all));
        assert!(split(vec![all], Some(3)).is_err());
    }
}
