//! K0002, K0104: operations on tiles and scalars fit their operands.

use super::{Found, operation};
use crate::diag::Diagnostic;
use crate::ir::{Binary, Compare, DType, Kernel, Literal, Op, OpKind, TileType, Type, Unary, Value};

/// Elements of the largest tile: more than the VMEM of any TPU holds bytes.
const LARGEST_TILE: usize = 1 << 28;

/// Checks the types of every value and operation; true when all of them fit.
pub(super) fn check(kernel: &Kernel, found: &mut Found) -> bool {
    let before = found.len();
    for v in &kernel.values {
        if let Type::Tile(t) = &v.ty
            && let Some(what) = bad_tile(t)
        {
            found.push(Diagnostic::error("K0002", what).at(kernel.loc(v.span).clone(), "made here"));
        }
    }
    if found.len() > before {
        return false;
    }
    kernel.each_op(&mut |op| {
        if let Some(axis) = bad_grid_axis(kernel, op) {
            let n = kernel.grid.len();
            let message = format!("the grid has no axis {axis}");
            let label = if n == 1 { "its only axis is 0".to_owned() } else { format!("it has {n} axes") };
            found.push(Diagnostic::error("K0104", message).at(kernel.loc(op.span).clone(), label));
        } else if let Err(what) = fits(kernel, op).and_then(|()| super::refs::fits(kernel, op)) {
            let message = format!("`{}` {what}", operation(&op.kind));
            let types: Vec<_> = op.kind.operands().iter().map(|v| kernel.ty(*v).to_string()).collect();
            let d = Diagnostic::error("K0002", message).at(kernel.loc(op.span).clone(), "in this operation");
            found.push(if types.is_empty() {
                d
            } else {
                d.note(format!("its operands are {}", types.join(", ")))
            });
        }
    });
    found.len() == before
}

fn bad_tile(t: &TileType) -> Option<String> {
    if t.shape.is_empty() || t.shape.contains(&0) {
        return Some(format!("a tile of type {t} has no elements"));
    }
    let len = t.shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
    let fits = len.is_some_and(|n| n <= LARGEST_TILE);
    (!fits).then(|| format!("a tile of type {t} is larger than any TPU's memory"))
}

fn bad_grid_axis(kernel: &Kernel, op: &Op) -> Option<usize> {
    match op.kind {
        OpKind::ProgramId { axis } | OpKind::NumPrograms { axis } => {
            Some(axis).filter(|a| *a >= kernel.grid.len())
        }
        _ => None,
    }
}

/// A rule that an operation breaks is told as a phrase that follows its name.
pub(super) fn require(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// The type of the only result.
fn result<'k>(kernel: &'k Kernel, op: &Op) -> &'k Type {
    // `structure` has counted the results.
    kernel.ty(op.results[0])
}

fn tile(kernel: &Kernel, v: Value) -> Result<&TileType, String> {
    match kernel.ty(v) {
        Type::Tile(t) => Ok(t),
        other => Err(format!("wants a tile, not a {other}")),
    }
}

fn result_tile<'k>(kernel: &'k Kernel, op: &Op) -> Result<&'k TileType, String> {
    tile(kernel, op.results[0]).map_err(|_| "yields a tile".to_owned())
}

fn fits(kernel: &Kernel, op: &Op) -> Result<(), String> {
    let ty = |v: &Value| kernel.ty(*v);
    let i32 = Type::Scalar(DType::I32);
    match &op.kind {
        OpKind::Constant(l) => {
            let r = result(kernel, op);
            require(!matches!(r, Type::Ref(_)) && literal_fits(*l, r.dtype()), "does not fit its type")
        }
        OpKind::Iota { axis } => {
            let t = result_tile(kernel, op)?;
            require(t.dtype == DType::I32 && *axis < t.shape.len(), "counts in i32 along an axis of the tile")
        }
        OpKind::ProgramId { .. } | OpKind::NumPrograms { .. } | OpKind::Dim { .. } => {
            require(*result(kernel, op) == i32, "yields an i32 scalar")
        }
        OpKind::Unary { op: u, x } => {
            require(ty(x) == result(kernel, op), "yields the type of its operand")?;
            require(
                ty(x).dtype().is_some_and(|d| unary_takes(*u, d)),
                "is not defined on this element type",
            )?;
            elementwise(ty(x))
        }
        OpKind::Binary { op: b, x, y } => {
            require(
                ty(x) == ty(y) && ty(x) == result(kernel, op),
                "wants two operands of its result's type",
            )?;
            require(
                ty(x).dtype().is_some_and(|d| binary_takes(*b, d)),
                "is not defined on this element type",
            )?;
            elementwise(ty(x))
        }
        OpKind::Compare { op: c, x, y } => {
            require(ty(x) == ty(y), "wants two operands of one type")?;
            elementwise(ty(x))?;
            let ordered = !matches!(c, Compare::Eq | Compare::Ne);
            require(!(ordered && ty(x).dtype() == Some(DType::Bool)), "does not order truth values")?;
            let takes = !is_unsigned(*c) || ty(x).dtype().is_some_and(DType::is_int);
            require(takes, "orders integers")?;
            require(*result(kernel, op) == of_dtype(ty(x), DType::Bool), "yields a truth value an element")
        }
        OpKind::Select { mask, x, y } => {
            require(ty(x) == ty(y) && ty(x) == result(kernel, op), "wants two sides of its result's type")?;
            elementwise(ty(x))?;
            require(*ty(mask) == of_dtype(ty(x), DType::Bool), "wants a mask of its result's shape")
        }
        OpKind::Cast { x } => {
            elementwise(ty(x))?;
            elementwise(result(kernel, op))?;
            require(ty(x).shape() == result(kernel, op).shape(), "keeps the shape")
        }
        OpKind::CastUnsigned { x } => {
            elementwise(ty(x))?;
            elementwise(result(kernel, op))?;
            require(ty(x).shape() == result(kernel, op).shape(), "keeps the shape")?;
            let integers =
                [ty(x), result(kernel, op)].into_iter().any(|t| t.dtype().is_some_and(DType::is_int));
            require(integers, "is from integers or to them")
        }
        OpKind::DeviceId => require(*result(kernel, op) == i32, "yields an i32 scalar"),
        OpKind::PrngSeed { seeds } => require(seeds.iter().all(|s| *ty(s) == i32), "takes i32 scalars"),
        OpKind::PrngBits => require(result_tile(kernel, op)?.dtype == DType::I32, "yields a tile of i32"),
        OpKind::Assert { cond, .. } => require(*ty(cond) == Type::Scalar(DType::Bool), "wants a bool scalar"),
        OpKind::AssumeMultiple { x, multiple } => {
            require(*ty(x) == i32 && *result(kernel, op) == i32, "is about an i32 scalar")?;
            require(
                *multiple >= 1 && i32::try_from(*multiple).is_ok(),
                "wants a multiple from 1 to 2147483647",
            )
        }
        OpKind::If { cond, .. } => require(*ty(cond) == Type::Scalar(DType::Bool), "wants a bool scalar"),
        OpKind::For { lo, hi, .. } => require(*ty(lo) == i32 && *ty(hi) == i32, "counts between i32 scalars"),
        _ => moves(kernel, op),
    }
}

/// Operations that move elements about, and products.
fn moves(kernel: &Kernel, op: &Op) -> Result<(), String> {
    match &op.kind {
        OpKind::Broadcast { x } => {
            let to = result_tile(kernel, op)?;
            let from = kernel.ty(*x);
            require(from.dtype() == Some(to.dtype), "keeps the element type")?;
            match from {
                Type::Scalar(_) => Ok(()),
                Type::Tile(f) => {
                    let grows = f.shape.iter().zip(&to.shape).all(|(a, b)| a == b || *a == 1);
                    require(f.shape.len() == to.shape.len() && grows, "repeats axes of length 1")
                }
                Type::Ref(_) => Err("wants a tile or a scalar".to_owned()),
            }
        }
        OpKind::Reshape { x } => {
            let (from, to) = (tile(kernel, *x)?, result_tile(kernel, op)?);
            require(from.dtype == to.dtype && from.len() == to.len(), "keeps the elements")
        }
        OpKind::Transpose { x, permutation } => {
            let (from, to) = (tile(kernel, *x)?, result_tile(kernel, op)?);
            let mut seen = permutation.clone();
            seen.sort_unstable();
            let is_permutation = seen.into_iter().eq(0..from.shape.len());
            require(is_permutation, "wants each axis once")?;
            let moved: Vec<_> = permutation.iter().map(|p| from.shape[*p]).collect();
            require(to.shape == moved && from.dtype == to.dtype, "yields the permuted shape")
        }
        OpKind::Concatenate { xs, axis } => {
            let to = result_tile(kernel, op)?;
            require(!xs.is_empty() && *axis < to.shape.len(), "joins tiles along one of their axes")?;
            let mut length = 0;
            for x in xs {
                let mut t = tile(kernel, *x)?.clone();
                require(t.shape.len() == to.shape.len(), "joins tiles of one rank")?;
                length += std::mem::replace(&mut t.shape[*axis], to.shape[*axis]);
                require(t == *to, "joins tiles that agree on the other axes")?;
            }
            require(length == to.shape[*axis], "yields the joined length")
        }
        OpKind::ExtractSlice { x, offsets } => {
            let (from, to) = (tile(kernel, *x)?, result_tile(kernel, op)?);
            let rank = from.shape.len();
            require(
                from.dtype == to.dtype && offsets.len() == rank && to.shape.len() == rank,
                "keeps the rank",
            )?;
            let inside =
                |i: usize| offsets[i].checked_add(to.shape[i]).is_some_and(|end| end <= from.shape[i]);
            require((0..rank).all(inside), "stays inside the tile")
        }
        OpKind::Roll { x, amount, axis } => {
            require(*kernel.ty(*amount) == Type::Scalar(DType::I32), "moves by an i32 scalar")?;
            require(*axis < tile(kernel, *x)?.shape.len(), "moves along an axis of the tile")?;
            require(kernel.ty(*x) == result(kernel, op), "keeps the type")
        }
        OpKind::Bitcast { x } => bitcast(kernel.ty(*x), result(kernel, op)),
        OpKind::Gather { x, index, axis } => {
            let (from, at, to) = (tile(kernel, *x)?, tile(kernel, *index)?, result_tile(kernel, op)?);
            require(from.dtype == to.dtype && at.dtype == DType::I32, "moves elements by i32 indices")?;
            require(at.shape == to.shape, "yields one element an index")?;
            let alike = |i: usize| i == *axis || from.shape[i] == to.shape[i];
            let fits = from.shape.len() == to.shape.len() && *axis < to.shape.len();
            require(fits && (0..to.shape.len()).all(alike), "moves along an axis of the tile")
        }
        OpKind::ArgReduce { x, axis, .. } => {
            let mut t = tile(kernel, *x)?.clone();
            require(*axis < t.shape.len(), "searches along an axis of the tile")?;
            require(t.dtype != DType::Bool, "does not order truth values")?;
            (t.shape[*axis], t.dtype) = (1, DType::I32);
            require(t == *result_tile(kernel, op)?, "leaves length 1, of i32")
        }
        OpKind::Reduce { x, axis, .. } => {
            let mut t = tile(kernel, *x)?.clone();
            require(*axis < t.shape.len(), "combines along an axis of the tile")?;
            require(t.dtype != DType::Bool, "does not combine truth values")?;
            t.shape[*axis] = 1;
            require(t == *result_tile(kernel, op)?, "leaves length 1")
        }
        OpKind::ToScalar { x } => {
            let t = tile(kernel, *x)?;
            require(t.len() == 1 && *result(kernel, op) == Type::Scalar(t.dtype), "takes the only element")
        }
        OpKind::Dot { lhs, rhs, dims, .. } => {
            let (a, b, to) = (tile(kernel, *lhs)?, tile(kernel, *rhs)?, result_tile(kernel, op)?);
            let matrices = a.shape.len() == 2 && b.shape.len() == 2 && dims.lhs < 2 && dims.rhs < 2;
            require(matrices, "takes two matrices")?;
            require(a.shape[dims.lhs] == b.shape[dims.rhs], "contracts axes of one length")?;
            let (m, n) = (a.shape[1 - dims.lhs], b.shape[1 - dims.rhs]);
            require(to.shape == [m, n], "yields the axes that are left")?;
            let kinds = [a.dtype, b.dtype, to.dtype];
            let alike = kinds.iter().all(|d| d.is_float()) || kinds.iter().all(|d| d.is_int());
            require(alike, "multiplies floats to floats or integers to integers")
        }
        _ => Ok(()),
    }
}

/// Same bits: element for element, or packed along the last axis but one.
fn bitcast(from: &Type, to: &Type) -> Result<(), String> {
    let packed = |wide: &TileType, narrow: &TileType| {
        let (rank, ratio) = (wide.shape.len(), wide.dtype.bits() / narrow.dtype.bits());
        let scaled = |i: usize| wide.shape[i].checked_mul(if i + 2 == rank { ratio } else { 1 });
        rank >= 2 && narrow.shape.len() == rank && (0..rank).all(|i| scaled(i) == Some(narrow.shape[i]))
    };
    let fits = match (from, to) {
        (Type::Scalar(a), Type::Scalar(b)) => a.bits() == b.bits(),
        (Type::Tile(a), Type::Tile(b)) if a.dtype.bits() == b.dtype.bits() => a.shape == b.shape,
        (Type::Tile(a), Type::Tile(b)) if a.dtype.bits() > b.dtype.bits() => packed(a, b),
        (Type::Tile(a), Type::Tile(b)) => packed(b, a),
        _ => false,
    };
    let numbers = from.dtype() != Some(DType::Bool) && to.dtype() != Some(DType::Bool);
    require(fits && numbers, "keeps the bits of numbers")
}

fn elementwise(ty: &Type) -> Result<(), String> {
    require(!matches!(ty, Type::Ref(_)), "works on tiles and scalars")
}

/// A tile or scalar type with another element type.
fn of_dtype(ty: &Type, dtype: DType) -> Type {
    match ty {
        Type::Tile(t) => Type::tile(dtype, t.shape.as_slice()),
        _ => Type::Scalar(dtype),
    }
}

fn literal_fits(l: Literal, dtype: Option<DType>) -> bool {
    match (l, dtype) {
        (Literal::Float(_), Some(d)) => d.is_float(),
        (Literal::Bool(_), Some(DType::Bool)) => true,
        (Literal::Int(n), Some(DType::I32)) => i32::try_from(n).is_ok(),
        (Literal::Int(n), Some(DType::I16)) => i16::try_from(n).is_ok(),
        (Literal::Int(n), Some(DType::I8)) => i8::try_from(n).is_ok(),
        (Literal::Int(n), Some(DType::I4)) => (-8..8).contains(&n),
        _ => false,
    }
}

fn unary_takes(op: Unary, d: DType) -> bool {
    match op {
        Unary::Neg | Unary::Abs => d != DType::Bool,
        Unary::LeadingZeros | Unary::PopCount => d.is_int(),
        Unary::Not => !d.is_float(),
        _ => d.is_float(),
    }
}

fn binary_takes(op: Binary, d: DType) -> bool {
    match op {
        Binary::And | Binary::Or | Binary::Xor => !d.is_float(),
        Binary::Shl | Binary::Shr | Binary::ShrUnsigned => d.is_int(),
        Binary::DivUnsigned | Binary::RemUnsigned => d.is_int(),
        Binary::MinUnsigned | Binary::MaxUnsigned => d.is_int(),
        Binary::MulHigh | Binary::MulHighUnsigned => d == DType::I32,
        Binary::Pow | Binary::Atan2 => d.is_float(),
        _ => d != DType::Bool,
    }
}

const fn is_unsigned(op: Compare) -> bool {
    matches!(op, Compare::LtUnsigned | Compare::LeUnsigned | Compare::GtUnsigned | Compare::GeUnsigned)
}
