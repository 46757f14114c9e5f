//! Rotations, whose amount may differ from row to row.

use super::Fallible;
use super::scope::Lower;
use crate::ir::{Binary, Value};
use crate::mosaic::read::module::Operation;

impl Lower<'_> {
    /// `tpu.dynamic_rotate`: by a scalar.
    pub(super) fn dynamic_rotate(&mut self, op: &Operation) -> Fallible<()> {
        let [x, amount] = self.operands(op)?;
        let (x, amount) = (self.get(x)?, self.get(amount)?);
        self.rotate(op, x, amount)
    }

    /// `tpu.rotate`: by a number.
    pub(super) fn static_rotate(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        let amount = self.required_int(op, "amount")?;
        let amount = i32::try_from(amount).map_err(|_| self.malformed("has an `amount` of many bits"))?;
        let amount = self.i32(amount.into())?;
        self.rotate(op, x, amount)
    }

    fn rotate(&mut self, op: &Operation, x: Value, amount: Value) -> Fallible<()> {
        let axis = self.axis(op, "dimension")?;
        let stride = self.int(op, "stride")?;
        let n = i64::try_from(self.length(x, axis)?).unwrap_or(i64::MAX);
        let amount = self.any_amount(amount, n);
        let y = match stride {
            None | Some(0) => self.roll(x, amount, axis)?,
            Some(stride) => {
                let along = self.axis(op, "stride_dimension")?;
                self.rotate_strided(x, amount, axis, stride, along)?
            }
        };
        self.done(op, y)
    }

    /// What an amount was before it was made one from 0 to below `n`, which only Mosaic needs: `((a rem n) + n) rem n`.
    fn any_amount(&self, amount: Value, n: i64) -> Value {
        let before = || {
            let up = self.before(amount, Binary::Rem, n)?;
            let rest = self.before(up, Binary::Add, n)?;
            self.before(rest, Binary::Rem, n)
        };
        before().unwrap_or(amount)
    }

    /// Row `j` of axis `along` moves by `amount + j * stride`: each element is taken from where it comes from.
    fn rotate_strided(
        &mut self,
        x: Value,
        amount: Value,
        axis: usize,
        stride: i64,
        along: usize,
    ) -> Fallible<Value> {
        let t = self.tile(x)?;
        let n = i64::try_from(self.length(x, axis)?).unwrap_or(i64::MAX);
        let rows = i64::try_from(self.length(x, along)?).unwrap_or(i64::MAX);
        let small = |n: i64| i32::try_from(n).is_ok();
        if stride < 0 || axis == along || !stride.checked_mul(rows).is_some_and(small) || !small(n) {
            return Err(self.unsupported(format!("has a `stride` of {stride} along axis {along}")));
        }
        let amount = self.broadcast(amount, t.shape.clone())?;
        let row = self.positions(&t.shape, along)?;
        let moved = self.binary_with(Binary::Mul, row, stride)?;
        let moved = self.binary(Binary::Add, moved, amount)?;
        let at = self.positions(&t.shape, axis)?;
        let from = self.binary(Binary::Sub, at, moved)?;
        // Never negative.
        let from = self.binary_with(Binary::Rem, from, n)?;
        let from = self.binary_with(Binary::Add, from, n)?;
        let from = self.binary_with(Binary::Rem, from, n)?;
        self.gather(x, from, axis)
    }
}
