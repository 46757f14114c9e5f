//! Constants of many elements: `dense<..>` and `array<..>`.

use super::super::floats;
use super::super::module::{Attribute, Type, TypeId};
use super::cursor::Cursor;
use super::fault::{Budget, Fallible, Fault};

/// What one element of a constant is.
enum Element<'t> {
    Integer(u32),
    Float(&'t str, u32),
}

impl Element<'_> {
    fn of(ty: &Type) -> Option<Element<'_>> {
        Some(match ty {
            Type::Index => Element::Integer(64),
            Type::Integer { bits, .. } => Element::Integer(*bits),
            Type::Float(name) => Element::Float(name, floats::bits(name)?),
            _ => return None,
        })
    }

    fn bits(&self) -> u32 {
        match self {
            Element::Integer(bits) | Element::Float(_, bits) => *bits,
        }
    }

    /// Bytes of an element in a file.
    fn bytes(&self) -> usize {
        self.bits().max(1).div_ceil(8) as usize
    }
}

/// Extends the sign of an integer of so many bits. A truth value is 0 or 1.
pub(super) fn extend(raw: u64, bits: u32) -> i64 {
    match bits {
        0 => 0,
        1 => (raw & 1) as i64,
        64.. => raw as i64,
        _ => (raw << (64 - bits)) as i64 >> (64 - bits),
    }
}

/// The bits of a little-endian element of eight bytes at most.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// `array<i32: 1, 2>`: the element type and the count were read, the elements follow.
pub(super) fn array(
    at: &mut Cursor<'_>,
    types: &[Type],
    element: TypeId,
    count: u64,
    budget: &mut Budget,
) -> Fallible<Attribute> {
    let start = at.at();
    let length = at.varint()?;
    let raw = at.bytes(length)?;
    let kind = Element::of(&types[element.0 as usize]).filter(|e| e.bytes() <= 8);
    let Some(kind) = kind else {
        return Err(Fault::unknown(start, "an array of such elements"));
    };
    if count.checked_mul(kind.bytes() as u64) != Some(length) {
        return Err(Fault::malformed(start, format!("an array of {count} elements has {length} bytes")));
    }
    let words = raw.chunks_exact(kind.bytes()).map(word);
    Ok(match kind {
        Element::Integer(bits) => {
            let mut values = budget.vec(start, count as usize)?;
            values.extend(words.map(|w| extend(w, bits)));
            Attribute::DenseArray { element, values }
        }
        Element::Float(name, _) => {
            let mut values = budget.vec(start, count as usize)?;
            values.extend(words.map(|w| floats::value(name, w).unwrap_or(f64::NAN)));
            Attribute::DenseFloats { element, values }
        }
    })
}

/// `dense<..>`: the type was read, the elements follow.
pub(super) fn elements(
    at: &mut Cursor<'_>,
    types: &[Type],
    ty: TypeId,
    budget: &mut Budget,
) -> Fallible<Attribute> {
    let start = at.at();
    let length = at.varint()?;
    let raw = at.bytes(length)?;
    let (count, element) = match &types[ty.0 as usize] {
        Type::Vector { shape, element } => (product(shape.iter().map(|n| Some(*n))), *element),
        Type::Tensor { shape, element } => (product(shape.iter().copied()), *element),
        _ => return Err(Fault::malformed(start, "a dense constant is of a type without a shape")),
    };
    let count = count.ok_or_else(|| Fault::malformed(start, "a dense constant has no known size"))?;
    let Some(kind) = Element::of(&types[element.0 as usize]) else {
        budget.take::<u8>(start, 16)?;
        return Ok(Attribute::Opaque("dense<..>".into()));
    };
    let (splat, data) = if kind.bits() == 1 {
        bits(start, raw, count, budget)?
    } else {
        let splat = raw.len() == kind.bytes() && count != 1;
        if !splat && count.checked_mul(kind.bytes()) != Some(raw.len()) {
            let message = format!("a constant of {count} elements has {} bytes", raw.len());
            return Err(Fault::malformed(start, message));
        }
        let mut data = budget.vec(start, raw.len())?;
        data.extend_from_slice(raw);
        (splat, data)
    };
    Ok(Attribute::Dense { ty, splat, data })
}

/// Truth values: eight in a byte, lowest bit first. One byte is a splat when it is all ones or zero, or when one byte is
/// too few for all elements.
fn bits(at: usize, raw: &[u8], count: usize, budget: &mut Budget) -> Fallible<(bool, Vec<u8>)> {
    match raw {
        [only] if count != 1 && (*only == 0 || *only == 0xff || count > 8) => {
            Ok((true, vec![u8::from(*only != 0)]))
        }
        _ if raw.len() == count.div_ceil(8) => {
            let mut data = budget.vec(at, count)?;
            data.extend((0..count).map(|i| raw[i / 8] >> (i % 8) & 1));
            Ok((false, data))
        }
        _ => Err(Fault::malformed(at, format!("a constant of {count} truth values has {} bytes", raw.len()))),
    }
}

/// The number of elements, when every length is known.
fn product(mut shape: impl Iterator<Item = Option<i64>>) -> Option<usize> {
    shape.try_fold(1usize, |n, length| n.checked_mul(usize::try_from(length?).ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::module::Signedness;
    use super::*;

    fn types(count: i64) -> Vec<Type> {
        let integer = |bits| Type::Integer { bits, signedness: Signedness::Signless };
        let vector = |element| Type::Vector { shape: vec![count], element: TypeId(element) };
        vec![integer(1), vector(0), integer(4), vector(2), Type::Float("bf16".into()), vector(4)]
    }

    fn dense(count: i64, ty: u32, raw: &[u8]) -> Fallible<Attribute> {
        let file = [&[(raw.len() << 1 | 1) as u8], raw].concat();
        elements(&mut Cursor::new(&file), &types(count), TypeId(ty), &mut Budget::of(100))
    }

    #[test]
    fn truth_values_are_packed() {
        let is = |count, raw: &[u8], splat, data: &[u8]| {
            let expected = Attribute::Dense { ty: TypeId(1), splat, data: data.to_vec() };
            assert_eq!(dense(count, 1, raw).unwrap(), expected, "{count} {raw:?}");
        };
        is(4, &[0xff], true, &[1]);
        is(4, &[0], true, &[0]);
        is(16, &[1], true, &[1]);
        is(1, &[0xff], false, &[1]);
        is(4, &[1], false, &[1, 0, 0, 0]);
        is(9, &[0xfd, 1], false, &[1, 0, 1, 1, 1, 1, 1, 1, 1]);
        assert!(dense(17, 1, &[0xfd, 1]).is_err());
    }

    #[test]
    fn other_elements_take_whole_bytes() {
        let splat = |a: Attribute| matches!(a, Attribute::Dense { splat: true, .. });
        assert!(!splat(dense(2, 3, &[1, 2]).unwrap()));
        assert!(splat(dense(2, 3, &[1]).unwrap()));
        assert!(splat(dense(2, 5, &[0x80, 0x3f]).unwrap()));
        assert!(dense(2, 5, &[0x80, 0x3f, 0]).is_err());
        assert!(dense(i64::MAX, 5, &[0x80, 0x3f, 0, 0]).is_err());
    }

    #[test]
    fn arrays_keep_signs() {
        let bf16: Arc<str> = "bf16".into();
        let types = [Type::Integer { bits: 8, signedness: Signedness::Signless }, Type::Float(bf16)];
        let one = |ty, count, raw: &[u8]| {
            let file = [&[(raw.len() << 1 | 1) as u8], raw].concat();
            array(&mut Cursor::new(&file), &types, TypeId(ty), count, &mut Budget::of(100))
        };
        assert_eq!(
            one(0, 2, &[0xff, 2]).unwrap(),
            Attribute::DenseArray { element: TypeId(0), values: vec![-1, 2] }
        );
        let floats = Attribute::DenseFloats { element: TypeId(1), values: vec![-1.0] };
        assert_eq!(one(1, 1, &[0x80, 0xbf]).unwrap(), floats);
        assert!(one(0, u64::MAX, &[1]).is_err());
    }
}
