//! Element types, memory spaces, and the types that values have.

use std::fmt;

/// The type of one array element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DType {
    /// IEEE single precision.
    F32,
    /// The upper half of an `f32`: 8 exponent bits, 7 mantissa bits.
    Bf16,
    /// Signed 32-bit integer; also what indices and sizes are made of.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// An eight-bit float: 4 exponent bits, 3 mantissa bits, finite (OCP's E4M3).
    F8E4M3Fn,
    /// An eight-bit float: 5 exponent bits, 2 mantissa bits (OCP's E5M2).
    F8E5M2,
    /// An eight-bit float: 4 exponent bits with a bias of 11, 3 mantissa bits, finite, without a negative zero.
    F8E4M3B11Fnuz,
    /// Signed 4-bit integer. The TPU packs two into a byte; files and the executor give each a byte.
    I4,
    /// A truth value; arrays of it cross a kernel's border as `i32`.
    Bool,
}

impl DType {
    /// The element types that kernels are written in, for tables.
    pub const ALL: [Self; 6] = [Self::F32, Self::Bf16, Self::I32, Self::I16, Self::I8, Self::Bool];

    /// Those that only kernels from elsewhere have: they are run, not written.
    pub const FOREIGN: [Self; 4] = [Self::F8E4M3Fn, Self::F8E5M2, Self::F8E4M3B11Fnuz, Self::I4];

    /// Width of one element in bits, as it lies in memory (a [`DType::Bool`] takes 32).
    pub const fn bits(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::Bool => 32,
            Self::Bf16 | Self::I16 => 16,
            Self::I8 | Self::F8E4M3Fn | Self::F8E5M2 | Self::F8E4M3B11Fnuz => 8,
            Self::I4 => 4,
        }
    }

    /// Width of one element in bytes, as it lies in memory; one of four bits has a byte of its own outside the TPU.
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// True for types that have a fraction.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::Bf16 | Self::F8E4M3Fn | Self::F8E5M2 | Self::F8E4M3B11Fnuz)
    }

    /// True for the integer types.
    pub const fn is_int(self) -> bool {
        matches!(self, Self::I32 | Self::I16 | Self::I8 | Self::I4)
    }

    /// The name MLIR gives the type, e.g. `bf16`, `i1`.
    pub const fn mlir(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::F8E4M3Fn => "f8E4M3FN",
            Self::F8E5M2 => "f8E5M2",
            Self::F8E4M3B11Fnuz => "f8E4M3B11FNUZ",
            Self::I4 => "i4",
            Self::Bool => "i1",
        }
    }

    /// The name NumPy and JAX give the type, e.g. `bfloat16`, `int32`.
    pub const fn numpy(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::I32 => "int32",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::F8E4M3Fn => "float8_e4m3fn",
            Self::F8E5M2 => "float8_e5m2",
            Self::F8E4M3B11Fnuz => "float8_e4m3b11fnuz",
            Self::I4 => "int4",
            Self::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            other => other.mlir(),
        })
    }
}

/// Where a ref lives on the chip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemorySpace {
    /// Wherever the compiler put the operand, in practice HBM; reached by DMA only.
    Any,
    /// Vector memory: what vector loads and stores reach.
    Vmem,
    /// Scalar memory: what scalar loads and stores reach.
    Smem,
    /// Semaphores.
    Semaphore,
}

impl MemorySpace {
    /// The name Mosaic gives the space, as in `#tpu.memory_space<vmem>`.
    pub const fn mosaic(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Vmem => "vmem",
            Self::Smem => "smem",
            Self::Semaphore => "semaphore_mem",
        }
    }
}

/// What a ref holds: data, or something to wait on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// Array elements.
    Data(DType),
    /// Counts bytes that a DMA has landed.
    DmaSemaphore,
    /// Counts what cores and devices signal.
    Semaphore,
}

/// The length of one axis of a ref: known when the kernel is recorded, or only when it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// Known while recording.
    Static(usize),
    /// Known on the TPU.
    Dynamic,
}

impl Extent {
    /// The length, when it is known.
    pub const fn known(self) -> Option<usize> {
        match self {
            Self::Static(n) => Some(n),
            Self::Dynamic => None,
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(n) => write!(f, "{n}"),
            Self::Dynamic => f.write_str("?"),
        }
    }
}

/// A tile in vector registers: static shape, any rank from 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TileType {
    /// Element type.
    pub dtype: DType,
    /// Length of each axis.
    pub shape: Vec<usize>,
}

impl TileType {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// True when some axis has length zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A place in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RefType {
    /// What it holds.
    pub elem: Elem,
    /// Length of each axis.
    pub shape: Vec<Extent>,
    /// Where it lives.
    pub space: MemorySpace,
}

impl RefType {
    /// Element type, when the ref holds data.
    pub const fn dtype(&self) -> Option<DType> {
        match self.elem {
            Elem::Data(d) => Some(d),
            Elem::DmaSemaphore | Elem::Semaphore => None,
        }
    }

    /// The shape, when every axis is static.
    pub fn static_shape(&self) -> Option<Vec<usize>> {
        self.shape.iter().map(|e| e.known()).collect()
    }
}

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// One element in a scalar register.
    Scalar(DType),
    /// A tile in vector registers.
    Tile(TileType),
    /// A place in memory.
    Ref(RefType),
}

impl Type {
    /// A tile type.
    pub fn tile(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self::Tile(TileType { dtype, shape: shape.into() })
    }

    /// Element type; `None` for semaphores.
    pub const fn dtype(&self) -> Option<DType> {
        match self {
            Self::Scalar(d) => Some(*d),
            Self::Tile(t) => Some(t.dtype),
            Self::Ref(r) => r.dtype(),
        }
    }

    /// The shape of a tile; empty for a scalar; `None` for a ref.
    pub fn shape(&self) -> Option<&[usize]> {
        match self {
            Self::Scalar(_) => Some(&[]),
            Self::Tile(t) => Some(&t.shape),
            Self::Ref(_) => None,
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    for (i, x) in items.iter().enumerate() {
        write!(f, "{}{x}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        list(f, &self.shape)?;
        f.write_str("]")
    }
}

impl fmt::Display for RefType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.elem {
            Elem::Data(d) => write!(f, "{} {d}[", self.space.mosaic())?,
            Elem::DmaSemaphore => f.write_str("dma_sem[")?,
            Elem::Semaphore => f.write_str("sem[")?,
        }
        list(f, &self.shape)?;
        f.write_str("]")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(d) => d.fmt(f),
            Self::Tile(t) => t.fmt(f),
            Self::Ref(r) => r.fmt(f),
        }
    }
}
