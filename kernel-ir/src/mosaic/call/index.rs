//! `index.json` of a package variant as Rust data: operations, their interfaces, the modules that implement them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::CallError;
use super::table::Table;
use super::validate;
use crate::ir::Demand;
use crate::ir::DimExpr;

/// The schema that this crate reads and writes.
pub const SCHEMA: u32 = 1;

/// The index of a package variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The format of this file: [`SCHEMA`].
    pub schema: u32,
    /// The `stable_mosaic.version` that every module carries.
    pub mosaic_version: u32,
    /// The operations of the package, by name.
    pub ops: Table<OpInterface>,
}

/// An operation: what it takes, what it gives, and the modules that implement it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpInterface {
    /// What the operation computes, in one sentence.
    pub doc: String,
    /// The symbolic dims, each the whole extent of some argument.
    pub dims: Vec<String>,
    /// The arguments, in order.
    pub arguments: Vec<ArgumentInterface>,
    /// The results, in order.
    pub results: Vec<ArgumentInterface>,
    /// The modules, in order of preference.
    pub modules: Vec<ModuleEntry>,
}

/// An argument or a result of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentInterface {
    /// Its name in the operation's signature.
    pub name: String,
    /// A dtype (`int32`) or a dtype variable (`T`).
    pub dtype: String,
    /// The extent of each axis.
    pub shape: Vec<DimExpr>,
}

/// A Mosaic module: the file, what it serves, and how `tpu_custom_call` is given it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleEntry {
    /// The file's path inside the variant: `mosaic/ragged_dot-bf16.mlirbc`.
    pub file: String,
    /// The SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The kernel's name, which profiles and compiler messages show.
    pub kernel: String,
    /// The dtype that each variable of the interface has in this module.
    pub dtypes: Table<String>,
    /// The tile sizes that the kernel was recorded with, for people and tuners.
    pub tile: Table<i64>,
    /// What must hold of the dims of a call.
    pub demands: Vec<Demand>,
    /// The operands of the custom call, in order.
    pub operands: Vec<Operand>,
    /// Which result of the operation each result of the custom call is.
    pub results: Vec<String>,
    /// VMEM that the kernel uses on its widest generation, in bytes.
    pub vmem_bytes: u64,
    /// What stands beside `body` in the backend config's `custom_call_config`.
    pub custom_call_config: Table<Value>,
    /// What stands beside `custom_call_config` in the backend config.
    pub backend_config: Table<Value>,
    /// The TPU generations whose compiler accepts this module: `v4`, `v5e`, `v5p`, `v6e`, `v7x`.
    pub generations: Vec<String>,
}

/// One operand of the custom call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Operand {
    /// A scalar `i32[]`: a dynamic grid bound. These come first.
    Expr(DimExpr),
    /// A vector `i32[len]`: dims that the body reads, by scalar prefetch.
    Exprs(Vec<DimExpr>),
    /// An argument of the operation, as it is.
    Argument(String),
}

impl Index {
    /// Reads and checks an `index.json`.
    ///
    /// # Errors
    /// [`CallError::Index`], with the place in the file: not JSON, another schema, an unknown or missing or repeated
    /// field, a name that is not an identifier, a dim or argument that nothing declares, a path that leaves the
    /// variant, a size beyond the format's limits.
    pub fn parse(json: &[u8]) -> Result<Index, CallError> {
        validate::length(json)?;
        validate::schema(json)?;
        let index: Index = serde_json::from_slice(json).map_err(validate::syntax)?;
        index.check()?;
        Ok(index)
    }

    /// Checks what the types alone do not say; [`Index::parse`] does so by itself.
    ///
    /// # Errors
    /// Those of [`Index::parse`].
    pub fn check(&self) -> Result<(), CallError> {
        validate::index(self)
    }

    /// The file's text: two spaces of indent, fields in the order of the schema, a newline at the end.
    ///
    /// # Errors
    /// Those of [`Index::check`]: what cannot be read back is not written.
    pub fn to_json(&self) -> Result<String, CallError> {
        self.check()?;
        let mut text = serde_json::to_string_pretty(self).map_err(validate::syntax)?;
        text.push('\n');
        Ok(text)
    }
}
