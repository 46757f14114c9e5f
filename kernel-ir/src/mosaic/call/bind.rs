//! Reading the dims and dtype variables of a call off its arguments.

use std::fmt;

use super::dtype::{dtype_info, is_dtype_variable};
use super::error::CallError;
use super::expr::evaluate;
use super::index::{ArgumentInterface, OpInterface};
use super::table::Table;
use crate::ir::DimExpr;
use crate::ir::dims::Dims;

/// The type of an array: its element type by its public name, and its static shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorType {
    /// `bfloat16`, `int32`, ...
    pub dtype: String,
    /// The extent of each axis.
    pub shape: Vec<i64>,
}

impl TensorType {
    /// An array type.
    pub fn new(dtype: impl Into<String>, shape: impl Into<Vec<i64>>) -> TensorType {
        TensorType { dtype: dtype.into(), shape: shape.into() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        write!(f, "{}[{}]", self.dtype, shape.join(","))
    }
}

/// What a call's arguments fix: the symbolic dims and the dtype variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binding {
    /// The value of each dim.
    pub dims: Dims,
    /// The dtype of each variable.
    pub dtypes: Table<String>,
}

impl OpInterface {
    /// Reads the dims and dtype variables off the arguments of a call.
    ///
    /// # Errors
    /// [`CallError::Arguments`] names the first argument that does not fit, and what it contradicts: their number, a
    /// dtype, a rank, a fixed extent, a dim or variable that an earlier argument bound to something else.
    pub fn bind(&self, arguments: &[TensorType]) -> Result<Binding, CallError> {
        if arguments.len() != self.arguments.len() {
            let names: Vec<&str> = self.arguments.iter().map(|argument| argument.name.as_str()).collect();
            let problem = format!(
                "{} arguments are given, but the operation takes {}: {}",
                arguments.len(),
                names.len(),
                names.join(", ")
            );
            return Err(CallError::arguments(problem));
        }
        let mut binder = Binder::default();
        let pairs = || self.arguments.iter().zip(arguments);
        for (interface, array) in pairs() {
            binder.dtype(interface, array)?;
            binder.dims(interface, array)?;
        }
        for (interface, array) in pairs() {
            binder.extents(interface, array)?;
        }
        Ok(binder.binding)
    }

    /// The types of the operation's results in a call.
    ///
    /// # Errors
    /// [`CallError::Expr`] if an extent has no value for the bound dims.
    pub fn result_types(&self, binding: &Binding) -> Result<Vec<TensorType>, CallError> {
        self.results.iter().map(|result| result.tensor_type(&binding.dtypes, &binding.dims)).collect()
    }
}

impl ArgumentInterface {
    /// The array type that this argument or result has in a call.
    ///
    /// # Errors
    /// [`CallError::Expr`] if an extent has no value; [`CallError::Arguments`] if the dtype variable has none.
    pub fn tensor_type(&self, dtypes: &Table<String>, dims: &Dims) -> Result<TensorType, CallError> {
        let dtype = match dtypes.get(&self.dtype) {
            Some(bound) => bound.clone(),
            None if is_dtype_variable(&self.dtype) => {
                return Err(CallError::arguments(format!(
                    "the dtype `{}` of `{}` is not bound",
                    self.dtype, self.name
                )));
            }
            None => self.dtype.clone(),
        };
        let shape: Result<Vec<i64>, CallError> =
            self.shape.iter().map(|extent| evaluate(extent, dims)).collect();
        Ok(TensorType { dtype, shape: shape? })
    }

    /// The interface as people write it: `rhs: T[g, n, k]`.
    fn signature(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(DimExpr::to_string).collect();
        format!("{}: {}[{}]", self.name, self.dtype, shape.join(", "))
    }
}

#[derive(Default)]
struct Binder {
    binding: Binding,
    /// For each bound name, the argument that bound it, to blame in a contradiction.
    binders: Table<String>,
}

impl Binder {
    fn dtype(&mut self, interface: &ArgumentInterface, array: &TensorType) -> Result<(), CallError> {
        let (name, given) = (&interface.name, &array.dtype);
        if dtype_info(given).is_none() {
            return Err(CallError::arguments(format!("`{name}` has dtype `{given}`, which no module takes")));
        }
        if !is_dtype_variable(&interface.dtype) {
            if interface.dtype != *given {
                return Err(CallError::arguments(format!(
                    "`{name}` must be {}, not {given}",
                    interface.dtype
                )));
            }
            return Ok(());
        }
        match self.binding.dtypes.get(&interface.dtype) {
            Some(bound) if bound != given => {
                let first = self.blame(&interface.dtype);
                Err(CallError::arguments(format!("`{name}` must be {bound} as `{first}` is, not {given}")))
            }
            Some(_) => Ok(()),
            None => {
                self.binding.dtypes.set(&interface.dtype, given.clone());
                self.binders.set(&interface.dtype, name.clone());
                Ok(())
            }
        }
    }

    fn dims(&mut self, interface: &ArgumentInterface, array: &TensorType) -> Result<(), CallError> {
        if array.shape.len() != interface.shape.len() {
            let problem = format!("`{}` is {array}, but must be `{}`", interface.name, interface.signature());
            return Err(CallError::arguments(problem));
        }
        for (axis, (extent, &given)) in interface.shape.iter().zip(&array.shape).enumerate() {
            if given < 0 {
                let problem = format!("axis {axis} of `{}` has a negative extent, {given}", interface.name);
                return Err(CallError::arguments(problem));
            }
            let DimExpr::Dim(dim) = extent else { continue };
            if !self.binding.dims.contains_key(&**dim) {
                self.binding.dims.insert(dim.to_string(), given);
                self.binders.set(&**dim, interface.name.clone());
            }
        }
        Ok(())
    }

    /// Checks every extent once all dims are bound: fixed ones, derived ones, and dims met twice.
    fn extents(&self, interface: &ArgumentInterface, array: &TensorType) -> Result<(), CallError> {
        for (axis, (extent, &given)) in interface.shape.iter().zip(&array.shape).enumerate() {
            let expected = evaluate(extent, &self.binding.dims)?;
            if given != expected {
                let source = match extent {
                    DimExpr::Const(_) => String::new(),
                    DimExpr::Dim(dim) => format!(" (`{dim}`, from `{}`)", self.blame(dim)),
                    DimExpr::Op(..) => format!(" (`{extent}`)"),
                };
                let problem = format!(
                    "axis {axis} of `{}` is {given}, but must be {expected}{source}: the argument is {array}, the \
                     interface `{}`",
                    interface.name,
                    interface.signature(),
                );
                return Err(CallError::arguments(problem));
            }
        }
        Ok(())
    }

    fn blame(&self, bound: &str) -> &str {
        self.binders.get(bound).map_or("?", String::as_str)
    }
}
