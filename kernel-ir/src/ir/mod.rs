//! The tile IR: plain data that says what a kernel computes, where it keeps things, and where each line came from.
//!
//! Nothing here records, checks, prints to a user, or runs. Every stage reads these types; only [`crate::record`]
//! and readers of other formats build them.

pub mod dims;
mod kernel;
pub(crate) mod narrow;
mod op;
mod print;
mod types;

pub use dims::{Demand, DimCompare, DimExpr, DimOp};
pub use kernel::{ArrayType, GridAxis, Kernel, Param, Role, Semantics, ValueInfo, Window, WindowUnit};
pub use op::{
    ArgReduction, Binary, Block, Compare, DotDims, Literal, Offset, Op, OpKind, Precision, Reduction, Size,
    Span, Unary, Value,
};
pub use types::{DType, Elem, Extent, MemorySpace, RefType, TileType, Type};
