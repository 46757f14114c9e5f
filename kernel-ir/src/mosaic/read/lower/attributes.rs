//! Attributes of the operation at hand, in any of the spellings that versions of the stable form have used.

use super::Fallible;
use super::scope::Lower;
use crate::mosaic::read::module::{Attribute, Operation};

/// More entries than this in a list are refused: lists go by axes and operands.
const LONGEST: usize = 4096;

impl<'m> Lower<'m> {
    fn misspelt(&self, name: &str, kind: &str) -> crate::diag::Diagnostic {
        self.malformed(format!("has a `{name}` that is not {kind}"))
    }

    /// An integer.
    pub(super) fn int(&self, op: &Operation, name: &str) -> Fallible<Option<i64>> {
        match self.module.attribute(op, name) {
            None => Ok(None),
            Some(Attribute::Integer { value, .. }) => Ok(Some(*value)),
            Some(_) => Err(self.misspelt(name, "an integer")),
        }
    }

    /// An integer that must be there.
    pub(super) fn required_int(&self, op: &Operation, name: &str) -> Fallible<i64> {
        self.int(op, name)?.ok_or_else(|| self.malformed(format!("has no `{name}`")))
    }

    /// A number of an axis, or another small number that is not negative.
    pub(super) fn axis(&self, op: &Operation, name: &str) -> Fallible<usize> {
        let axis = self.required_int(op, name)?;
        usize::try_from(axis).map_err(|_| self.malformed(format!("has a `{name}` of {axis}")))
    }

    /// A truth value: false when it is not there.
    pub(super) fn flag(&self, op: &Operation, name: &str) -> Fallible<bool> {
        match self.module.attribute(op, name) {
            None => Ok(false),
            Some(Attribute::Integer { value, .. }) => Ok(*value != 0),
            Some(Attribute::Unit) => Ok(true),
            Some(_) => Err(self.misspelt(name, "a truth value")),
        }
    }

    /// A text.
    pub(super) fn text(&self, op: &Operation, name: &str) -> Option<&'m str> {
        match self.module.attribute(op, name)? {
            Attribute::String(s) | Attribute::Symbol(s) => Some(s),
            _ => None,
        }
    }

    /// A list of integers: `array<i64: ..>`, or `[..]` as old versions have it.
    pub(super) fn ints(&self, op: &Operation, name: &str) -> Fallible<Option<Vec<i64>>> {
        let Some(attribute) = self.module.attribute(op, name) else { return Ok(None) };
        match self.list(attribute) {
            Some(values) if values.len() <= LONGEST => Ok(Some(values)),
            _ => Err(self.misspelt(name, "a list of integers")),
        }
    }

    /// The integers of a list.
    pub(super) fn list(&self, attribute: &Attribute) -> Option<Vec<i64>> {
        match attribute {
            Attribute::DenseArray { values, .. } => Some(values.clone()),
            Attribute::Array(items) => {
                let int = |id: &_| match self.module.attr(*id) {
                    Attribute::Integer { value, .. } => Some(*value),
                    _ => None,
                };
                items.iter().map(int).collect()
            }
            _ => None,
        }
    }

    /// A list of axes, or other small numbers that are not negative.
    pub(super) fn axes(&self, op: &Operation, name: &str) -> Fallible<Option<Vec<usize>>> {
        let Some(values) = self.ints(op, name)? else { return Ok(None) };
        let axes: Result<_, _> = values.into_iter().map(usize::try_from).collect();
        axes.map(Some).map_err(|_| self.misspelt(name, "a list of axes"))
    }

    /// What stands between the brackets of an attribute of another dialect: `fp32` of `#tpu.contract_precision<fp32>`.
    pub(super) fn word(&self, op: &Operation, name: &str) -> Fallible<Option<&'m str>> {
        match self.module.attribute(op, name) {
            None => Ok(None),
            Some(Attribute::Opaque(text)) => Ok(Some(between(text))),
            Some(_) => Err(self.misspelt(name, "an attribute that is understood")),
        }
    }

    /// How many operands each group of operands has, filled up with groups of none for an older version that lacked
    /// the last ones; `None` if the operation does not say.
    pub(super) fn segments(&self, op: &Operation, groups: usize) -> Fallible<Option<Vec<usize>>> {
        let Some(mut sizes) = self.axes(op, "operandSegmentSizes")? else { return Ok(None) };
        let total = sizes.iter().try_fold(0_usize, |n, s| n.checked_add(*s));
        if total != Some(op.operands.len()) || sizes.len() > groups {
            return Err(self.malformed("has another number of operands than its `operandSegmentSizes` say"));
        }
        sizes.resize(groups, 0);
        Ok(Some(sizes))
    }
}

/// What stands between the first `<` and the last `>` of a text; the text itself if there are none.
pub(super) fn between(text: &str) -> &str {
    match (text.find('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => text[open + 1..close].trim(),
        _ => text.trim(),
    }
}

/// The lists of a text of bracketed lists of numbers: `[1], [0, 1], []`.
pub(super) fn bracketed(text: &str) -> Option<Vec<Vec<usize>>> {
    let mut lists = vec![];
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let close = open + rest[open..].find(']')?;
        let numbers = rest[open + 1..close].split(',').map(str::trim).filter(|n| !n.is_empty());
        lists.push(numbers.map(|n| n.parse().ok()).collect::<Option<Vec<usize>>>()?);
        rest = &rest[close + 1..];
    }
    Some(lists)
}
