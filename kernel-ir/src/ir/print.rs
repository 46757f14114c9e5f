//! Readable text of a kernel: one line an op, with the source line it came from.

use std::fmt::{self, Write as _};

use super::{Block, Kernel, Offset, Op, OpKind, Param, Size, Value};

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel @{} grid [", self.name)?;
        for (i, g) in self.grid.iter().enumerate() {
            write!(f, "{}{:?} {}", if i == 0 { "" } else { ", " }, g.semantics, g.extent)?;
        }
        writeln!(f, "] {{")?;
        for d in &self.demands {
            writeln!(f, "  demand {d}")?;
        }
        for p in &self.params {
            self.write_param(f, p)?;
        }
        self.write_block(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

struct Values<'a>(&'a [Value]);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, v) in self.0.iter().enumerate() {
            write!(f, "{}%{}", if i == 0 { "" } else { ", " }, v.0)?;
        }
        Ok(())
    }
}

impl Kernel {
    fn name_of(&self, v: Value) -> String {
        self.param(v).map_or_else(|| format!("%{}", v.0), |p| format!("%{}", p.name))
    }

    fn write_param(&self, f: &mut fmt::Formatter<'_>, p: &Param) -> fmt::Result {
        write!(f, "  {:?} %{}: {}", p.role, p.name, self.ty(p.value))?;
        if let Some(a) = &p.array {
            let shape: Vec<_> = a.shape.iter().map(ToString::to_string).collect();
            write!(f, " of {}[{}]", a.dtype, shape.join(", "))?;
        }
        if let Some(w) = &p.window {
            writeln!(f, " at ({}) -> {{", Values(&w.index.args))?;
            self.write_block(f, &w.index, 2)?;
            return writeln!(f, "  }}");
        }
        writeln!(f)
    }

    fn write_block(&self, f: &mut fmt::Formatter<'_>, b: &Block, depth: usize) -> fmt::Result {
        for op in &b.ops {
            self.write_op(f, op, depth)?;
        }
        if !b.results.is_empty() {
            writeln!(f, "{}yield {}", "  ".repeat(depth), Values(&b.results))?;
        }
        Ok(())
    }

    fn write_op(&self, f: &mut fmt::Formatter<'_>, op: &Op, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        let mut line = String::new();
        if !op.results.is_empty() {
            write!(line, "{} = ", Values(&op.results))?;
        }
        self.write_kind(&mut line, &op.kind)?;
        if let [r] = op.results.as_slice() {
            write!(line, " : {}", self.ty(*r))?;
        }
        let loc = self.loc(op.span);
        let file = loc.file.rsplit('/').next().unwrap_or(&loc.file);
        let blocks = op.kind.blocks();
        if blocks.is_empty() {
            return writeln!(f, "{pad}{line:<56} // {file}:{}", loc.line);
        }
        writeln!(f, "{pad}{line} {{ // {file}:{}", loc.line)?;
        for (i, b) in blocks.iter().enumerate() {
            if i > 0 {
                if b.ops.is_empty() && b.results.is_empty() {
                    break;
                }
                writeln!(f, "{pad}}} then {{")?;
            }
            if !b.args.is_empty() {
                writeln!(f, "{pad}  ({}):", Values(&b.args))?;
            }
            self.write_block(f, b, depth + 1)?;
        }
        writeln!(f, "{pad}}}")
    }

    fn place(&self, base: Value, offsets: &[Offset]) -> String {
        let at: Vec<_> = offsets
            .iter()
            .map(|o| match o {
                Offset::Const(n) => n.to_string(),
                Offset::Value(v) => format!("%{}", v.0),
            })
            .collect();
        format!("{}[{}]", self.name_of(base), at.join(", "))
    }

    fn write_kind(&self, line: &mut String, kind: &OpKind) -> fmt::Result {
        match kind {
            OpKind::Constant(l) => write!(line, "constant {l:?}"),
            OpKind::Dim { name } => write!(line, "dim {name}"),
            OpKind::Unary { op, x } => write!(line, "{op:?} %{}", x.0),
            OpKind::Binary { op, x, y } => write!(line, "{op:?} %{}, %{}", x.0, y.0),
            OpKind::Compare { op, x, y } => write!(line, "cmp {op:?} %{}, %{}", x.0, y.0),
            OpKind::Load { base, offsets } => write!(line, "load {}", self.place(*base, offsets)),
            OpKind::LoadScalar { base, offsets } => {
                write!(line, "load_scalar {}", self.place(*base, offsets))
            }
            OpKind::Store { base, offsets, value } => {
                write!(line, "store {}, %{}", self.place(*base, offsets), value.0)
            }
            OpKind::StoreScalar { base, offsets, value } => {
                write!(line, "store_scalar {}, %{}", self.place(*base, offsets), value.0)
            }
            OpKind::Slice { base, offsets, sizes } => {
                let sizes: Vec<_> = sizes
                    .iter()
                    .map(|s| match s {
                        Size::Const(n) => n.to_string(),
                        Size::Value(v) => format!("%{}", v.0),
                    })
                    .collect();
                write!(line, "slice {} size [{}]", self.place(*base, offsets), sizes.join(", "))
            }
            OpKind::Squeeze { base, axes } => {
                write!(line, "squeeze {} axes {axes:?}", self.name_of(*base))
            }
            OpKind::Dot { lhs, rhs, dims, precision } => {
                write!(line, "dot %{} axis {}, %{} axis {} ({precision:?})", lhs.0, dims.lhs, rhs.0, dims.rhs)
            }
            OpKind::Reduce { op, x, axis } => write!(line, "reduce {op:?} %{} axis {axis}", x.0),
            OpKind::Iota { axis } => write!(line, "iota axis {axis}"),
            OpKind::ProgramId { axis } => write!(line, "program_id {axis}"),
            OpKind::NumPrograms { axis } => write!(line, "num_programs {axis}"),
            OpKind::If { cond, .. } => write!(line, "if %{}", cond.0),
            OpKind::For { lo, hi, init, .. } => {
                write!(line, "for %{}..%{} init ({})", lo.0, hi.0, Values(init))
            }
            OpKind::While { init, .. } => write!(line, "while init ({})", Values(init)),
            OpKind::LoadStrided { base, offsets, strides } => {
                write!(line, "load {} strides {strides:?}", self.place(*base, offsets))
            }
            OpKind::StoreStrided { base, offsets, strides, value } => {
                write!(line, "store {} strides {strides:?}, %{}", self.place(*base, offsets), value.0)
            }
            OpKind::StoreMasked { base, offsets, value, mask } => {
                write!(line, "store {}, %{} where %{}", self.place(*base, offsets), value.0, mask.0)
            }
            OpKind::Gather { x, index, axis } => write!(line, "gather %{} at %{} axis {axis}", x.0, index.0),
            OpKind::ArgReduce { op, x, axis } => write!(line, "arg {op:?} %{} axis {axis}", x.0),
            OpKind::Assert { cond, message } => write!(line, "assert %{}, {message:?}", cond.0),
            OpKind::AssumeMultiple { x, multiple } => write!(line, "assume_multiple %{} of {multiple}", x.0),
            OpKind::Transpose { x, permutation } => write!(line, "transpose %{} by {permutation:?}", x.0),
            OpKind::ExtractSlice { x, offsets } => write!(line, "extract_slice %{} at {offsets:?}", x.0),
            OpKind::Concatenate { xs, axis } => write!(line, "concatenate {} axis {axis}", Values(xs)),
            OpKind::Roll { x, amount, axis } => write!(line, "roll %{} by %{} axis {axis}", x.0, amount.0),
            other => write!(line, "{} {}", other.name(), Values(&other.operands())),
        }
    }
}
