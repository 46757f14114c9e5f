//! The text of a StableHLO program whose `main` calls a Mosaic module through `tpu_custom_call`.

use std::fmt::Write as _;

use super::bind::TensorType;
use super::dtype::dtype_info;
use super::error::CallError;
use super::expr::evaluate;
use super::index::{ModuleEntry, OpInterface, Operand};
use crate::ir::DimExpr;
use crate::ir::dims::Dims;

/// A call of a Mosaic module with everything fixed: types, operands, backend config.
///
/// [`OpInterface::stablehlo`] makes one from an index; tests and tools may make their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCall {
    /// The kernel's name, which profiles and compiler messages show.
    pub kernel: String,
    /// The types of `main`'s arguments.
    pub arguments: Vec<TensorType>,
    /// The operands of the custom call, in order.
    pub operands: Vec<CallOperand>,
    /// The types of the custom call's results, which `main` returns as they are.
    pub results: Vec<TensorType>,
    /// The backend config, as JSON.
    pub backend_config: String,
}

/// One operand of a [`CustomCall`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOperand {
    /// The constant `i32[]`.
    Scalar(i32),
    /// The constant `i32[len]`.
    Vector(Vec<i32>),
    /// The argument of `main` with this index.
    Argument(usize),
}

impl CustomCall {
    /// The program's text. Operands and results are row-major.
    ///
    /// # Errors
    /// [`CallError::Arguments`]: an element type that StableHLO does not know, a negative extent, an operand that is
    /// no argument of `main`, no result.
    pub fn to_stablehlo(&self) -> Result<String, CallError> {
        let arguments = types(&self.arguments)?;
        let results = types(&self.results)?;
        if results.is_empty() {
            return Err(CallError::arguments(format!("`{}` has no result", self.kernel)));
        }
        let mut constants = String::new();
        let (mut names, mut operands, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
        for (i, operand) in self.operands.iter().enumerate() {
            let (name, of, rank) = match operand {
                CallOperand::Argument(index) => {
                    let Some(array) = self.arguments.get(*index) else {
                        return Err(CallError::arguments(format!(
                            "operand {i} is argument {index}, which is not there"
                        )));
                    };
                    (format!("%arg{index}"), arguments[*index].clone(), array.shape.len())
                }
                CallOperand::Scalar(value) => {
                    (format!("%c{i}"), constant(&mut constants, i, &[], &value.to_string()), 0)
                }
                CallOperand::Vector(values) => {
                    let text = format!("{values:?}");
                    // An empty list has no element to take a type from: MLIR spells it `dense<>`.
                    let text = if values.is_empty() { "" } else { &text };
                    (format!("%c{i}"), constant(&mut constants, i, &[values.len()], text), 1)
                }
            };
            names.push(name);
            operands.push(of);
            ranks.push(rank);
        }
        let parameters: Vec<String> =
            arguments.iter().enumerate().map(|(i, argument)| format!("%arg{i}: {argument}")).collect();
        let several = results.len() > 1;
        let returned: Vec<String> = match several {
            true => (0..results.len()).map(|i| format!("%r#{i}")).collect(),
            false => vec!["%r".to_owned()],
        };
        let of_results = if several { format!("({})", results.join(", ")) } else { results.join("") };
        let call = format!(
            "%r{} = stablehlo.custom_call @tpu_custom_call({}) {{api_version = 1 : i32, backend_config = {}, \
             kernel_name = {}, operand_layouts = {}, result_layouts = {}}} : ({}) -> {of_results}",
            if several { format!(":{}", results.len()) } else { String::new() },
            names.join(", "),
            quote(&self.backend_config),
            quote(&self.kernel),
            layouts(ranks.into_iter()),
            layouts(self.results.iter().map(|result| result.shape.len())),
            operands.join(", "),
        );
        let results = results.join(", ");
        Ok(format!(
            "module @{} {{\n  func.func public @main({}) -> ({results}) {{\n{constants}    {call}\n    \
             return {} : {results}\n  }}\n}}\n",
            quote(&self.kernel),
            parameters.join(", "),
            returned.join(", "),
        ))
    }
}

impl OpInterface {
    /// The text of a StableHLO program that computes this operation with `module`, for one choice of dims.
    ///
    /// `main` takes the operation's arguments and returns what the module returns, in the module's order.
    ///
    /// # Errors
    /// [`CallError`]: a dim without a value or beyond 32 bits, a body that is not the module's.
    pub fn stablehlo(&self, module: &ModuleEntry, dims: &Dims, body: &[u8]) -> Result<String, CallError> {
        let array = |name: &str| {
            let known = self.arguments.iter().position(|argument| argument.name == name);
            known.ok_or_else(|| CallError::arguments(format!("the operation has no argument `{name}`")))
        };
        let arguments = self.arguments.iter().map(|argument| argument.tensor_type(&module.dtypes, dims));
        let operands = module.operands.iter().map(|operand| {
            Ok(match operand {
                Operand::Expr(expr) => CallOperand::Scalar(scalar(expr, dims)?),
                Operand::Exprs(exprs) => CallOperand::Vector(
                    exprs.iter().map(|expr| scalar(expr, dims)).collect::<Result<_, _>>()?,
                ),
                Operand::Argument(name) => CallOperand::Argument(array(name)?),
            })
        });
        let results = module.results.iter().map(|name| {
            let known = self.results.iter().find(|result| result.name == *name);
            let known =
                known.ok_or_else(|| CallError::arguments(format!("the operation has no result `{name}`")))?;
            known.tensor_type(&module.dtypes, dims)
        });
        CustomCall {
            kernel: module.kernel.clone(),
            arguments: arguments.collect::<Result<_, _>>()?,
            operands: operands.collect::<Result<_, CallError>>()?,
            results: results.collect::<Result<_, _>>()?,
            backend_config: module.backend_config(body)?,
        }
        .to_stablehlo()
    }
}

fn scalar(expr: &DimExpr, dims: &Dims) -> Result<i32, CallError> {
    let value = evaluate(expr, dims)?;
    i32::try_from(value).map_err(|_| CallError::Expr {
        expr: expr.to_string(),
        problem: format!("{value} does not fit in 32 bits"),
    })
}

fn types(arrays: &[TensorType]) -> Result<Vec<String>, CallError> {
    arrays.iter().map(tensor).collect()
}

fn tensor(array: &TensorType) -> Result<String, CallError> {
    let Some(dtype) = dtype_info(&array.dtype) else {
        return Err(CallError::arguments(format!("`{}` is not a dtype", array.dtype)));
    };
    let mut text = String::from("tensor<");
    for extent in &array.shape {
        if *extent < 0 {
            return Err(CallError::arguments(format!("{array} has a negative extent")));
        }
        let _infallible = write!(text, "{extent}x");
    }
    Ok(text + dtype.mlir + ">")
}

/// Adds a constant to `lines` and returns its type.
fn constant(lines: &mut String, i: usize, shape: &[usize], value: &str) -> String {
    let shape: String = shape.iter().map(|extent| format!("{extent}x")).collect();
    let of = format!("tensor<{shape}i32>");
    let _infallible = writeln!(lines, "    %c{i} = stablehlo.constant dense<{value}> : {of}");
    of
}

/// Row-major layouts, the minor axis first, as XLA wants them.
fn layouts(ranks: impl Iterator<Item = usize>) -> String {
    let layout = |rank: usize| match rank {
        0 => "dense<> : tensor<0xindex>".to_owned(),
        _ => format!("dense<{:?}> : tensor<{rank}xindex>", (0..rank).rev().collect::<Vec<_>>()),
    };
    format!("[{}]", ranks.map(layout).collect::<Vec<_>>().join(", "))
}

/// An MLIR string literal.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                let _infallible = write!(quoted, "\\{byte:02X}");
            }
            _ => quoted.push(char::from(byte)),
        }
    }
    quoted.push('"');
    quoted
}
