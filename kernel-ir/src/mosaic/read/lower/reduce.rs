//! Reductions: over several axes one after the other, then combined with what they start from.

use super::Fallible;
use super::scope::{How, Known, Later, Lower};
use crate::ir::{ArgReduction, Binary, DType, Literal, Reduction, Type, Value};
use crate::mosaic::read::module::{Operation, ValueId};

impl Lower<'_> {
    /// `vector.multi_reduction`
    pub(super) fn multi_reduction(&mut self, op: &Operation) -> Fallible<()> {
        let [source, start] = self.operands(op)?;
        let x = self.get(source)?;
        let kind = self.word(op, "kind")?.ok_or_else(|| self.malformed("has no `kind`"))?;
        let reduction = self.reduction_kind(kind, x)?;
        let axes = self.axes(op, "reduction_dims")?;
        let axes = axes.ok_or_else(|| self.malformed("has no `reduction_dims`"))?;
        let mut y = x;
        for axis in &axes {
            y = self.reduction(reduction, y, *axis)?;
        }
        let out = self.result_type(op)?;
        if self.is_neutral(start, reduction, self.dtype(x)?) {
            return self.without_axes(op, y, &out);
        }
        let y = self.reshape(y, out.shape().unwrap_or_default().to_vec())?;
        let start = self.get(start)?;
        let combine = match reduction {
            Reduction::Sum => Binary::Add,
            Reduction::Max => Binary::Max,
            Reduction::Min => Binary::Min,
        };
        let y = self.binary(combine, y, start)?;
        self.done(op, y)
    }

    /// The result without the axes of length 1 that a reduction leaves: often they are put back at once.
    fn without_axes(&mut self, op: &Operation, x: Value, out: &Type) -> Fallible<()> {
        let v = self.result(op)?;
        let len = |t: &Type| t.shape().map(|s| s.iter().product::<usize>());
        let fits = len(self.ty(x)) == len(out) && self.ty(x).dtype() == out.dtype();
        match out {
            Type::Tile(_) if fits && self.ty(x) != out => {
                let later = Later { how: How::Reshape, x, ty: out.clone(), span: self.span };
                self.set(v, Known::Later(later));
                Ok(())
            }
            _ => {
                let y = self.reshape(x, out.shape().unwrap_or_default().to_vec())?;
                self.done(op, y)
            }
        }
    }

    /// What a kind of reduction does to the elements of `x`.
    fn reduction_kind(&self, kind: &str, x: Value) -> Fallible<Reduction> {
        let dtype = self.dtype(x)?;
        let (reduction, fits) = match kind {
            "add" | "sum" => (Reduction::Sum, dtype != DType::Bool),
            "maximumf" | "maxf" => (Reduction::Max, dtype.is_float()),
            "minimumf" | "minf" => (Reduction::Min, dtype.is_float()),
            "maxsi" => (Reduction::Max, dtype.is_int()),
            "minsi" => (Reduction::Min, dtype.is_int()),
            // Before version 18: of floats, or of integers without a sign.
            "max" => (Reduction::Max, dtype.is_float()),
            "min" => (Reduction::Min, dtype.is_float()),
            other => return Err(self.unsupported(format!("has the `kind` {other}"))),
        };
        if fits { Ok(reduction) } else { Err(self.unsupported(format!("has the `kind` {kind} for {dtype}"))) }
    }

    /// Whether a reduction that starts from this value starts from nothing.
    fn is_neutral(&self, start: ValueId, op: Reduction, dtype: DType) -> bool {
        let least = match dtype {
            DType::I16 => i64::from(i16::MIN),
            DType::I8 => i64::from(i8::MIN),
            DType::I4 => -8,
            _ => i64::from(i32::MIN),
        };
        match (op, self.constant_of(start)) {
            (Reduction::Sum, Some(Literal::Float(x))) => x == 0.0,
            (Reduction::Sum, Some(Literal::Int(n))) => n == 0,
            (Reduction::Max, Some(Literal::Float(x))) => x == f64::NEG_INFINITY,
            (Reduction::Max, Some(Literal::Int(n))) => n == least,
            (Reduction::Min, Some(Literal::Float(x))) => x == f64::INFINITY,
            (Reduction::Min, Some(Literal::Int(n))) => n == -(least + 1),
            _ => false,
        }
    }

    /// `tpu.reduce`: keeps the axes, with length 1.
    pub(super) fn reduce(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let mut x = self.get(x)?;
        let kind = self.word(op, "kind")?.ok_or_else(|| self.malformed("has no `kind`"))?;
        let axes = match self.axes(op, "dimensions")? {
            Some(axes) => axes,
            None => vec![self.axis(op, "dimension")?],
        };
        if let Some(search) = arg_reduction(kind) {
            let [axis] = axes[..] else {
                return Err(self.unsupported(format!("has `dimensions` of {axes:?}")));
            };
            x = self.search(search, x, axis)?;
        } else {
            let reduction = self.reduction_kind(kind, x)?;
            for axis in axes {
                x = self.reduction(reduction, x, axis)?;
            }
        }
        let out = self.result_type(op)?;
        self.without_axes(op, x, &out)
    }

    /// `tpu.reduce_index`: up to version 18 without the axis, later with it.
    pub(super) fn reduce_index(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        let kind = self.word(op, "kind")?.unwrap_or_default();
        let search = arg_reduction(kind).ok_or_else(|| self.unsupported(format!("has the `kind` {kind}")))?;
        let axis = self.axis(op, "axis")?;
        let y = self.search(search, x, axis)?;
        let out = self.result_type(op)?;
        let y = self.cast(y, out.dtype().filter(|d| d.is_int()).unwrap_or(DType::I32))?;
        self.without_axes(op, y, &out)
    }
}

fn arg_reduction(kind: &str) -> Option<ArgReduction> {
    match kind {
        "arg_max" => Some(ArgReduction::Max),
        "arg_min" => Some(ArgReduction::Min),
        _ => None,
    }
}
