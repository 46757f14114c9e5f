//! The words of MLIR's text: numbers, strings, names, affine expressions.

use std::fmt::{self, Write};

use super::super::module::AffineExpr;

/// A float of a type as MLIR prints it: with six decimals where these give the number again, else in full, and its bits
/// where it is none.
pub(super) fn float(out: &mut impl Write, v: f64, ty: &str) -> fmt::Result {
    if !v.is_finite() {
        return match ty {
            "f64" => write!(out, "0x{:016X}", v.to_bits()),
            "f32" => write!(out, "0x{:08X}", (v as f32).to_bits()),
            "bf16" => write!(out, "0x{:04X}", half::bf16::from_f64(v).to_bits()),
            "f16" => write!(out, "0x{:04X}", half::f16::from_f64(v).to_bits()),
            _ => write!(out, "{v}"),
        };
    }
    let rounded = |v: f64| match ty {
        "f32" => f64::from(v as f32),
        "bf16" => half::bf16::from_f64(v).to_f64(),
        "f16" => half::f16::from_f64(v).to_f64(),
        _ => v,
    };
    let short = format!("{v:.6e}");
    let exact = short.parse().map(rounded) == Ok(v);
    let text = match ty {
        _ if exact => short,
        "f32" => format!("{:e}", v as f32),
        _ => format!("{v:e}"),
    };
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
    let point = if digits.contains('.') { "" } else { ".0" };
    write!(out, "{digits}{point}e{sign}{power:0>2}")
}

/// Text in quotes, as MLIR escapes it.
pub(super) fn quote(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            ' '..='~' if c != '"' => out.write_char(c)?,
            c => c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(out, "\\{byte:02X}"))?,
        }
    }
    out.write_str("\"")
}

/// A name as it stands, or in quotes if it is no identifier.
pub(super) fn key(out: &mut impl Write, name: &str) -> fmt::Result {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if first && name.chars().all(plain) { out.write_str(name) } else { quote(out, name) }
}

pub(super) fn symbol(out: &mut impl Write, name: &str) -> fmt::Result {
    out.write_str("@")?;
    key(out, name)
}

pub(super) fn affine(out: &mut impl Write, e: &AffineExpr) -> fmt::Result {
    let (sign, both) = match e {
        AffineExpr::Dim(i) => return write!(out, "d{i}"),
        AffineExpr::Symbol(i) => return write!(out, "s{i}"),
        AffineExpr::Constant(n) => return write!(out, "{n}"),
        AffineExpr::Add(both) => ("+", both),
        AffineExpr::Mul(both) => ("*", both),
        AffineExpr::Mod(both) => ("mod", both),
        AffineExpr::FloorDiv(both) => ("floordiv", both),
        AffineExpr::CeilDiv(both) => ("ceildiv", both),
    };
    out.write_str("(")?;
    affine(out, &both.0)?;
    write!(out, " {sign} ")?;
    affine(out, &both.1)?;
    out.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_mlir_prints_them() {
        for (v, ty, expected) in [
            (1.0, "f32", "1.000000e+00"),
            (-0.5, "f8E4M3FN", "-5.000000e-01"),
            (f64::from(0.09f32), "f32", "9.000000e-02"),
            (f64::from(f32::MAX), "f32", "3.4028235e+38"),
            (0.1, "f64", "1.000000e-01"),
            (1.0 / 3.0, "f64", "3.333333333333333e-01"),
            (f64::NEG_INFINITY, "f32", "0xFF800000"),
            (f64::INFINITY, "bf16", "0x7F80"),
        ] {
            let mut text = String::new();
            float(&mut text, v, ty).unwrap();
            assert_eq!(text, expected);
        }
    }
}
