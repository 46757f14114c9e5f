//! Array types as people write them: `f32[512, 768]`.

use kernel_ir::ir::{ArrayType, DType, DimExpr};

/// The type of a result, given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultType(pub(crate) ArrayType);

impl std::str::FromStr for ResultType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let wrong = || format!("`{s}` is no array type: write it as f32[512,768]");
        let (name, shape) = s.strip_suffix(']').and_then(|s| s.split_once('[')).ok_or_else(wrong)?;
        // Modules do not tell signs of integers: an unsigned one is that of its width.
        let signless = name.replacen("uint", "int", 1).replacen("ui", "i", 1);
        let all = || DType::ALL.into_iter().chain(DType::FOREIGN);
        let dtype = all()
            .find(|d| [d.to_string().as_str(), d.numpy(), d.mlir()].contains(&signless.as_str()))
            .ok_or_else(|| {
                let all: Vec<String> = all().map(|d| d.to_string()).collect();
                format!("`{name}` is no element type: there is {}", all.join(", "))
            })?;
        let lengths: Result<Vec<u32>, _> = match shape.trim() {
            "" => Ok(vec![]),
            shape => shape.split([',', 'x']).map(|n| n.trim().parse::<u32>()).collect(),
        };
        let shape = lengths.map_err(|_| wrong())?.into_iter().map(|n| DimExpr::Const(n.into())).collect();
        Ok(Self(ArrayType { dtype, shape }))
    }
}

/// An array type as it is written: `f32[512, 768]`.
pub(crate) fn shown(ty: &ArrayType) -> String {
    let shape: Vec<String> = ty.shape.iter().map(ToString::to_string).collect();
    format!("{}[{}]", ty.dtype, shape.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_people_write_them() {
        for (text, want) in [
            ("f32[512,768]", "f32[512, 768]"),
            ("bfloat16[8x128]", "bf16[8, 128]"),
            ("int32[]", "i32[]"),
            ("uint8[4]", "i8[4]"),
            ("ui32[4]", "i32[4]"),
            ("bool[ 3 ]", "bool[3]"),
        ] {
            assert_eq!(shown(&text.parse::<ResultType>().unwrap().0), want);
        }
        for text in ["", "f32", "f99[1]", "f32[1,,2]", "f32[-1]", "f32[1", "f32[99999999999]"] {
            assert!(text.parse::<ResultType>().is_err(), "{text}");
        }
    }
}
