//! Ops of the scalar core, run from the IR as it stands: arithmetic, scalar memory, views of refs, copies.

use crate::ir::{Offset, OpKind, Size, Span, Type, Value};

use super::core::{Argument, Core};
use super::data::{Data, Stored, each_data};
use super::fault::{Checked, Fault};
use super::fused::division_by_zero;
use super::layout::MAX_RANK;
use super::plan::Slot;
use super::scalar::{Number, Scalar};
use super::view::{Place, View};

impl Core<'_> {
    /// Runs an op on scalars or refs.
    pub(super) fn plain(&mut self, kind: &OpKind, to: Option<Slot>, span: Span) -> Checked<()> {
        match kind {
            OpKind::CopyStart { src, dst, sem } => {
                return self.copy_start(at(*src), at(*dst), at(*sem), span);
            }
            OpKind::CopyWait { dst, sem, .. } => return self.copy_wait(at(*dst), at(*sem), span),
            OpKind::StoreScalar { base, offsets, value } => {
                return self.store_scalar(at(*base), offsets, at(*value), span);
            }
            _ => {}
        }
        let to = to.ok_or_else(|| Fault::refused(span, "an op without a result"))?;
        match kind {
            OpKind::Slice { base, offsets, sizes } => {
                let view = self.slice(*base, offsets, sizes, span)?;
                self.views[to] = Some(view);
            }
            OpKind::Squeeze { base, axes } => {
                self.views[to] = Some(self.view(at(*base), span)?.squeeze(axes, span)?);
            }
            OpKind::LoadScalar { base, offsets } => {
                self.scalars[to] = self.load_scalar(at(*base), offsets, span)?;
            }
            _ => self.scalars[to] = self.arithmetic(kind, to, span)?,
        }
        Ok(())
    }

    fn arithmetic(&self, kind: &OpKind, to: Slot, span: Span) -> Checked<Scalar> {
        let get = |v: &Value| self.scalars[at(*v)];
        let ty = &self.call.kernel.values[to].ty;
        let (Type::Scalar(dtype), refused) = (ty, || Fault::refused(span, format!("{kind:?}"))) else {
            return Err(Fault::refused(span, format!("{kind:?} makes no {ty}")));
        };
        Ok(match kind {
            OpKind::Unary { op, x } => get(x).unary(*op, *dtype),
            OpKind::Binary { op, x, y } => {
                get(x).binary(*op, get(y), *dtype).ok_or_else(refused)?.map_err(|_| division_by_zero(span))?
            }
            OpKind::Compare { op, x, y } => get(x).compare(*op, get(y)).ok_or_else(refused)?,
            OpKind::Select { mask, x, y } => {
                let mask = get(mask);
                let Number::Bool(first) = mask.number else {
                    return Err(refused());
                };
                let mut chosen = if first { get(x) } else { get(y) };
                chosen.poison |= mask.poison;
                chosen
            }
            OpKind::Cast { x } => get(x).cast(*dtype),
            OpKind::AssumeMultiple { x, multiple } => {
                let n = self.index(at(*x), "a promised multiple", span)?;
                if *multiple == 0 || n % (*multiple as i64) != 0 {
                    let message = format!("{n} is not a multiple of {multiple}, as promised");
                    return Err(Fault::new("K0401", span, message).label("promised here"));
                }
                get(x)
            }
            _ => return Err(refused()),
        })
    }

    fn slice(&self, base: Value, offsets: &[Offset], sizes: &[Size], span: Span) -> Checked<View> {
        let view = self.view(at(base), span)?;
        let offsets = offsets.iter().map(|o| match o {
            Offset::Const(n) => Ok(*n as i64),
            Offset::Value(v) => self.index(at(*v), "an offset", span),
        });
        let sizes = sizes.iter().map(|s| match s {
            Size::Const(n) => Ok(*n as i64),
            Size::Value(v) => self.index(at(*v), "a size", span),
        });
        let (offsets, sizes) = (offsets.collect::<Checked<Vec<_>>>()?, sizes.collect::<Checked<Vec<_>>>()?);
        view.slice(&offsets, &sizes, span)
            .map_err(|f| f.note(format!("the ref is `{}`", self.name(view.place))))
    }

    /// The place and position of one element of a ref. Scalar loops spend their time here: nothing is allocated.
    fn element(&self, base: Slot, offsets: &[Offset], write: bool, span: Span) -> Checked<(Place, usize)> {
        let view = self.views[base]
            .as_ref()
            .ok_or_else(|| Fault::refused(span, "a ref is used before it is made"))?;
        let mut at = [0; MAX_RANK];
        for (at, o) in at.iter_mut().zip(offsets) {
            *at = match o {
                Offset::Const(n) => *n as i64,
                Offset::Value(v) => self.index(v.0 as usize, "an offset", span)?,
            };
        }
        let at = &at[..offsets.len().min(MAX_RANK)];
        if !self.dma.is_idle() {
            let one = view.slice(at, &[1; MAX_RANK][..at.len()], span)?;
            if write {
                self.may_write(&one, span)?;
            } else {
                self.may_read(&one, span)?;
            }
        }
        match view.position(at) {
            Some(i) if !view.hbm => Ok((view.place, i)),
            _ => {
                let slice = view.slice(at, &[1; MAX_RANK][..at.len()], span);
                let fault =
                    slice.err().unwrap_or_else(|| Fault::refused(span, "a scalar that is not in SMEM"));
                Err(fault.note(format!("the ref is `{}`", self.name(view.place))))
            }
        }
    }

    fn load_scalar(&self, base: Slot, offsets: &[Offset], span: Span) -> Checked<Scalar> {
        fn read<T: Stored>(v: &[T], i: usize) -> Number
        where
            Number: From<T::Lane>,
        {
            v[i].lane().into()
        }
        let (place, i) = self.element(base, offsets, false, span)?;
        let (data, written) = match (place, &self.call.arguments[place.param()]) {
            (Place::Local(p), _) => (&self.local[p].data, self.local[p].written.as_ref()),
            (Place::Input(_), Argument::Input(a)) => (a.data(), None),
            _ => {
                let message = format!("`{}` is not in SMEM", self.name(place));
                return Err(Fault::refused(span, message));
            }
        };
        Ok(Scalar { number: each_data!(data, v => read(v, i)), poison: written.is_some_and(|w| !w[i]) })
    }

    fn store_scalar(&mut self, base: Slot, offsets: &[Offset], value: Slot, span: Span) -> Checked<()> {
        let (place, i) = self.element(base, offsets, true, span)?;
        let value = self.scalars[value];
        let Place::Local(p) = place else {
            let message = format!("`{}` cannot be stored to", self.name(place));
            return Err(Fault::refused(span, message));
        };
        let memory = &mut self.local[p];
        match (&mut memory.data, value.number) {
            (Data::F32(v), Number::Float(x)) => v[i] = x,
            (Data::Bf16(v), Number::Float(x)) => v[i] = Stored::of(x),
            (Data::I32(v), Number::Int(x)) => v[i] = x,
            (Data::I16(v), Number::Int(x)) => v[i] = Stored::of(x),
            (Data::I8(v), Number::Int(x)) => v[i] = Stored::of(x),
            (Data::Bool(v), Number::Bool(x)) => v[i] = x,
            _ => return Err(super::core::mismatch(span)),
        }
        if let Some(written) = &mut memory.written {
            written[i] = !value.poison;
        }
        Ok(())
    }
}

impl From<f32> for Number {
    fn from(x: f32) -> Self {
        Self::Float(x)
    }
}

impl From<i32> for Number {
    fn from(x: i32) -> Self {
        Self::Int(x)
    }
}

impl From<bool> for Number {
    fn from(x: bool) -> Self {
        Self::Bool(x)
    }
}

const fn at(v: Value) -> Slot {
    v.0 as usize
}
