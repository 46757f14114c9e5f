//! Fits the caller's arrays to a kernel: finds its dims, checks dtypes, shapes and demands, and makes the outputs.

use std::sync::Mutex;

use crate::diag::Diagnostic;
use crate::ir::dims::Dims;
use crate::ir::{ArrayType, DType, DimExpr, Kernel, MemorySpace, Param, Role};

use super::Options;
use super::array::Array;
use super::core::Argument;
use super::data::Data;
use super::layout::MAX_RANK;
use super::plan;

/// The most grid steps of one call.
const MAX_STEPS: i64 = 1 << 40;

/// A call whose arguments fit.
#[derive(Debug)]
pub(super) struct Binding<'a> {
    pub(super) dims: Dims,
    pub(super) grid: Vec<i64>,
    /// By parameter.
    pub(super) arguments: Vec<Argument<'a>>,
}

impl Binding<'_> {
    /// By parameter: the one whose memory it shares, mostly its own.
    pub(super) fn memory(&self) -> Vec<usize> {
        let all = self.arguments.iter().enumerate();
        let own = |(p, a): (usize, &Argument<'_>)| match a {
            Argument::Alias { output, windowed: false, .. } => *output,
            _ => p,
        };
        all.map(own).collect()
    }
}

/// What the caller passes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'g, 'a> {
    /// By the names of the parameters.
    Named(&'g [(&'g str, &'a Array)]),
    /// The prefetched arrays, then the inputs.
    Listed(&'a [Array]),
}

/// Fits arguments to a kernel; tells everything that does not fit.
pub(super) fn bind<'a>(
    kernel: &Kernel,
    given: Given<'_, 'a>,
    options: &Options,
) -> Result<Binding<'a>, Vec<Diagnostic>> {
    let mut b = Binder { kernel, dims: options.dims.clone(), sources: vec![], errors: vec![] };
    let arrays = match given {
        Given::Named(inputs) => b.match_names(inputs),
        Given::Listed(inputs) => b.match_positions(inputs),
    };
    for (p, array) in &arrays {
        b.learn(p, array);
    }
    for (p, array) in &arrays {
        b.check(p, array);
    }
    b.check_demands();
    let grid = b.grid();
    let arguments = kernel.params.iter().map(|p| match p.role {
        Role::Scratch => Argument::None,
        Role::Output => b.output(p),
        Role::Input | Role::Prefetch => arrays
            .iter()
            .find(|(q, _)| q.value == p.value)
            .map_or(Argument::None, |(_, a)| Argument::Input(a)),
    });
    let mut arguments: Vec<Argument<'a>> = arguments.collect();
    for alias in &options.aliases {
        b.alias(*alias, &mut arguments);
    }
    if b.errors.is_empty() { Ok(Binding { dims: b.dims, grid, arguments }) } else { Err(b.errors) }
}

struct Binder<'k> {
    kernel: &'k Kernel,
    dims: Dims,
    /// Which axis of which argument gave each dim its size.
    sources: Vec<(String, String)>,
    errors: Vec<Diagnostic>,
}

impl<'k> Binder<'k> {
    fn error(&mut self, code: &'static str, p: Option<&Param>, message: String, help: Option<String>) {
        let span = p.map_or(self.kernel.span, |p| p.span);
        let mut d = Diagnostic::error(code, message)
            .at(self.kernel.loc(span).clone(), "declared here")
            .note(format!("in kernel `{}`", self.kernel.name));
        d.help = help;
        self.errors.push(d);
    }

    /// The parameters that the caller passes: the prefetched ones, then the inputs.
    fn expected(&self) -> Vec<(usize, &'k Param)> {
        let all = || self.kernel.params.iter().enumerate();
        let with = |role| all().filter(move |(_, p)| p.role == role);
        with(Role::Prefetch).chain(with(Role::Input)).collect()
    }

    /// Pairs parameters with arrays in their order.
    fn match_positions<'a>(&mut self, inputs: &'a [Array]) -> Vec<(&'k Param, &'a Array)> {
        let expected = self.expected();
        if expected.len() != inputs.len() {
            let names: Vec<String> = expected.iter().map(|(_, p)| format!("`{}`", p.name)).collect();
            let message = format!("{} arguments, but the kernel takes {}", inputs.len(), expected.len());
            self.error("K0404", None, message, Some(format!("they are {}", names.join(", "))));
        }
        expected.into_iter().map(|(_, p)| p).zip(inputs).collect()
    }

    /// Lets an output start with the contents of an argument.
    fn alias(&mut self, (from, to): (usize, usize), arguments: &mut [Argument<'_>]) {
        let all = self.kernel.params.iter().enumerate();
        let source = self.expected().get(from).copied();
        let target = all.filter(|(_, p)| p.role == Role::Output).nth(to);
        let (Some((i, p)), Some((o, q))) = (source, target) else {
            let message = format!("there is no argument {from} or no output {to} to alias");
            return self.error("K0404", None, message, None);
        };
        let (Argument::Input(a), Argument::Output { shape, data, defined, .. }) = get_two(arguments, i, o)
        else {
            // One of them did not fit: that is told already. Or it is aliased before.
            if self.errors.is_empty() {
                let message = format!("`{}` is aliased twice", p.name);
                self.error("K0404", Some(p), message, None);
            }
            return;
        };
        let contents = data.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *defined || a.shape() != shape || a.dtype() != contents.dtype() {
            let message = format!("`{}` cannot alias `{}`", q.name, p.name);
            let help = "each output aliases one argument of its own element type and shape";
            return self.error("K0404", Some(q), message, Some(help.into()));
        }
        *contents = a.data().clone();
        *defined = true;
        // A window lies on the chip, and shows an array in HBM.
        let space = |p: &Param| match &p.window {
            Some(_) => MemorySpace::Any,
            None => self.kernel.ref_ty(p.value).space,
        };
        if space(p) == space(q) && (space(p) == MemorySpace::Any || plan::written(self.kernel)[i]) {
            let windowed = p.window.is_some();
            arguments[i] = Argument::Alias { shape: a.shape().to_vec(), output: o, windowed };
        }
    }

    /// Pairs parameters with the arrays of their names.
    fn match_names<'a>(&mut self, inputs: &[(&str, &'a Array)]) -> Vec<(&'k Param, &'a Array)> {
        let expected: Vec<&Param> = self.expected().into_iter().map(|(_, p)| p).collect();
        let names: Vec<String> = expected.iter().map(|p| format!("`{}`", p.name)).collect();
        let names = format!("the inputs are {}", names.join(", "));
        for (i, (name, _)) in inputs.iter().enumerate() {
            if !expected.iter().any(|p| *p.name == **name) {
                let message = format!("the kernel has no input `{name}`");
                self.error("K0404", None, message, Some(names.clone()));
            } else if inputs[..i].iter().any(|(other, _)| other == name) {
                let message = format!("argument `{name}` is given twice");
                self.error("K0404", None, message, None);
            }
        }
        let mut pairs = vec![];
        for p in expected {
            match inputs.iter().find(|(name, _)| **name == *p.name) {
                Some((_, array)) => pairs.push((p, *array)),
                None => {
                    let message = format!("argument `{}` is missing", p.name);
                    self.error("K0404", Some(p), message, Some(names.clone()));
                }
            }
        }
        pairs
    }

    /// Takes the sizes of dims from an array.
    fn learn(&mut self, p: &Param, array: &Array) {
        let Some(ty) = &p.array else { return };
        for (axis, (e, n)) in ty.shape.iter().zip(array.shape()).enumerate() {
            let (DimExpr::Dim(d), Ok(n)) = (e, i32::try_from(*n)) else {
                continue;
            };
            if !self.dims.contains_key(&**d) {
                self.dims.insert(d.to_string(), i64::from(n));
                let source = format!("`{}` has {n} on axis {axis}", p.name);
                self.sources.push((d.to_string(), source));
            }
        }
    }

    fn check(&mut self, p: &Param, array: &Array) {
        let Some(ty) = &p.array else { return };
        let (name, dtype) = (&p.name, array.dtype());
        if dtype != ty.dtype {
            let message = format!("argument `{name}` is {dtype}, but the kernel takes {}", ty.dtype);
            self.error("K0404", Some(p), message, None);
        }
        if array.shape().len() != ty.shape.len() || ty.shape.len() > MAX_RANK {
            let message = format!(
                "argument `{name}` has shape {:?}, but the kernel takes {}",
                array.shape(),
                shown(ty)
            );
            self.error("K0404", Some(p), message, None);
            return;
        }
        for (axis, (e, &n)) in ty.shape.iter().zip(array.shape()).enumerate() {
            if e.eval(&self.dims) == i64::try_from(n).ok() && i32::try_from(n).is_ok() {
                continue;
            }
            let wanted = match e.eval(&self.dims) {
                Some(m) if e.known().is_none() => format!("`{e}` = {m}"),
                Some(m) => m.to_string(),
                None => format!("`{e}`, which is not known"),
            };
            let message = format!("argument `{name}` has {n} elements on axis {axis}, not {wanted}");
            let mut why = vec![];
            e.each_dim(&mut |d| {
                let source = self.sources.iter().find(|(name, _)| **name == **d);
                why.extend(source.map(|(d, s)| format!("`{d}` is fixed where {s}")));
            });
            self.error("K0404", Some(p), message, None);
            if let Some(d) = self.errors.last_mut() {
                d.notes.extend(why);
            }
        }
    }

    fn check_demands(&mut self) {
        for demand in &self.kernel.demands {
            let Some(holds) = demand.holds(&self.dims) else {
                let message = format!("`{demand}` cannot be checked: a dim is not known");
                self.error("K0404", None, message, Some(HOW_TO_GIVE_DIMS.into()));
                continue;
            };
            if !holds {
                let mut values = vec![];
                for e in [&demand.left, &demand.right] {
                    e.each_dim(&mut |d| {
                        let value = format!("{d} = {}", self.dims.get(&**d).unwrap_or(&0));
                        if !values.contains(&value) {
                            values.push(value);
                        }
                    });
                }
                let message = format!("the kernel needs {demand}, but {}", values.join(", "));
                self.error("K0405", None, message, None);
            }
        }
    }

    /// The value of an expression, or an error that says which dim is missing.
    fn eval(&mut self, e: &DimExpr, what: &str, p: Option<&Param>) -> Option<i64> {
        let value = e.eval(&self.dims);
        if value.is_none() {
            let message = format!("{what} is `{e}`, which is not known");
            self.error("K0404", p, message, Some(HOW_TO_GIVE_DIMS.into()));
        }
        value
    }

    fn grid(&mut self) -> Vec<i64> {
        let mut extents = vec![];
        for (axis, g) in self.kernel.grid.iter().enumerate() {
            let n = self.eval(&g.extent, &format!("grid axis {axis}"), None).unwrap_or(0);
            if i32::try_from(n).is_err() || n < 0 {
                let message = format!("grid axis {axis} has {n} steps");
                self.error("K0404", None, message, None);
            }
            extents.push(n.clamp(0, i64::from(i32::MAX)));
        }
        let steps = extents.iter().try_fold(1_i64, |a, n| a.checked_mul(*n));
        if steps.is_none_or(|n| n > MAX_STEPS) {
            let message = format!("the grid {extents:?} has more than {MAX_STEPS} steps");
            self.error("K0407", None, message, None);
        }
        extents
    }

    fn output(&mut self, p: &Param) -> Argument<'static> {
        let Some(ty) = &p.array else {
            return Argument::None;
        };
        let mut shape = vec![];
        for (axis, e) in ty.shape.iter().enumerate() {
            let what = format!("axis {axis} of output `{}`", p.name);
            let Some(n) = self.eval(e, &what, Some(p)) else {
                return Argument::None;
            };
            match usize::try_from(n) {
                Ok(n) => shape.push(n),
                Err(_) => {
                    let message = format!("{what} has length {n}");
                    self.error("K0404", Some(p), message, None);
                }
            }
        }
        let elements = shape.iter().try_fold(1_usize, |a, n| a.checked_mul(*n));
        let Some(n) = elements.filter(|n| *n < MAX_ELEMENTS && shape.len() <= MAX_RANK) else {
            let message = format!("output `{}` of shape {shape:?} does not fit in memory", p.name);
            self.error("K0404", Some(p), message, None);
            return Argument::None;
        };
        if !self.errors.is_empty() {
            return Argument::None;
        }
        let data = Mutex::new(Data::poison(ty.dtype, n));
        Argument::Output { shape, data, defined: false, users: Mutex::default() }
    }
}

/// Two different elements.
fn get_two<'s, 'a>(
    arguments: &'s mut [Argument<'a>],
    i: usize,
    o: usize,
) -> (&'s Argument<'a>, &'s mut Argument<'a>) {
    let (before, after) = arguments.split_at_mut(i.max(o));
    if i < o { (&before[i], &mut after[0]) } else { (&after[0], &mut before[o]) }
}

/// The most elements of one output: 2^36, that is 256 GiB of `f32`.
const MAX_ELEMENTS: usize = 1 << 36;

const HOW_TO_GIVE_DIMS: &str = "no input has it as a length: give it in `Options::dims`";

fn shown(ty: &ArrayType) -> String {
    let lengths: Vec<String> = ty.shape.iter().map(ToString::to_string).collect();
    let dtype: DType = ty.dtype;
    format!("{dtype}[{}]", lengths.join(", "))
}
