//! How a published Mosaic module is called: the data of `index.json` (schema 1) and what follows from it, with no MLIR.
//!
//! A variant of a package lists its operations ([`OpInterface`]): arguments and results with symbolic shapes, and the
//! modules that implement them ([`ModuleEntry`]), in order of preference. A caller does three things:
//!
//! 1. [`OpInterface::bind`] reads the symbolic dims and dtype variables off the arguments;
//! 2. [`OpInterface::select`] takes the first module whose dtypes match, whose demands hold and which the TPU
//!    generation compiles;
//! 3. [`ModuleEntry::backend_config`] and [`ModuleEntry::operands`] say what to hand to XLA's `tpu_custom_call`, and
//!    [`OpInterface::stablehlo`] writes a whole StableHLO program around it.
//!
//! Everything read from a file is hostile until checked: unknown fields, duplicate names, paths that leave the
//! package, expressions that are too deep and sizes that are too large are refused by [`Index::parse`].

mod bind;
mod dtype;
mod error;
mod expr;
mod index;
mod select;
mod stablehlo;
mod table;
mod validate;

pub use bind::{Binding, TensorType};
pub use dtype::{DTYPES, DtypeInfo, dtype_info, is_dtype_variable};
pub use error::CallError;
pub use expr::evaluate;
pub use index::{ArgumentInterface, Index, ModuleEntry, OpInterface, Operand, SCHEMA};
pub use select::backend_config;
pub use stablehlo::{CallOperand, CustomCall};
pub use table::Table;
