//! What must be true of an index beyond its JSON types: names, paths, references, sizes.

use std::collections::BTreeSet;

use super::dtype::{dtype_info, is_dtype_variable};
use super::error::CallError;
use super::expr::reads;
use super::index::{ArgumentInterface, Index, ModuleEntry, OpInterface, Operand, SCHEMA};
use crate::ir::DimExpr;

const MAX_FILE: usize = 8 << 20;
const MAX_MODULE: u64 = 64 << 20;
const MAX_LIST: usize = 1024;
const MAX_RANK: usize = 16;
const MAX_DOC: usize = 4096;

pub(super) fn length(json: &[u8]) -> Result<(), CallError> {
    if json.len() > MAX_FILE {
        return Err(CallError::index("the file", format!("{} bytes are more than {MAX_FILE}", json.len())));
    }
    Ok(())
}

/// Looks at `schema` before the rest, so that an index of the future is called that, not malformed.
pub(super) fn schema(json: &[u8]) -> Result<(), CallError> {
    #[derive(serde::Deserialize)]
    struct Probe {
        schema: u64,
    }
    let probe: Probe = serde_json::from_slice(json).map_err(syntax)?;
    if probe.schema != u64::from(SCHEMA) {
        let problem = format!("this version reads schema {SCHEMA}, not {}: update it", probe.schema);
        return Err(CallError::index("schema", problem));
    }
    Ok(())
}

pub(super) fn syntax(error: serde_json::Error) -> CallError {
    CallError::index(format!("line {} column {}", error.line(), error.column()), error.to_string())
}

pub(super) fn index(index: &Index) -> Result<(), CallError> {
    if index.schema != SCHEMA {
        return Err(CallError::index("schema", format!("{} is not {SCHEMA}", index.schema)));
    }
    for (name, interface) in index.ops.iter() {
        let at = At(format!("ops.{name}"));
        at.identifier(name)?;
        op(&at, interface)?;
    }
    Ok(())
}

fn op(at: &At, op: &OpInterface) -> Result<(), CallError> {
    at.ensure(op.doc.len() <= MAX_DOC, || format!("doc is longer than {MAX_DOC} bytes"))?;
    at.list("dims", op.dims.len())?;
    at.list("modules", op.modules.len())?;
    at.unique("dims", op.dims.iter())?;
    at.unique("arguments", op.arguments.iter().map(|argument| &argument.name))?;
    at.unique("results", op.results.iter().map(|result| &result.name))?;
    for dim in &op.dims {
        at.field("dims").identifier(dim)?;
        let bound = op.arguments.iter().flat_map(|argument| &argument.shape);
        let bound = bound.into_iter().any(|extent| *extent == DimExpr::dim(dim));
        at.ensure(bound, || format!("dim `{dim}` is the extent of no argument, so no call could bind it"))?;
    }
    let dims: BTreeSet<&str> = op.dims.iter().map(String::as_str).collect();
    for (list, arrays) in [("arguments", &op.arguments), ("results", &op.results)] {
        at.list(list, arrays.len())?;
        for (i, array) in arrays.iter().enumerate() {
            self::array(&at.item(list, i), array, &dims)?;
        }
    }
    let variables: BTreeSet<&str> = self::variables(&op.arguments).collect();
    if let Some(unbound) = self::variables(&op.results).find(|variable| !variables.contains(variable)) {
        return Err(at.error(format!("result dtype `{unbound}` is the dtype of no argument")));
    }
    for (i, entry) in op.modules.iter().enumerate() {
        module(&at.item("modules", i), entry, op, &dims, &variables)?;
    }
    Ok(())
}

fn variables(arrays: &[ArgumentInterface]) -> impl Iterator<Item = &str> {
    arrays.iter().map(|array| array.dtype.as_str()).filter(|dtype| is_dtype_variable(dtype))
}

fn array(at: &At, array: &ArgumentInterface, dims: &BTreeSet<&str>) -> Result<(), CallError> {
    at.identifier(&array.name)?;
    let known = dtype_info(&array.dtype).is_some() || is_dtype_variable(&array.dtype);
    at.ensure(known, || format!("`{}` is neither a dtype nor a dtype variable", array.dtype))?;
    at.ensure(array.shape.len() <= MAX_RANK, || format!("rank {} is above {MAX_RANK}", array.shape.len()))?;
    array.shape.iter().try_for_each(|extent| at.expr(extent, dims))
}

fn module(
    at: &At,
    module: &ModuleEntry,
    op: &OpInterface,
    dims: &BTreeSet<&str>,
    variables: &BTreeSet<&str>,
) -> Result<(), CallError> {
    at.field("file").path(&module.file)?;
    at.field("kernel").identifier(&module.kernel)?;
    let hex = module.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    at.ensure(hex && module.sha256.len() == 64, || "sha256 is not 64 lower-case hex digits".to_owned())?;
    at.ensure(module.bytes <= MAX_MODULE, || format!("{} bytes are more than {MAX_MODULE}", module.bytes))?;

    let bound: BTreeSet<&str> = module.dtypes.names().collect();
    at.ensure(bound == *variables, || format!("dtypes must bind {variables:?}, not {bound:?}"))?;
    for (_, dtype) in module.dtypes.iter() {
        at.field("dtypes").ensure(dtype_info(dtype).is_some(), || format!("`{dtype}` is not a dtype"))?;
    }
    for name in module.tile.names().chain(module.generations.iter().map(String::as_str)) {
        at.identifier(name)?;
    }
    at.unique("generations", module.generations.iter())?;

    at.list("demands", module.demands.len())?;
    for demand in &module.demands {
        at.field("demands").expr(&demand.left, dims)?;
        at.field("demands").expr(&demand.right, dims)?;
    }
    at.list("operands", module.operands.len())?;
    for (i, operand) in module.operands.iter().enumerate() {
        self::operand(&at.item("operands", i), operand, op, dims)?;
    }
    let (mut ours, mut all) = (module.results.clone(), names(&op.results));
    ours.sort();
    all.sort();
    at.ensure(ours == all, || format!("results must be {all:?} in some order, not {ours:?}"))?;

    let body = module.custom_call_config.get("body").is_none();
    at.field("custom_call_config").ensure(body, || "`body` is the file's, and cannot be set".to_owned())?;
    let config = module.backend_config.get("custom_call_config").is_none();
    at.field("backend_config")
        .ensure(config, || "`custom_call_config` stands beside, and cannot be set".to_owned())
}

fn names(arrays: &[ArgumentInterface]) -> Vec<String> {
    arrays.iter().map(|array| array.name.clone()).collect()
}

fn operand(at: &At, operand: &Operand, op: &OpInterface, dims: &BTreeSet<&str>) -> Result<(), CallError> {
    match operand {
        Operand::Expr(expr) => at.expr(expr, dims),
        Operand::Exprs(exprs) => {
            at.list("exprs", exprs.len())?;
            exprs.iter().try_for_each(|expr| at.expr(expr, dims))
        }
        Operand::Argument(name) => {
            let known = op.arguments.iter().any(|argument| argument.name == *name);
            at.ensure(known, || format!("`{name}` is not an argument of the operation"))
        }
    }
}

/// A place in the file, for messages.
struct At(String);

impl At {
    fn field(&self, name: &str) -> At {
        At(format!("{}.{name}", self.0))
    }

    fn item(&self, list: &str, i: usize) -> At {
        At(format!("{}.{list}[{i}]", self.0))
    }

    fn error(&self, problem: impl Into<String>) -> CallError {
        CallError::index(self.0.clone(), problem)
    }

    fn ensure(&self, holds: bool, problem: impl FnOnce() -> String) -> Result<(), CallError> {
        if holds { Ok(()) } else { Err(self.error(problem())) }
    }

    fn list(&self, name: &str, len: usize) -> Result<(), CallError> {
        self.field(name).ensure(len <= MAX_LIST, || format!("{len} items are more than {MAX_LIST}"))
    }

    fn unique<'a>(&self, list: &str, names: impl Iterator<Item = &'a String>) -> Result<(), CallError> {
        let mut seen = BTreeSet::new();
        for name in names {
            self.field(list).ensure(seen.insert(name), || format!("`{name}` is given twice"))?;
        }
        Ok(())
    }

    /// Names end up in Python, MLIR and file names, so they are plain identifiers.
    fn identifier(&self, name: &str) -> Result<(), CallError> {
        let mut bytes = name.bytes();
        let plain = name.len() <= 128
            && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.ensure(plain, || format!("`{}` is not an identifier", name.escape_debug()))
    }

    fn path(&self, path: &str) -> Result<(), CallError> {
        let plain = path.len() <= 256
            && path.split('/').all(|part| {
                !part.is_empty()
                    && !part.starts_with('.')
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
            });
        self.ensure(plain, || format!("`{}` is not a plain path inside the variant", path.escape_debug()))
    }

    fn expr(&self, expr: &DimExpr, dims: &BTreeSet<&str>) -> Result<(), CallError> {
        match reads(expr).into_iter().find(|dim| !dims.contains(dim.as_str())) {
            Some(dim) => Err(self.error(format!("`{}` is not a dim of the operation", dim.escape_debug()))),
            None => Ok(()),
        }
    }
}
