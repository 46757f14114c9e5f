//! Running a Mosaic module on the CPU, called as XLA's `tpu_custom_call` calls it: arrays by position in, arrays out.

use std::borrow::Cow;

use crate::diag::{Diagnostic, Report};
use crate::exec::{self, Array, Options};
use crate::ir::{ArrayType, DType, DimExpr, Kernel, Role};
use crate::mosaic::read::{self, CallTypes};

/// A module made ready for calls with arrays of certain types.
#[derive(Clone, Debug)]
pub struct Runnable {
    kernel: Kernel,
    /// Names of the grid extents that come as operands, which stand first.
    bounds: Vec<String>,
    /// Operands whose contents results start with: operand, result.
    aliases: Vec<(usize, usize)>,
    /// Operands whose bytes are elements of another type to the module.
    recast: Vec<(usize, DType)>,
}

impl Runnable {
    /// Reads a module and makes it ready for calls with operands like these: grid bounds (`i32[]`), prefetched arrays, inputs.
    /// `lines` are the module's source lines, where they are kept apart from it ([`read::located`]). Each alias says that a result (its number) starts with the contents of an operand (its number). An `i8` operand
    /// stands for any type of one byte or less that the module takes there: files do not always say which.
    ///
    /// # Errors
    /// Those of [`read::kernel`]; K0404 for an alias between arrays that differ.
    pub fn new(
        bytes: &[u8],
        lines: Option<&[u8]>,
        operands: &[Array],
        results: &[ArrayType],
        aliases: &[(usize, usize)],
    ) -> Result<Self, Report> {
        let mut operands: Vec<ArrayType> = operands.iter().map(array_type).collect();
        let recast = recasts(bytes, &operands)?;
        for (i, dtype) in &recast {
            operands[*i].dtype = *dtype;
        }
        for (operand, result) in aliases {
            if operands.get(*operand).is_none() || operands.get(*operand) != results.get(*result) {
                let message =
                    format!("result {result} cannot start as operand {operand}: they are not alike");
                return Err(Diagnostic::error("K0404", message).into());
            }
        }
        let types = CallTypes { operands: Some(operands), results: results.to_vec() };
        let kernel = read::located(bytes, lines, Some(&types))?;
        let bounds = kernel.grid.iter().filter_map(|g| match &g.extent {
            DimExpr::Dim(name) => Some(name.to_string()),
            _ => None,
        });
        Ok(Self { bounds: bounds.collect(), aliases: aliases.to_vec(), recast, kernel })
    }

    /// The kernel that a call runs.
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs it once. The operands have the types that it was made ready for.
    ///
    /// # Errors
    /// K0404 if they have not; those of [`exec::call`].
    pub fn run(&self, operands: &[Array], options: &Options) -> Result<Vec<Array>, Report> {
        let operands = self.recast(operands)?;
        let (options, arguments) = self.split(&operands, options)?;
        exec::call(&self.kernel, arguments, &options)
    }

    /// Runs it on every device of a mesh at once; operands by device.
    ///
    /// # Errors
    /// As [`Runnable::run`], and those of [`exec::run_mesh`].
    pub fn run_mesh(&self, devices: &[Vec<Array>], options: &Options) -> Result<Vec<Vec<Array>>, Report> {
        let mut own = options.clone();
        let mut arguments = vec![];
        for operands in devices {
            // Grid bounds are alike on all devices: the kernel is one program.
            let operands = self.recast(operands)?;
            let (options, rest) = self.split(&operands, options)?;
            own = options;
            arguments.push(rest.to_vec());
        }
        exec::run_mesh(&self.kernel, &arguments, &own)
    }

    /// The operands with the element types that the module gives them.
    fn recast<'a>(&self, operands: &'a [Array]) -> Result<Cow<'a, [Array]>, Report> {
        if self.recast.is_empty() {
            return Ok(Cow::Borrowed(operands));
        }
        let mut own = operands.to_vec();
        for (i, dtype) in &self.recast {
            if let Some(array) = own.get_mut(*i) {
                *array = Array::from_bytes(*dtype, array.shape(), &array.to_bytes())?;
            }
        }
        Ok(Cow::Owned(own))
    }

    /// Takes the grid bounds off the operands.
    fn split<'a>(&self, operands: &'a [Array], options: &Options) -> Result<(Options, &'a [Array]), Report> {
        let mut options = options.clone();
        let (bounds, rest) = operands.split_at_checked(self.bounds.len()).ok_or_else(|| {
            let (n, all) = (operands.len(), self.bounds.len());
            Diagnostic::error("K0404", format!("{n} operands are given, but {all} grid bounds come first"))
        })?;
        for (i, (name, bound)) in self.bounds.iter().zip(bounds).enumerate() {
            match bound.as_slice::<i32>() {
                Some([n]) => options.dims.insert(name.clone(), i64::from(*n)),
                _ => {
                    let message = format!("operand {i} is a grid bound, so it is one i32");
                    return Err(Diagnostic::error("K0404", message).into());
                }
            };
        }
        let first = self.bounds.len();
        options.aliases = self.aliases.iter().map(|(o, r)| (o.saturating_sub(first), *r)).collect();
        Ok((options, rest))
    }
}

/// Which `i8` operands are of another type of one byte or less to the module.
fn recasts(bytes: &[u8], operands: &[ArrayType]) -> Result<Vec<(usize, DType)>, Report> {
    if operands.iter().all(|o| o.dtype != DType::I8) {
        return Ok(vec![]);
    }
    // What is an input and what an output is a guess without the call's types; their order is not.
    let open = read::kernel(bytes, None)?;
    let bounds = open.grid.iter().filter(|g| g.extent.known().is_none()).count();
    let arrays = open.params.iter().filter(|p| p.role != Role::Scratch).filter_map(|p| p.array.as_ref());
    let pairs = operands.iter().enumerate().skip(bounds).zip(arrays);
    let narrow = |dtype: DType| dtype != DType::I8 && dtype.bytes() == 1;
    let found = pairs.filter(|((_, o), a)| o.dtype == DType::I8 && narrow(a.dtype));
    Ok(found.map(|((i, _), a)| (i, a.dtype)).collect())
}

/// The type of an array.
fn array_type(array: &Array) -> ArrayType {
    ArrayType { dtype: array.dtype(), shape: array.shape().iter().map(|n| DimExpr::from(*n)).collect() }
}
