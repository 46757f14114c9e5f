//! Ops of the scalar core, run from the IR as it stands: arithmetic, scalar memory, views of refs, copies.

use crate::ir::{DType, MemorySpace, Offset, OpKind, Size, Span, Type, Value};

use super::core::Core;
use super::data::{Stored, each_data};
use super::fault::{Checked, Fault};
use super::fused::division_by_zero;
use super::layout::{Axes, MAX_RANK};
use super::plan::Slot;
use super::random::Philox;
use super::recast;
use super::remote::RemoteCopy;
use super::scalar::{Number, Scalar};
use super::tile::Lane;
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
            OpKind::CopyStartRemote { src, sent, dst, received, device } => {
                let [src, sent, dst, received, device] = [src, sent, dst, received, device].map(|v| at(*v));
                return self.copy_start_remote(RemoteCopy { src, sent, dst, received, device }, span);
            }
            OpKind::SemSignal { sem, amount, device, core } => {
                return self.signal(at(*sem), at(*amount), [device.map(at), core.map(at)], span);
            }
            OpKind::SemWait { sem, amount } => return self.sem_wait(at(*sem), at(*amount), span),
            OpKind::PrngSeed { seeds } => return self.seed(seeds, span),
            OpKind::Assert { cond, message } => {
                if self.flag(at(*cond), "an assertion", span)? {
                    return Ok(());
                }
                return Err(Fault::new("K0412", span, format!("assertion failed: {message}"))
                    .label("does not hold in this step"));
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
            OpKind::ReshapeRef { base } => {
                let shape = self.call.kernel.values[to].ty.clone();
                let Type::Ref(ty) = shape else { return Err(Fault::refused(span, "a reshape to no ref")) };
                let shape = ty.static_shape().ok_or_else(|| Fault::refused(span, "a reshape to no shape"))?;
                self.views[to] = Some(self.view(at(*base), span)?.reshape(&shape, span)?);
            }
            OpKind::BitcastRef { base } => {
                let view = self.view(at(*base), span)?;
                let dtypes = self.dtype(&view).zip(self.call.kernel.values[to].ty.dtype());
                let (from, into) = dtypes.ok_or_else(|| Fault::refused(span, "a bitcast of semaphores"))?;
                self.views[to] = Some(view.bitcast(from, into, span)?);
            }
            OpKind::BarrierSemaphore => {
                self.views[to] = Some(View::whole(Place::Barrier, MemorySpace::Semaphore, &[]));
            }
            OpKind::SemRead { sem } => self.scalars[to] = Scalar::int(self.sem_read(at(*sem), span)?),
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
            OpKind::CastUnsigned { x } => get(x).cast_unsigned(self.scalar_type(*x, span)?, *dtype),
            OpKind::Bitcast { x } => get(x).bitcast(self.scalar_type(*x, span)?, *dtype),
            OpKind::DeviceId => Scalar::int(self.device_id()),
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

    fn scalar_type(&self, v: Value, span: Span) -> Checked<DType> {
        self.call.kernel.ty(v).dtype().ok_or_else(|| Fault::refused(span, "a scalar of no type"))
    }

    fn seed(&mut self, seeds: &[Value], span: Span) -> Checked<()> {
        let seeds = seeds.iter().map(|s| Ok(self.index(at(*s), "a seed", span)? as i32));
        self.random = Philox::seeded(&seeds.collect::<Checked<Vec<_>>>()?);
        Ok(())
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

    /// Where one element of a ref is. Scalar loops spend their time here: nothing is allocated.
    fn element(&self, base: Slot, offsets: &[Offset], write: bool, span: Span) -> Checked<Element<'_>> {
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
        if !view.hbm {
            if let Some(position) = view.position(at) {
                return Ok(Element::Plain(view.place, position));
            }
            if let (Some(cast), Some(index)) = (view.cast, view.index(at)) {
                return Ok(Element::Cast(view, cast.dtype, index));
            }
        }
        let slice = view.slice(at, &[1; MAX_RANK][..at.len()], span);
        let fault = slice.err().unwrap_or_else(|| Fault::refused(span, "a scalar that is not in SMEM"));
        Err(fault.note(format!("the ref is `{}`", self.name(view.place))))
    }

    fn load_scalar(&self, base: Slot, offsets: &[Offset], span: Span) -> Checked<Scalar> {
        fn read<T: Stored>(v: &[T], i: usize) -> Number
        where
            Number: From<T::Lane>,
        {
            v[i].lane().into()
        }
        let element = self.element(base, offsets, false, span)?;
        let data = self.memory(element.place(), span)?;
        let written = match element.place() {
            Place::Local(p) => self.local[p].written.as_ref(),
            _ => None,
        };
        Ok(match element {
            Element::Plain(_, i) => {
                let poison = written.is_some_and(|w| !w[i]);
                Scalar { number: each_data!(data, v => read(v, i)), poison }
            }
            Element::Cast(view, dtype, index) => {
                let bits = recast::from_bits(dtype, &[view.bits_at(data, &index)]);
                let poison = written.is_some_and(|w| view.positions_at(&index).any(|i| !w[i]));
                Scalar { number: each_data!(&bits, v => read(v, 0)), poison }
            }
        })
    }

    fn store_scalar(&mut self, base: Slot, offsets: &[Offset], value: Slot, span: Span) -> Checked<()> {
        let element = self.element(base, offsets, true, span)?;
        let Place::Local(p) = element.place() else {
            let message = format!("`{}` cannot be stored to", self.name(element.place()));
            return Err(Fault::refused(span, message));
        };
        let value = self.scalars[value];
        match element {
            Element::Plain(_, i) => {
                let memory = &mut self.local[p];
                let done = each_data!(&mut memory.data, v => put(v, i, value.number));
                done.ok_or_else(|| super::core::mismatch(span))?;
                if let Some(written) = &mut memory.written {
                    written[i] = !value.poison;
                }
            }
            Element::Cast(view, dtype, index) => {
                let view = *view;
                let memory = &mut self.local[p];
                view.set_bits_at(&mut memory.data, &index, value.bits(dtype));
                if let Some(written) = &mut memory.written {
                    view.positions_at(&index).for_each(|i| written[i] = !value.poison);
                }
            }
        }
        Ok(())
    }
}

/// One element of a ref.
enum Element<'v> {
    /// At a position in memory.
    Plain(Place, usize),
    /// Of another type than those of memory, at these indices of the ref's frame.
    Cast(&'v View, DType, Axes),
}

impl Element<'_> {
    fn place(&self) -> Place {
        match self {
            Self::Plain(place, _) => *place,
            Self::Cast(view, ..) => view.place,
        }
    }
}

fn put<T: Stored>(v: &mut [T], i: usize, x: Number) -> Option<()> {
    v[i] = T::of(T::Lane::of_number(x)?);
    Some(())
}

const fn at(v: Value) -> Slot {
    v.0 as usize
}
