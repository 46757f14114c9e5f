//! The TPU generations that libtpu compiles for, and the smallest machine of each.

use std::fmt;
use std::str::FromStr;

/// A TPU generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    /// TPU v4
    V4,
    /// TPU v5e ("v5 lite")
    V5e,
    /// TPU v5p
    V5p,
    /// TPU v6e ("v6 lite", Trillium)
    V6e,
    /// TPU v7x (Ironwood)
    V7x,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Generation; 5] =
        [Generation::V4, Generation::V5e, Generation::V5p, Generation::V6e, Generation::V7x];

    /// The name in `index.json` and on the command line: `v6e`.
    pub const fn name(self) -> &'static str {
        match self {
            Generation::V4 => "v4",
            Generation::V5e => "v5e",
            Generation::V5p => "v5p",
            Generation::V6e => "v6e",
            Generation::V7x => "v7x",
        }
    }

    /// The topology of one host, by the name that libtpu gives it.
    pub const fn topology(self) -> &'static str {
        match self {
            Generation::V4 => "v4:2x2x1",
            Generation::V5e => "v5e:2x2",
            Generation::V5p => "v5p:2x2x1",
            Generation::V6e => "v6e:2x2",
            Generation::V7x => "tpu7x:2x2x1",
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Generation {
    type Err = String;

    fn from_str(name: &str) -> Result<Generation, String> {
        Generation::ALL.into_iter().find(|generation| generation.name() == name).ok_or_else(|| {
            let known = Generation::ALL.map(Generation::name).join(", ");
            format!("`{}` is not a TPU generation: {known}", name.escape_debug())
        })
    }
}
