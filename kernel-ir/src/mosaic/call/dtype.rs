//! Element types by the names that numpy and JAX give them, and their spelling in StableHLO.

/// An element type: its public name, its StableHLO spelling and its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DtypeInfo {
    /// The name in `index.json` and in Python: `bfloat16`.
    pub name: &'static str,
    /// The element type in StableHLO text: `bf16`.
    pub mlir: &'static str,
    /// Bits an element.
    pub bits: u32,
}

/// Every element type that a module's operand may have.
pub const DTYPES: &[DtypeInfo] = &[
    dtype("bool", "i1", 1),
    dtype("int2", "i2", 2),
    dtype("int4", "i4", 4),
    dtype("int8", "i8", 8),
    dtype("int16", "i16", 16),
    dtype("int32", "i32", 32),
    dtype("uint2", "ui2", 2),
    dtype("uint4", "ui4", 4),
    dtype("uint8", "ui8", 8),
    dtype("uint16", "ui16", 16),
    dtype("uint32", "ui32", 32),
    dtype("float4_e2m1fn", "f4E2M1FN", 4),
    dtype("float8_e4m3b11fnuz", "f8E4M3B11FNUZ", 8),
    dtype("float8_e4m3fn", "f8E4M3FN", 8),
    dtype("float8_e5m2", "f8E5M2", 8),
    dtype("float16", "f16", 16),
    dtype("bfloat16", "bf16", 16),
    dtype("float32", "f32", 32),
];

const fn dtype(name: &'static str, mlir: &'static str, bits: u32) -> DtypeInfo {
    DtypeInfo { name, mlir, bits }
}

/// The element type called `name`.
pub fn dtype_info(name: &str) -> Option<&'static DtypeInfo> {
    DTYPES.iter().find(|dtype| dtype.name == name)
}

/// Whether `name` is a dtype variable (`T`, `ACC`), which the arguments bind.
pub fn is_dtype_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 16
        && bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
