//! Floating-point formats: the value that a pattern of bits stands for.

/// How a format says infinity and not-a-number.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// As IEEE 754: in the highest exponent.
    Ieee,
    /// Not-a-number is all ones; no infinities (`FN`).
    AllOnes,
    /// Not-a-number is the negative zero; no infinities (`FNUZ`).
    NegativeZero,
    /// Neither.
    None,
}

struct Format {
    name: &'static str,
    exponent: u32,
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

const fn format(name: &'static str, exponent: u32, mantissa: u32, bias: i32, specials: Specials) -> Format {
    Format { name, exponent, mantissa, bias, specials }
}

/// Every format that has a name: the common ones, then the small ones in the order of MLIR's codes.
pub(super) const NAMES: [&str; 18] = [
    "bf16",
    "f16",
    "f32",
    "f64",
    "f80",
    "f128",
    "tf32",
    "f8E5M2",
    "f8E4M3",
    "f8E4M3FN",
    "f8E5M2FNUZ",
    "f8E4M3FNUZ",
    "f8E4M3B11FNUZ",
    "f8E3M4",
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f8E8M0FNU",
];

/// Where the small formats start in [`NAMES`].
pub(super) const FIRST_SMALL: usize = 6;

/// The formats with a sign bit, up to 64 bits.
const FORMATS: [Format; 15] = [
    format("f64", 11, 52, 1023, Specials::Ieee),
    format("f32", 8, 23, 127, Specials::Ieee),
    format("tf32", 8, 10, 127, Specials::Ieee),
    format("bf16", 8, 7, 127, Specials::Ieee),
    format("f16", 5, 10, 15, Specials::Ieee),
    format("f8E5M2", 5, 2, 15, Specials::Ieee),
    format("f8E4M3", 4, 3, 7, Specials::Ieee),
    format("f8E4M3FN", 4, 3, 7, Specials::AllOnes),
    format("f8E5M2FNUZ", 5, 2, 16, Specials::NegativeZero),
    format("f8E4M3FNUZ", 4, 3, 8, Specials::NegativeZero),
    format("f8E4M3B11FNUZ", 4, 3, 11, Specials::NegativeZero),
    format("f8E3M4", 3, 4, 3, Specials::Ieee),
    format("f4E2M1FN", 2, 1, 1, Specials::None),
    format("f6E2M3FN", 2, 3, 1, Specials::None),
    format("f6E3M2FN", 3, 2, 3, Specials::None),
];

/// The format of powers of two without a sign.
const SCALE: &str = "f8E8M0FNU";

/// The width of a format, for those up to 64 bits.
pub(super) fn bits(name: &str) -> Option<u32> {
    if name == SCALE {
        return Some(8);
    }
    find(name).map(|f| 1 + f.exponent + f.mantissa)
}

/// The value of a pattern of bits, for formats up to 64 bits.
pub(super) fn value(name: &str, pattern: u64) -> Option<f64> {
    if name == SCALE {
        let exponent = pattern & 0xff;
        return Some(if exponent == 0xff { f64::NAN } else { f64::from(exponent as i32 - 127).exp2() });
    }
    let format = find(name)?;
    if name == "f64" {
        return Some(f64::from_bits(pattern));
    }
    Some(format.value(pattern))
}

fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|f| f.name == name)
}

impl Format {
    fn value(&self, pattern: u64) -> f64 {
        let mantissa = pattern & ((1 << self.mantissa) - 1);
        let exponent = pattern >> self.mantissa & ((1 << self.exponent) - 1);
        let negative = pattern >> (self.mantissa + self.exponent) & 1 == 1;
        let sign = if negative { -1.0 } else { 1.0 };
        let last = exponent == (1 << self.exponent) - 1;
        match self.specials {
            Specials::Ieee if last && mantissa == 0 => return sign * f64::INFINITY,
            Specials::Ieee if last => return f64::NAN,
            Specials::AllOnes if last && mantissa == (1 << self.mantissa) - 1 => return f64::NAN,
            Specials::NegativeZero if negative && exponent == 0 && mantissa == 0 => return f64::NAN,
            _ => {}
        }
        let fraction = mantissa as f64 / (1u64 << self.mantissa) as f64;
        // A zero exponent counts as one, without the leading one.
        let (lead, power) = if exponent == 0 { (0.0, 1) } else { (1.0, exponent as i32) };
        sign * (lead + fraction) * f64::from(power - self.bias).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_patterns() {
        for (name, pattern, expected) in [
            ("f32", 0x3f80_0000, 1.0),
            ("f32", 0x0000_0001, 2f64.powi(-149)),
            ("f64", (-0.1f64).to_bits(), -0.1),
            ("bf16", 0xbf80, -1.0),
            ("bf16", 0xff80, f64::NEG_INFINITY),
            ("f16", 0x7bff, 65504.0),
            ("f8E4M3FN", 0x7e, 448.0),
            ("f8E4M3FN", 0x38, 1.0),
            ("f8E5M2", 0x7b, 57344.0),
            ("f8E5M2FNUZ", 0x7f, 57344.0),
            ("f8E4M3FNUZ", 0x7f, 240.0),
            ("f8E4M3B11FNUZ", 0x7f, 30.0),
            ("f8E3M4", 0x6f, 15.5),
            ("f4E2M1FN", 0x7, 6.0),
            ("f6E2M3FN", 0x1f, 7.5),
            ("f6E3M2FN", 0x1f, 28.0),
            ("f8E8M0FNU", 0x80, 2.0),
            ("tf32", 0x1fc00, 1.0),
        ] {
            assert_eq!(value(name, pattern), Some(expected), "{name} {pattern:#x}");
        }
        for (name, pattern) in
            [("f8E4M3FN", 0xff), ("f8E5M2FNUZ", 0x80), ("f16", 0x7c01), ("f8E8M0FNU", 0xff)]
        {
            assert!(value(name, pattern).unwrap().is_nan(), "{name} {pattern:#x}");
        }
    }

    #[test]
    fn every_small_format_has_a_width() {
        for name in &NAMES[FIRST_SMALL..] {
            assert!(bits(name).is_some_and(|b| b <= 19), "{name}");
        }
        // Codes 21 to 32.
        assert_eq!(NAMES.len() - FIRST_SMALL, 12);
        assert_eq!(bits("f80"), None);
    }
}
