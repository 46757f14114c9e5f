//! Copies between memories: they start, and land when somebody waits for them; semaphores count them.
//!
//! A copy lands at the wait that needs it, not before. Copies on one semaphore land in the order in which they were
//! started. Until a copy has landed, its destination may not be touched and its source may not be written.

use std::collections::VecDeque;

use crate::ir::{DType, Span};

use super::core::{Argument, Core};
use super::data::{Data, Stored, each_data};
use super::fault::{Checked, Fault};
use super::layout::{self, Axes, row_major};
use super::plan::Slot;
use super::recast;
use super::semaphore::Semaphore;
use super::view::{Place, View};

/// A copy on its way.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) src: View,
    /// Where it lands; `None` for the sending half of a copy to a device.
    pub(super) dst: Option<View>,
    pub(super) sem: Semaphore,
    /// How much it counts there.
    pub(super) weight: i64,
    pub(super) span: Span,
}

/// The copies of a core.
#[derive(Debug, Default)]
pub(super) struct Dma {
    pub(super) flying: VecDeque<Transfer>,
}

impl Dma {
    /// True when no copy is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }
}

impl Core<'_> {
    /// Starts a copy.
    pub(super) fn copy_start(&mut self, src: Slot, dst: Slot, sem: Slot, span: Span) -> Checked<()> {
        let (from, to) = self.ends(src, dst, span)?;
        let sem = self.semaphore(sem, span)?;
        self.fly(from, to, sem, span)
    }

    /// Puts a copy on its way.
    pub(super) fn fly(&mut self, src: View, dst: View, sem: Semaphore, span: Span) -> Checked<()> {
        self.may_read(&src, span)?;
        self.may_write(&dst, span)?;
        let weight = self.weight(sem, &dst, span)?;
        self.dma.flying.push_back(Transfer { src, dst: Some(dst), sem, weight, span });
        Ok(())
    }

    /// The two ends of a copy, which must have one shape.
    pub(super) fn ends(&self, src: Slot, dst: Slot, span: Span) -> Checked<(View, View)> {
        let (from, to) = (self.view(src, span)?, self.view(dst, span)?);
        if from.shape() != to.shape() {
            let message = format!(
                "a copy of {:?} from `{}` into {:?} of `{}`",
                &*from.shape(),
                self.name(from.place),
                &*to.shape(),
                self.name(to.place),
            );
            return Err(Fault::new("K0401", span, message).label("the shapes differ in this step"));
        }
        if !matches!(to.place, Place::Local(_) | Place::Output(_)) {
            let message = format!("`{}` cannot be copied to", self.name(to.place));
            return Err(Fault::refused(span, message));
        }
        Ok((from, to))
    }

    /// Lands the oldest copy that counts on a semaphore; false when there is none.
    pub(super) fn land_next(&mut self, sem: Semaphore) -> Checked<bool> {
        let next = self.dma.flying.iter().position(|t| t.sem == sem);
        let Some(t) = next.and_then(|i| self.dma.flying.remove(i)) else {
            return Ok(false);
        };
        if let Some(dst) = &t.dst {
            self.land(&t.src, dst, t.span)?;
        }
        self.semaphores.add(sem, t.weight);
        Ok(true)
    }

    /// The element type of a ref; none for semaphores.
    pub(super) fn dtype(&self, view: &View) -> Option<DType> {
        let param = view.place.param().map(|p| self.call.kernel.params[p].value);
        view.cast.map(|c| c.dtype).or_else(|| self.call.kernel.ty(param?).dtype())
    }

    /// Moves the elements.
    fn land(&mut self, src: &View, dst: &View, span: Span) -> Checked<()> {
        let seen = self.seen(src, dst);
        let outputs = |v: &View| matches!(v.place, Place::Output(_));
        // Never lend one memory twice, and never hold two locks: copy by way of a buffer.
        if src.place == dst.place || src.cast.is_some() || outputs(src) && outputs(dst) {
            let buffer = self.snapshot(src, span)?;
            return self.deliver(&buffer, &dense(&src.shape()), dst, seen.as_deref(), span);
        }
        if let Place::Local(p) = src.place {
            let from = std::mem::take(&mut self.local[p].data);
            let done = self.deliver(&from, src, dst, seen.as_deref(), span);
            self.local[p].data = from;
            return done;
        }
        match self.argument(src.place) {
            Argument::Input(a) => self.deliver(a.data(), src, dst, seen.as_deref(), span),
            Argument::Output { data, .. } => {
                let from = lock(data);
                self.deliver(&from, src, dst, seen.as_deref(), span)
            }
            Argument::None | Argument::Alias { .. } => Err(Fault::refused(span, "a copy from nowhere")),
        }
    }

    /// The elements of a ref, row-major; undefined where it reaches past its array.
    pub(super) fn snapshot(&self, src: &View, span: Span) -> Checked<Data> {
        let dtype = self.dtype(src).ok_or_else(|| Fault::refused(span, "a copy of semaphores"))?;
        let read = |from: &Data| {
            let inside = src.clipped().unwrap_or(*src);
            if src.cast.is_some() && inside == *src {
                return Ok(recast::from_bits(dtype, &src.read_bits(from, &[], &src.shape())));
            }
            let mut buffer = Data::poison(dtype, src.len());
            transfer(from, src, &mut buffer, &dense(&src.shape()), span)?;
            Ok(buffer)
        };
        match (src.place, self.argument(src.place)) {
            (Place::Local(p), _) => read(&self.local[p].data),
            (Place::Input(_), Argument::Input(a)) => read(a.data()),
            (Place::Output(_), Argument::Output { data, .. }) => read(&lock(data)),
            _ => Err(Fault::refused(span, "a copy from nowhere")),
        }
    }

    /// Writes elements that lie elsewhere into a ref. `seen` says which of them were ever written.
    pub(super) fn deliver(
        &mut self,
        from: &Data,
        src: &View,
        dst: &View,
        seen: Option<&[bool]>,
        span: Span,
    ) -> Checked<()> {
        match (dst.place, self.argument(dst.place)) {
            (Place::Local(p), _) => {
                let memory = &mut self.local[p];
                transfer(from, src, &mut memory.data, dst, span)?;
                if let Some(written) = &mut memory.written {
                    let inside = dst.cut(&src.clipped().unwrap_or(*src).shape());
                    for (i, at) in inside.positions().into_iter().enumerate() {
                        written[at] = seen.is_none_or(|s| s.get(i) == Some(&true));
                    }
                }
                Ok(())
            }
            (Place::Output(_), Argument::Output { data, .. }) => {
                transfer(from, src, &mut lock(data), dst, span)
            }
            _ => Err(Fault::refused(span, "a copy to an input")),
        }
    }

    /// Scalar memory knows which elements were written: a copy carries that along.
    fn seen(&self, src: &View, dst: &View) -> Option<Vec<bool>> {
        let (Place::Local(from), Place::Local(to)) = (src.place, dst.place) else { return None };
        self.local[to].written.as_ref()?;
        let written = self.local[from].written.as_ref()?;
        Some(src.positions().into_iter().map(|at| written[at]).collect())
    }

    /// Fails if a copy is still writing what is about to be read.
    pub(super) fn may_read(&self, view: &View, span: Span) -> Checked<()> {
        let into = |t: &&Transfer| t.dst.is_some_and(|dst| dst.overlaps(view));
        match self.dma.flying.iter().find(into) {
            Some(t) => Err(self.race(t, "read", "into", span)),
            None => Ok(()),
        }
    }

    /// Fails if a copy is still using what is about to be written.
    pub(super) fn may_write(&self, view: &View, span: Span) -> Checked<()> {
        let into = |t: &&Transfer| t.dst.is_some_and(|dst| dst.overlaps(view));
        if let Some(t) = self.dma.flying.iter().find(into) {
            return Err(self.race(t, "written", "into", span));
        }
        match self.dma.flying.iter().find(|t| t.src.overlaps(view)) {
            Some(t) => Err(self.race(t, "written", "from", span)),
            None => Ok(()),
        }
    }

    fn race(&self, t: &Transfer, what: &str, way: &str, span: Span) -> Box<Fault> {
        let place = t.dst.filter(|_| way == "into").unwrap_or(t.src).place;
        let name = self.name(place);
        let message = format!("`{name}` is {what} while a copy {way} it is on its way");
        let started = self.call.kernel.loc(t.span);
        Fault::new("K0408", span, message)
            .label(format!("{what} here"))
            .note(format!("the copy was started at {started}"))
            .help("wait for the copy first")
    }

    /// Fails if a copy that was started never ended.
    pub(super) fn all_landed(&self) -> Checked<()> {
        let Some(t) = self.dma.flying.front() else { return Ok(()) };
        let (way, end) = t.dst.map_or(("from", t.src), |dst| ("into", dst));
        let message = format!("the copy {way} `{}` is never waited for", self.name(end.place));
        Err(Fault::new("K0403", t.span, message)
            .label("started here")
            .help("wait for it, on the same semaphore, before the last grid step ends"))
    }
}

pub(super) fn lock<T>(data: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A core that failed leaves whole elements behind: the data is usable, and the call fails anyway.
    data.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A dense buffer of this shape.
pub(super) fn dense(shape: &[usize]) -> View {
    View::frame(Place::Barrier, 0, shape, row_major(shape))
}

/// A layout of this shape that repeats one element.
fn repeated(l: &layout::Layout) -> layout::Layout {
    layout::Layout { offset: 0, shape: l.shape, strides: l.shape.iter().map(|_| 0).collect() }
}

/// Copies what is inside both arrays; the rest of the destination is undefined afterwards. `src` has the elements of
/// memory.
fn transfer(from: &Data, src: &View, to: &mut Data, dst: &View, span: Span) -> Checked<()> {
    fn run<T: Stored>(from: &[T], src: &View, to: &mut Data, dst: &View) -> Option<()> {
        let room = dst.clipped().unwrap_or(*dst);
        let shape = src.clipped().unwrap_or(*src).shape();
        let inside: Axes = shape.iter().zip(room.shape().iter()).map(|(a, b)| *a.min(b)).collect();
        let poison = src.clipped().is_some();
        if dst.cast.is_some() {
            if poison {
                let shape = room.shape();
                let bits = vec![T::POISON.bits(); room.len()];
                room.write_bits(to, &[], &shape, &bits, None);
            }
            let mut bits = vec![0; inside.iter().product()];
            layout::gather(from, &src.cut(&inside).layout(), 0, &mut bits, T::bits);
            dst.cut(&inside).write_bits(to, &[], &inside, &bits, None);
            return Some(());
        }
        let to = T::elements_of_mut(to)?;
        if poison {
            let l = room.layout();
            layout::copy(&[T::POISON], &repeated(&l), to, &l, |x| x);
        }
        layout::copy(from, &src.cut(&inside).layout(), to, &dst.cut(&inside).layout(), |x| x);
        Some(())
    }
    each_data!(from, v => run(v, src, to, dst))
        .ok_or_else(|| Fault::refused(span, "a copy between element types"))
}
