//! The JSON form of expressions and demands over dims, and their values with the reason when there is none.
//!
//! `768`, `"n"`, `["ceildiv", "n", 768]`; `["<=", "k", 2048]`. Divisors are positive, so that `floordiv` and `mod` mean
//! what they mean in Python, where the same expressions are evaluated.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::ir::dims::Dims;
use crate::ir::{Demand, DimCompare, DimExpr, DimOp};

use super::error::CallError;

/// How deep an expression read from a file may nest.
const MAX_DEPTH: usize = 32;

/// The value of `expr` for `dims`.
///
/// # Errors
/// [`CallError::Expr`]: a dim without a value, a divisor that is not positive, a result that does not fit in 64 bits.
pub fn evaluate(expr: &DimExpr, dims: &Dims) -> Result<i64, CallError> {
    let fail = |problem: String| CallError::Expr { expr: expr.to_string(), problem };
    if let Some(value) = expr.eval(dims) {
        return Ok(value);
    }
    match expr {
        DimExpr::Const(value) => Ok(*value),
        DimExpr::Dim(name) => Err(fail(format!("no dim is called `{name}`"))),
        DimExpr::Op(op, sides) => {
            // The innermost expression without a value is the one to blame.
            let (a, b) = (evaluate(&sides.0, dims)?, evaluate(&sides.1, dims)?);
            Err(fail(match op {
                DimOp::CeilDiv | DimOp::FloorDiv | DimOp::Mod if b <= 0 => {
                    format!("{a} cannot be divided by {b}")
                }
                _ => "the result does not fit in 64 bits".to_owned(),
            }))
        }
    }
}

/// Whether `demand` holds for `dims`; the reason, if not.
pub(super) fn refusal(demand: &Demand, dims: &Dims) -> Option<String> {
    match (evaluate(&demand.left, dims), evaluate(&demand.right, dims)) {
        (Ok(left), Ok(right)) if demand.compare.holds(left, right) => None,
        (Ok(_), Ok(_)) => {
            let mut read = reads(&demand.left);
            read.append(&mut reads(&demand.right));
            let values: Vec<String> =
                read.iter().filter_map(|dim| Some(format!("{dim} = {}", dims.get(dim)?))).collect();
            Some(format!("it needs {demand}, but {}", values.join(", ")))
        }
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
    }
}

/// The dims that `expr` reads.
pub(super) fn reads(expr: &DimExpr) -> BTreeSet<String> {
    let mut dims = BTreeSet::new();
    expr.each_dim(&mut |dim| {
        dims.insert(dim.to_string());
    });
    dims
}

fn to_json(expr: &DimExpr) -> Value {
    match expr {
        DimExpr::Const(value) => json!(value),
        DimExpr::Dim(name) => json!(&**name),
        DimExpr::Op(op, sides) => json!([op.word(), to_json(&sides.0), to_json(&sides.1)]),
    }
}

fn from_json(json: &Value, depth: usize) -> Result<DimExpr, String> {
    if depth > MAX_DEPTH {
        return Err(format!("an expression nests deeper than {MAX_DEPTH}"));
    }
    match json {
        Value::Number(number) => match number.as_i64() {
            Some(value) => Ok(DimExpr::Const(value)),
            None => Err(format!("`{number}` is not a 64-bit integer")),
        },
        Value::String(name) => Ok(DimExpr::dim(name)),
        Value::Array(parts) => {
            let [op, a, b] = parts.as_slice() else {
                return Err(format!("an operation is `[op, a, b]`, not {} parts", parts.len()));
            };
            let op = known(op.as_str(), op, &DimOp::ALL, DimOp::word)?;
            // Not folded: what is written back must be what was read.
            let sides = (from_json(a, depth + 1)?, from_json(b, depth + 1)?);
            Ok(DimExpr::Op(op, sides.into()))
        }
        _ => Err(format!("an expression is an integer, a dim or `[op, a, b]`, not `{json}`")),
    }
}

/// The operation with this word.
fn known<T: Copy>(
    word: Option<&str>,
    shown: impl Display,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter().copied().find(|op| word == Some(name(*op))).ok_or_else(|| {
        let all: Vec<&str> = all.iter().map(|op| name(*op)).collect();
        format!("`{shown}` is not one of {}", all.join(" "))
    })
}

impl Serialize for DimExpr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_json(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DimExpr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_json(&Value::deserialize(deserializer)?, 0).map_err(D::Error::custom)
    }
}

impl Serialize for Demand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.compare.word(), &self.left, &self.right).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Demand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (word, left, right) = <(String, DimExpr, DimExpr)>::deserialize(deserializer)?;
        let compare =
            known(Some(&word), &word, &DimCompare::ALL, DimCompare::word).map_err(D::Error::custom)?;
        Ok(Demand { compare, left, right })
    }
}
