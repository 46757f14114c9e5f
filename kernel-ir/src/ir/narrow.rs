//! Elements narrower than a byte or as wide, that Rust has no type for: floats of eight bits, integers of four.
//!
//! The floats are those of the OCP specification "OFP8" (`E4M3FN`, `E5M2`) and the one of the TPU's v5 (`E4M3B11FNUZ`, with
//! a bias of 11 and neither infinities nor a negative zero). Conversion rounds to nearest even; what is too large becomes
//! infinite where there is infinity and NaN where there is none, as in `ml_dtypes`.

/// An eight-bit float format.
#[derive(Clone, Copy, Debug)]
struct Format {
    mantissa: u32,
    bias: i32,
    /// Code of the largest finite number.
    largest: u8,
    /// Code of what is larger than that.
    overflow: u8,
    nan: u8,
    /// Whether the code of -0 stands for NaN.
    unsigned_zero: bool,
}

impl Format {
    const E4M3FN: Self =
        Self { mantissa: 3, bias: 7, largest: 0x7e, overflow: 0x7f, nan: 0x7f, unsigned_zero: false };
    const E5M2: Self =
        Self { mantissa: 2, bias: 15, largest: 0x7b, overflow: 0x7c, nan: 0x7e, unsigned_zero: false };
    const E4M3B11FNUZ: Self =
        Self { mantissa: 3, bias: 11, largest: 0x7f, overflow: 0x80, nan: 0x80, unsigned_zero: true };

    /// The number of each code.
    const fn table(self) -> [f32; 256] {
        let mut table = [0.0; 256];
        let mut code = 0;
        while code < 256 {
            table[code] = self.decode(code as u8);
            code += 1;
        }
        table
    }

    const fn decode(self, code: u8) -> f32 {
        let (sign, rest) = (code & 0x80 != 0, code & 0x7f);
        let size = if self.unsigned_zero && code == 0x80 || rest > self.largest && rest != self.overflow {
            f32::NAN
        } else if rest > self.largest {
            if self.overflow == self.nan { f32::NAN } else { f32::INFINITY }
        } else {
            let (exponent, m) = ((rest >> self.mantissa) as i32, rest & ((1 << self.mantissa) - 1));
            let (exponent, whole) =
                if exponent == 0 { (1, m as f32) } else { (exponent, (m + (1 << self.mantissa)) as f32) };
            whole * power_of_two(exponent - self.bias - self.mantissa as i32)
        };
        if sign { -size } else { size }
    }

    /// The code of the nearest number.
    fn encode(self, x: f32) -> u8 {
        if x.is_nan() {
            return self.nan;
        }
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        let size = f64::from(x.abs());
        let least = 1 - self.bias;
        // The exponent of an `f64` that comes from a nonzero `f32` is that of a normal number.
        let exponent = (((size.to_bits() >> 52) as i32) - 1023).max(least).min(64);
        // Exact: a division by a power of two.
        let steps = (size / 2_f64.powi(exponent - self.mantissa as i32)).round_ties_even();
        let code = (exponent - least) as f64 * f64::from(1 << self.mantissa) + steps;
        if code > f64::from(self.largest) {
            return if self.overflow == 0x80 { 0x80 } else { sign | self.overflow };
        }
        let code = code as u8;
        if self.unsigned_zero && code == 0 { 0 } else { sign | code }
    }
}

const fn power_of_two(n: i32) -> f32 {
    // Between 2^-14-2 and 2^15: a normal number.
    f32::from_bits(((n + 127) as u32) << 23)
}

macro_rules! float {
    ($name:ident, $format:ident, $text:literal) => {
        #[doc = concat!("A float of eight bits, `", $text, "`, by its code.")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name(pub u8);

        impl $name {
            /// NaN.
            pub const NAN: Self = Self(Format::$format.nan);

            /// The nearest value.
            pub fn from_f32(x: f32) -> Self {
                Self(Format::$format.encode(x))
            }

            /// The value, exact.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                const TABLE: [f32; 256] = Format::$format.table();
                TABLE[usize::from(self.0)]
            }
        }
    };
}

float!(F8E4M3Fn, E4M3FN, "f8E4M3FN");
float!(F8E5M2, E5M2, "f8E5M2");
float!(F8E4M3B11Fnuz, E4M3B11FNUZ, "f8E4M3B11FNUZ");

/// An integer from -8 to 7, stored in a byte of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct I4(i8);

impl I4 {
    /// The integer whose four bits are the lowest of `x`.
    pub const fn new(x: i8) -> Self {
        Self(x << 4 >> 4)
    }

    /// The integer.
    pub const fn get(self) -> i8 {
        self.0
    }
}
