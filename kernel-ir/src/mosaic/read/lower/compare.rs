//! Comparisons: MLIR's predicates in terms of the IR's, which are ordered.

use super::Fallible;
use super::dispatch::integer_predicate;
use super::scope::{Known, Lower};
use crate::ir::{Binary, Compare, DType, Literal, Unary, Value};
use crate::mosaic::read::module::Operation;

impl Lower<'_> {
    /// `arith.cmpi`
    pub(super) fn compare_ints(&mut self, op: &Operation) -> Fallible<()> {
        let [x, y] = self.operands(op)?;
        let number = self.required_int(op, "predicate")?;
        let compare = integer_predicate(number)
            .ok_or_else(|| self.malformed(format!("has a `predicate` of {number}")))?;
        // Pallas asks of a truth value, as a number, whether it differs from zero.
        if compare == Compare::Ne
            && self.constant_of(y) == Some(Literal::Int(0))
            && let Some(truth) = self.truth(x)
        {
            let v = self.result(op)?;
            self.set(v, Known::Value(truth));
            return Ok(());
        }
        let (x, y) = (self.get(x)?, self.get(y)?);
        let z = match self.dtype(x)? {
            DType::Bool => self.compare_bits(compare, x, y)?,
            _ => {
                self.takes(x, false)?;
                self.compare(compare, x, y)?
            }
        };
        self.done(op, z)
    }

    /// Compares single bits, which are 0 and 1, or 0 and -1 to a signed comparison.
    fn compare_bits(&mut self, op: Compare, x: Value, y: Value) -> Fallible<Value> {
        let op = match op {
            Compare::Eq | Compare::Ne => return self.compare(op, x, y),
            Compare::Lt | Compare::GtUnsigned => Compare::Gt,
            Compare::Le | Compare::GeUnsigned => Compare::Ge,
            Compare::Gt | Compare::LtUnsigned => Compare::Lt,
            Compare::Ge | Compare::LeUnsigned => Compare::Le,
        };
        let (x, y) = (self.cast(x, DType::I32)?, self.cast(y, DType::I32)?);
        self.compare(op, x, y)
    }

    /// `arith.cmpf`: unordered predicates are the negation of the opposite ordered ones.
    pub(super) fn compare_floats(&mut self, op: &Operation) -> Fallible<()> {
        let [x, y] = self.operands(op)?;
        let (x, y) = (self.get(x)?, self.get(y)?);
        self.takes(x, true)?;
        let z = match self.required_int(op, "predicate")? {
            1 => self.compare(Compare::Eq, x, y)?,
            2 => self.compare(Compare::Gt, x, y)?,
            3 => self.compare(Compare::Ge, x, y)?,
            4 => self.compare(Compare::Lt, x, y)?,
            5 => self.compare(Compare::Le, x, y)?,
            6 => self.less_or_greater(x, y)?,
            7 => self.ordered(x, y)?,
            8 => {
                let differs = self.less_or_greater(x, y)?;
                self.unary(Unary::Not, differs)?
            }
            9 => self.not(Compare::Le, x, y)?,
            10 => self.not(Compare::Lt, x, y)?,
            11 => self.not(Compare::Ge, x, y)?,
            12 => self.not(Compare::Gt, x, y)?,
            13 => self.compare(Compare::Ne, x, y)?,
            14 => {
                let ordered = self.ordered(x, y)?;
                self.unary(Unary::Not, ordered)?
            }
            number => return Err(self.unsupported(format!("has a `predicate` of {number}"))),
        };
        self.done(op, z)
    }

    fn not(&mut self, op: Compare, x: Value, y: Value) -> Fallible<Value> {
        let z = self.compare(op, x, y)?;
        self.unary(Unary::Not, z)
    }

    /// Whether two floats differ and neither is NaN.
    fn less_or_greater(&mut self, x: Value, y: Value) -> Fallible<Value> {
        let (less, greater) = (self.compare(Compare::Lt, x, y)?, self.compare(Compare::Gt, x, y)?);
        self.binary(Binary::Or, less, greater)
    }

    /// Whether neither of two floats is NaN.
    fn ordered(&mut self, x: Value, y: Value) -> Fallible<Value> {
        let (a, b) = (self.compare(Compare::Eq, x, x)?, self.compare(Compare::Eq, y, y)?);
        self.binary(Binary::And, a, b)
    }
}
