//! What `run` and `show` are given: a Mosaic module, a StableHLO text that calls some, or a package.

use std::path::Path;

use fs_err as fs;
use kernel_ir::exec::Array;
use kernel_ir::ir::{ArrayType, DType, DimExpr};
use kernel_ir::mosaic::call::{Binding, CallError, Index, ModuleEntry, OpInterface, Operand, TensorType};
use kernel_ir::mosaic::read;
use kernel_ir::mosaic::read::stablehlo::{self, TpuCall};

use crate::error::{Code, Error, Result};
use crate::package::{LocalPackage, Variant};

/// The largest file that is read as a module or a program, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// What a command works on.
#[derive(Debug)]
pub(crate) enum Target {
    /// A module by itself: bytecode in a file.
    Module(Vec<u8>),
    /// The Mosaic calls of a StableHLO text.
    Calls(Vec<TpuCall>),
    /// A package: one of its variants.
    Package(Box<Variant>),
}

/// One module, chosen out of a target, and how it is called.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The module's bytecode.
    pub(crate) body: Vec<u8>,
    /// Its source lines, where they are kept apart from it.
    pub(crate) lines: Option<Vec<u8>>,
    /// The custom call's operands, when they were given.
    pub(crate) operands: Vec<Array>,
    /// The types of its results; empty when only the module says something about them.
    pub(crate) results: Vec<ArrayType>,
    /// Results that start with the contents of an operand: operand, result.
    pub(crate) aliases: Vec<(usize, usize)>,
}

impl Target {
    /// Reads a file or a package's folder.
    ///
    /// # Errors
    /// `H0109` if it cannot be read, `H0604` if it is neither, `H04xx` for a package that is not what it says.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let found = fs::metadata(path).map_err(|e| Error::io(path, e))?;
        if found.is_dir() {
            let package = LocalPackage::open(path)?;
            return Self::of_variants(package.variants, path);
        }
        if found.len() > MAX_BYTES {
            return Err(unreadable(path, "it is too large for a module"));
        }
        let bytes = fs::read(path).map_err(|e| Error::io(path, e))?;
        if read::is_bytecode(&bytes) {
            return Ok(Self::Module(bytes));
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(unreadable(path, "it is neither MLIR bytecode nor text"));
        };
        let calls = stablehlo::calls(&text).map_err(|report| Error::refused(&report))?;
        if calls.is_empty() {
            return Err(unreadable(path, "it is a text without any `tpu_custom_call`")
                .help("pass what `jax.jit(f).lower(..).as_text()` prints, or a file of Mosaic bytecode"));
        }
        Ok(Self::Calls(calls))
    }

    /// The variant with an index, out of those of one package.
    pub(crate) fn of_variants(variants: Vec<Variant>, path: &Path) -> Result<Self> {
        let found = variants.into_iter().find(|v| v.index.is_some());
        let found = found.ok_or_else(|| {
            let message = format!("{} has no variant with an index.json", path.display());
            Error::new(Code::Index, message).help("Tessera's packages have one; `kernels-cli build` makes it")
        })?;
        Ok(Self::Package(Box::new(found)))
    }

    /// The names of what can be chosen; none for a module by itself.
    pub(crate) fn choices(&self) -> Vec<String> {
        match self {
            Self::Module(_) => vec![],
            Self::Calls(calls) => calls.iter().map(|c| c.name.clone()).collect(),
            Self::Package(variant) => {
                variant.index.iter().flat_map(|i| i.ops.names()).map(str::to_owned).collect()
            }
        }
    }

    /// Chooses the module that serves these arrays; `name` is an op, or a call's name or number.
    ///
    /// # Errors
    /// `H0602` if the choice is not clear; `H0412` if no module of an op serves the arrays.
    pub(crate) fn choose(&self, name: Option<&str>, arrays: Vec<Array>) -> Result<Chosen> {
        match self {
            Self::Module(body) => {
                if let Some(name) = name {
                    let message = format!("there is no `{name}` to choose: the file is one module");
                    return Err(Error::new(Code::RunArguments, message));
                }
                Ok(Chosen {
                    body: body.clone(),
                    lines: None,
                    operands: arrays,
                    results: vec![],
                    aliases: vec![],
                })
            }
            Self::Calls(calls) => {
                let call = self.pick_call(calls, name)?;
                Ok(Chosen {
                    body: call.body.clone(),
                    lines: call.debug_locations.clone(),
                    operands: arrays,
                    results: call.results.clone(),
                    aliases: call.aliases.clone(),
                })
            }
            Self::Package(variant) => {
                let index = variant.index.as_ref().ok_or_else(|| self.unclear(None))?;
                self.pick_module(variant, index, name, arrays)
            }
        }
    }

    /// The module that a name chooses, and its call if there is one; of an op, the preferred module.
    ///
    /// # Errors
    /// `H0602` if the choice is not clear.
    pub(crate) fn module(&self, name: Option<&str>) -> Result<(Vec<u8>, Option<&TpuCall>)> {
        match self {
            Self::Module(body) => Ok((body.clone(), None)),
            Self::Calls(calls) => {
                let call = self.pick_call(calls, name)?;
                Ok((call.body.clone(), Some(call)))
            }
            Self::Package(variant) => {
                let ops = variant.index.iter().flat_map(|index| index.ops.iter());
                let mut ops = ops.filter(|(op, _)| name.is_none_or(|name| name == *op));
                let (Some((_, op)), None) = (ops.next(), ops.next()) else { return Err(self.unclear(name)) };
                let entry = op.modules.first().ok_or_else(|| self.unclear(name))?;
                Ok((body_of(variant, entry)?, None))
            }
        }
    }

    fn pick_call<'a>(&self, calls: &'a [TpuCall], name: Option<&str>) -> Result<&'a TpuCall> {
        match (name, calls) {
            (None, [only]) => Ok(only),
            (Some(name), _) => {
                let by_number = name.parse::<usize>().ok().and_then(|i| calls.get(i));
                let mut by_name = calls.iter().filter(|c| c.name == name);
                match (by_number, by_name.next(), by_name.next()) {
                    (Some(call), ..) | (None, Some(call), None) => Ok(call),
                    _ => Err(self.unclear(Some(name))),
                }
            }
            _ => Err(self.unclear(None)),
        }
    }

    /// The first module that takes arrays of these types, with the operands that its call has.
    fn pick_module(
        &self,
        variant: &Variant,
        index: &Index,
        name: Option<&str>,
        arrays: Vec<Array>,
    ) -> Result<Chosen> {
        let mut names = index.ops.names();
        let name = match (name, names.next(), names.next()) {
            (Some(name), ..) => name,
            (None, Some(only), None) => only,
            _ => return Err(self.unclear(None)),
        };
        let no_module = |e: CallError| Error::new(Code::NoModule, e.to_string()).because(e);
        let types: Vec<TensorType> = arrays.iter().map(tensor_type).collect();
        let op = index.op(name).map_err(no_module)?;
        let binding = op.bind(&types).map_err(no_module)?;
        let entry = index.select(name, &binding.dtypes, &binding.dims, None).map_err(no_module)?;
        let body = body_of(variant, entry)?;
        let operands: Result<Vec<Array>> =
            entry.operands.iter().map(|o| operand(o, op, &binding, &arrays)).collect();
        let types = op.result_types(&binding).map_err(no_module)?;
        let results = entry.results.iter().map(|result| {
            let at = op.results.iter().position(|r| r.name == *result);
            at.and_then(|i| types.get(i)).and_then(array_type)
        });
        let results: Option<Vec<ArrayType>> = results.collect();
        let results = results.ok_or_else(|| {
            Error::new(Code::RunArguments, format!("a result of {name} has a type that cannot be run here"))
        })?;
        Ok(Chosen { body, lines: None, operands: operands?, results, aliases: vec![] })
    }

    fn unclear(&self, name: Option<&str>) -> Error {
        let choices = self.choices();
        let (flag, what) = match self {
            Self::Package(_) => ("--op", "ops"),
            _ => ("--call", "calls"),
        };
        let message = match name {
            Some(name) => format!("`{name}` is none, or more than one, of the {} {what}", choices.len()),
            None => format!("which of the {} {what}?", choices.len()),
        };
        let list = choices.iter().enumerate().map(|(i, c)| match self {
            Self::Package(_) => c.clone(),
            _ => format!("{i} ({c})"),
        });
        let list: Vec<String> = list.collect();
        Error::new(Code::RunArguments, message).help(format!("pass {flag} with one of: {}", list.join(", ")))
    }
}

/// A module's file, checked.
fn body_of(variant: &Variant, entry: &ModuleEntry) -> Result<Vec<u8>> {
    let file = variant.files.iter().find(|(p, _)| p.as_str() == entry.file).map(|(_, f)| f);
    let file =
        file.ok_or_else(|| Error::new(Code::Module, format!("{} has no file {}", variant.name, entry.file)))?;
    let body = fs::read(file).map_err(|e| Error::io(file, e))?;
    entry.check_body(&body).map_err(|e| Error::new(Code::Module, e.to_string()).because(e))?;
    Ok(body)
}

fn unreadable(path: &Path, what: &str) -> Error {
    Error::new(Code::Refused, format!("{}: {what}", path.display()))
}

/// One operand of an op's custom call.
fn operand(operand: &Operand, op: &OpInterface, binding: &Binding, arrays: &[Array]) -> Result<Array> {
    let value = |e: &DimExpr| {
        e.eval(&binding.dims)
            .and_then(|n| i32::try_from(n).ok())
            .ok_or_else(|| Error::new(Code::NoModule, format!("`{e}` has no value for these arguments")))
    };
    let array = |shape: Vec<usize>, values: Vec<i32>| {
        Array::new(shape, values).map_err(|report| Error::refused(&report))
    };
    match operand {
        Operand::Expr(e) => array(vec![], vec![value(e)?]),
        Operand::Exprs(all) => {
            let values: Result<Vec<i32>> = all.iter().map(value).collect();
            array(vec![all.len()], values?)
        }
        Operand::Argument(name) => {
            let at = op.arguments.iter().position(|a| a.name == *name);
            at.and_then(|i| arrays.get(i)).cloned().ok_or_else(|| {
                Error::new(Code::Index, format!("a module takes `{name}`, which the op has not"))
            })
        }
    }
}

fn tensor_type(array: &Array) -> TensorType {
    let shape: Vec<i64> = array.shape().iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect();
    TensorType::new(array.dtype().numpy(), shape)
}

fn array_type(ty: &TensorType) -> Option<ArrayType> {
    let dtype = DType::ALL.into_iter().find(|d| d.numpy() == ty.dtype)?;
    Some(ArrayType { dtype, shape: ty.shape.iter().map(|n| DimExpr::Const(*n)).collect() })
}
