//! The types of a call as StableHLO writes them: `(tensor<8x128xf32>, tensor<i32>) -> tensor<8x128xbf16>`.

use super::Fallible;
use crate::ir::{ArrayType, DType, DimExpr};

/// The operands' and the results' types of a function type.
pub(super) fn signature(text: &str) -> Fallible<(Vec<ArrayType>, Vec<ArrayType>)> {
    let (operands, results) = text.split_once("->").ok_or("its types are malformed")?;
    Ok((list(operands)?, list(results)?))
}

/// Types in parentheses, or one type.
fn list(text: &str) -> Fallible<Vec<ArrayType>> {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let mut all = vec![];
    let mut rest = inner.trim();
    while !rest.is_empty() {
        let open =
            rest.strip_prefix("tensor<").ok_or_else(|| format!("`{}` is no tensor", start_of(rest)))?;
        let end = open.find('>').ok_or("a tensor type does not end")?;
        all.push(tensor(open[..end].trim())?);
        rest = open[end + 1..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Ok(all)
}

/// What stands between the brackets of a tensor type.
fn tensor(text: &str) -> Fallible<ArrayType> {
    let whole = text;
    let (mut text, mut shape) = (text, vec![]);
    // A length is digits before an `x`; element types start with a letter.
    while text.starts_with(|c: char| c.is_ascii_digit() || c == '?') {
        let (length, rest) = text.split_once('x').ok_or_else(|| unknown(whole))?;
        let length: usize = length.parse().map_err(|_| unknown(whole))?;
        if i64::try_from(length).is_err() {
            return Err(unknown(whole));
        }
        shape.push(DimExpr::from(length));
        text = rest;
    }
    // An encoding says how a compiler lays the array out.
    let element = text.split(',').next().unwrap_or_default().trim();
    let signless = element.strip_prefix('u').or_else(|| element.strip_prefix('s')).unwrap_or(element);
    let dtype = DType::ALL.into_iter().find(|d| d.mlir() == signless).ok_or_else(|| unknown(whole))?;
    Ok(ArrayType { dtype, shape })
}

fn unknown(text: &str) -> String {
    format!("kernels take no `tensor<{}>`", start_of(text))
}

/// The start of a text, to be shown.
fn start_of(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<(DType, Vec<i64>)> {
        let t = tensor(text).ok()?;
        Some((t.dtype, t.shape.iter().map(|d| d.known().unwrap()).collect()))
    }

    #[test]
    fn tensors() {
        assert_eq!(one("8x128xf32"), Some((DType::F32, vec![8, 128])));
        assert_eq!(one("i32"), Some((DType::I32, vec![])));
        assert_eq!(one("2x0xui8"), Some((DType::I8, vec![2, 0])));
        assert_eq!(one("4xi1"), Some((DType::Bool, vec![4])));
        assert_eq!(one("4xbf16, #enc"), Some((DType::Bf16, vec![4])));
        for bad in ["?x4xf32", "4xf16", "4", "99999999999999999999xf32", "", "4xsf32x"] {
            assert_eq!(one(bad), None, "{bad}");
        }
    }

    #[test]
    fn signatures() {
        let count = |text| signature(text).map(|(o, r)| (o.len(), r.len()));
        assert_eq!(count("(tensor<f32>, tensor<2xi32>) -> tensor<f32>"), Ok((2, 1)));
        assert_eq!(count("() -> (tensor<f32>, tensor<f32>)"), Ok((0, 2)));
        assert!(count("(!stablehlo.token) -> tensor<f32>").is_err());
    }
}
