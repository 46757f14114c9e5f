//! The MLIR types and attributes that say what the IR's types say.

use melior::Context;
use melior::ir::attribute::{
    ArrayAttribute, BoolAttribute, DenseElementsAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
    FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
};
use melior::ir::r#type::{FunctionType, IntegerType, MemRefType};
use melior::ir::{Attribute, Type};

use crate::ir::{DType, Elem, Extent, MemorySpace, RefType};
use crate::mosaic::SMEM_ELEMENTS;

/// MLIR's `kDynamic`: a length that is known only when the kernel runs.
const DYNAMIC: i64 = i64::MIN;

/// Element of a register.
pub(super) fn register(context: &Context, dtype: DType) -> Type<'_> {
    match dtype {
        DType::F32 => Type::float32(context),
        DType::Bf16 => Type::bfloat16(context),
        DType::I32 | DType::I16 | DType::I8 => integer(
            context,
            match dtype {
                DType::I32 => 32,
                DType::I16 => 16,
                _ => 8,
            },
        ),
        DType::I4 => integer(context, 4),
        DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E4M3B11Fnuz => {
            // MLIR has them all.
            parse_type(context, dtype.mlir()).unwrap_or_else(|| Type::none(context))
        }
        DType::Bool => integer(context, 1),
    }
}

/// The type of a scalar register: the scalar unit computes in 32 bits, so narrow numbers live there widened.
pub(super) const fn scalar(dtype: DType) -> DType {
    match dtype {
        DType::F32 | DType::Bf16 => DType::F32,
        DType::I32 | DType::I16 | DType::I8 => DType::I32,
        other => other,
    }
}

/// Element as it lies in memory: a `bool` is an `i32` there.
pub(super) fn memory(context: &Context, dtype: DType) -> Type<'_> {
    register(
        context,
        match dtype {
            DType::Bool => DType::I32,
            other => other,
        },
    )
}

pub(super) fn integer(context: &Context, bits: u32) -> Type<'_> {
    IntegerType::new(context, bits).into()
}

/// A vector, or the element itself when there is no shape.
pub(super) fn vector<'c>(shape: Option<&[usize]>, element: Type<'c>) -> Type<'c> {
    match shape {
        None => element,
        Some(shape) => {
            let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
            Type::vector(&shape, element)
        }
    }
}

/// A ref. A symbolic length is `?` in main memory, where strides come from the operand.
pub(super) fn memref<'c>(context: &'c Context, ty: &RefType) -> Option<Type<'c>> {
    let element = match ty.elem {
        Elem::Data(dtype) => memory(context, dtype),
        Elem::DmaSemaphore => parse_type(context, "!tpu.dma_semaphore")?,
        Elem::Semaphore => parse_type(context, "!tpu.semaphore")?,
    };
    let unknown = match ty.space {
        MemorySpace::Smem => SMEM_ELEMENTS as i64,
        _ => DYNAMIC,
    };
    let shape: Option<Vec<i64>> = ty
        .shape
        .iter()
        .map(|extent| match extent {
            Extent::Static(n) => i64::try_from(*n).ok(),
            Extent::Dynamic => Some(unknown),
        })
        .collect();
    let space = parse(context, &format!("#tpu.memory_space<{}>", ty.space.mosaic()))?;
    Some(MemRefType::new(element, &shape?, None, Some(space)).into())
}

/// An attribute from its text.
pub(super) fn parse<'c>(context: &'c Context, text: &str) -> Option<Attribute<'c>> {
    Attribute::parse(context, text)
}

fn parse_type<'c>(context: &'c Context, text: &str) -> Option<Type<'c>> {
    Type::parse(context, text)
}

pub(super) fn int<'c>(ty: Type<'c>, value: i64) -> Attribute<'c> {
    IntegerAttribute::new(ty, value).into()
}

pub(super) fn i32(context: &Context, value: i64) -> Attribute<'_> {
    int(integer(context, 32), value)
}

pub(super) fn i64(context: &Context, value: i64) -> Attribute<'_> {
    int(integer(context, 64), value)
}

pub(super) fn boolean(context: &Context, value: bool) -> Attribute<'_> {
    BoolAttribute::new(context, value).into()
}

pub(super) fn string<'c>(context: &'c Context, value: &str) -> Attribute<'c> {
    StringAttribute::new(context, value).into()
}

/// `array<i32: ..>`
pub(super) fn i32s<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
    DenseI32ArrayAttribute::new(context, values).into()
}

/// `array<i64: ..>`
pub(super) fn i64s<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// `[0, 8]`: an array of `i64` attributes.
pub(super) fn list<'c>(context: &'c Context, values: impl IntoIterator<Item = usize>) -> Attribute<'c> {
    let values: Vec<_> =
        values.into_iter().map(|n| i64(context, i64::try_from(n).unwrap_or(i64::MAX))).collect();
    array(context, &values)
}

pub(super) fn array<'c>(context: &'c Context, values: &[Attribute<'c>]) -> Attribute<'c> {
    ArrayAttribute::new(context, values).into()
}

pub(super) fn function<'c>(context: &'c Context, inputs: &[Type<'c>], results: &[Type<'c>]) -> Attribute<'c> {
    TypeAttribute::new(FunctionType::new(context, inputs, results).into()).into()
}

/// A constant of one element, which is rounded to `dtype` and has type `ty`.
pub(super) fn number<'c>(context: &'c Context, dtype: DType, ty: Type<'c>, value: Number) -> Attribute<'c> {
    let unused = if dtype == DType::Bool { 0 } else { 64 - dtype.bits() };
    match value {
        Number::Float(x) if dtype == DType::Bf16 => {
            FloatAttribute::new(context, ty, half::bf16::from_f64(x).to_f64()).into()
        }
        Number::Float(x) => FloatAttribute::new(context, ty, x).into(),
        Number::Int(n) => int(ty, n << unused >> unused),
    }
}

/// The value of a constant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// Of a floating-point type.
    Float(f64),
    /// Of an integer type; a `bool` is 0 or 1.
    Int(i64),
}

/// The same element everywhere.
pub(super) fn splat<'c>(vector: Type<'c>, element: Attribute<'c>) -> Attribute<'c> {
    DenseElementsAttribute::splat(vector, element).into()
}
