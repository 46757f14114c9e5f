//! Copies between memories: they start, and land when somebody waits for them; semaphores count their bytes.
//!
//! A copy lands at the wait that needs its bytes, not before. Copies on one semaphore land in the order in which they
//! were started. Until a copy has landed, its destination may not be touched and its source may not be written.

use std::collections::VecDeque;

use crate::ir::Span;

use super::core::{Argument, Core};
use super::data::{Data, Stored, each_data};
use super::fault::{Checked, Fault};
use super::layout;
use super::plan::Slot;
use super::view::{Place, View};

/// A copy on its way.
#[derive(Clone, Debug)]
struct Transfer {
    src: View,
    dst: View,
    /// Which semaphore of which parameter.
    sem: (usize, usize),
    bytes: usize,
    span: Span,
}

/// The copies of a core.
#[derive(Debug, Default)]
pub(super) struct Dma {
    flying: VecDeque<Transfer>,
    /// Bytes that landed and were not waited for, by semaphore.
    landed: Vec<((usize, usize), usize)>,
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
        if matches!(to.place, Place::Input(_) | Place::Semaphores(_)) {
            let message = format!("`{}` cannot be copied to", self.name(to.place));
            return Err(Fault::refused(span, message));
        }
        self.may_read(&from, span)?;
        self.may_write(&to, span)?;
        let transfer = Transfer {
            src: from,
            dst: to,
            sem: self.semaphore(sem, span)?,
            bytes: self.bytes(&to, span)?,
            span,
        };
        self.dma.flying.push_back(transfer);
        Ok(())
    }

    /// Waits until a copy of the destination's size has landed.
    pub(super) fn copy_wait(&mut self, dst: Slot, sem: Slot, span: Span) -> Checked<()> {
        let to = self.view(dst, span)?;
        let (sem, needed) = (self.semaphore(sem, span)?, self.bytes(&to, span)?);
        loop {
            let entry = self.dma.landed.iter_mut().find(|(s, _)| *s == sem);
            let landed = entry.as_ref().map_or(0, |(_, n)| *n);
            if landed >= needed {
                if let Some((_, n)) = entry {
                    *n -= needed;
                }
                return Ok(());
            }
            let Some(i) = self.dma.flying.iter().position(|t| t.sem == sem) else {
                return Err(self.deadlock(&to, needed, landed, span));
            };
            if let Some(t) = self.dma.flying.remove(i) {
                self.land(&t)?;
                match self.dma.landed.iter_mut().find(|(s, _)| *s == sem) {
                    Some((_, n)) => *n += t.bytes,
                    None => self.dma.landed.push((sem, t.bytes)),
                }
            }
        }
    }

    fn deadlock(&self, to: &View, needed: usize, landed: usize, span: Span) -> Box<Fault> {
        let message = format!("waits for a copy into `{}` that was never started", self.name(to.place));
        let fault = Fault::new("K0402", span, message).label("on a TPU this waits forever");
        let fault = fault.help("start a copy on the same semaphore, as often as it is waited for");
        if landed == 0 {
            return fault;
        }
        fault.note(format!("needs {needed} bytes; {landed} have landed and no copy is on its way"))
    }

    /// Which semaphore a ref means.
    fn semaphore(&self, sem: Slot, span: Span) -> Checked<(usize, usize)> {
        let view = self.view(sem, span)?;
        match view.place {
            Place::Semaphores(p) if view.len() == 1 => Ok((p, view.layout().offset)),
            _ => Err(Fault::refused(span, "not one semaphore")),
        }
    }

    fn bytes(&self, view: &View, span: Span) -> Checked<usize> {
        let param = &self.call.kernel.params[view.place.param()];
        let dtype = self.call.kernel.ty(param.value).dtype();
        let dtype = dtype.ok_or_else(|| Fault::refused(span, "a copy of semaphores"))?;
        Ok(view.len() * dtype.bytes())
    }

    /// Moves the bytes.
    fn land(&mut self, t: &Transfer) -> Checked<()> {
        // What lies past an array's edge is not read and not written.
        let shape = t.src.clipped().unwrap_or(t.src).shape();
        let room = t.dst.clipped().unwrap_or(t.dst).shape();
        let inside: layout::Axes = shape.iter().zip(room.iter()).map(|(a, b)| *a.min(b)).collect();
        let (src, dst) = (t.src.cut(&inside), t.dst.cut(&inside));
        match t.dst.place {
            Place::Local(d) => {
                let mut target = std::mem::take(&mut self.local[d]);
                let done = if t.src.place == t.dst.place {
                    let copy = target.data.clone();
                    transfer(&copy, &src, &mut target.data, &dst, t)
                } else {
                    self.with_source(t, |from| transfer(from, &src, &mut target.data, &dst, t))
                };
                if let Some(written) = &mut target.written {
                    self.mark_written(t.src.place, &src, written, &dst);
                }
                self.local[d] = target;
                done
            }
            Place::Output(d) => match (&self.call.arguments[d], t.src.place) {
                (Argument::Output { data, .. }, Place::Output(_)) => {
                    // Never hold two locks: take a copy of the source first.
                    let mut copy = Data::default();
                    self.with_source(t, |from| {
                        copy = from.clone();
                        Ok(())
                    })?;
                    transfer(&copy, &src, &mut lock(data), &dst, t)
                }
                (Argument::Output { data, .. }, _) => {
                    self.with_source(t, |from| transfer(from, &src, &mut lock(data), &dst, t))
                }
                _ => Err(Fault::refused(t.span, "a copy to nowhere")),
            },
            _ => Err(Fault::refused(t.span, "a copy to an input")),
        }
    }

    /// Calls `f` with the storage that a copy reads.
    fn with_source(&self, t: &Transfer, f: impl FnOnce(&Data) -> Checked<()>) -> Checked<()> {
        match (t.src.place, &self.call.arguments[t.src.place.param()]) {
            (Place::Local(p), _) => f(&self.local[p].data),
            (Place::Input(_), Argument::Input(a)) => f(a.data()),
            (Place::Output(_), Argument::Output { data, .. }) => f(&lock(data)),
            _ => Err(Fault::refused(t.span, "a copy from nowhere")),
        }
    }

    /// Scalar memory knows which elements were written: a copy carries that along.
    fn mark_written(&self, from: Place, src: &View, written: &mut [bool], dst: &View) {
        let to = dst.layout();
        let seen = match from {
            Place::Local(p) => self.local[p].written.as_ref(),
            _ => None,
        };
        match seen {
            Some(seen) => layout::copy(seen, &src.layout(), written, &to, |x| x),
            None => layout::copy(&[true], &repeated(&to), written, &to, |x| x),
        }
    }

    /// Fails if a copy is still writing what is about to be read.
    pub(super) fn may_read(&self, view: &View, span: Span) -> Checked<()> {
        let Some(t) = self.dma.flying.iter().find(|t| t.dst.overlaps(view)) else {
            return Ok(());
        };
        Err(self.race(t, "read", "into", span))
    }

    /// Fails if a copy is still using what is about to be written.
    pub(super) fn may_write(&self, view: &View, span: Span) -> Checked<()> {
        if let Some(t) = self.dma.flying.iter().find(|t| t.dst.overlaps(view)) {
            return Err(self.race(t, "written", "into", span));
        }
        match self.dma.flying.iter().find(|t| t.src.overlaps(view)) {
            Some(t) => Err(self.race(t, "written", "from", span)),
            None => Ok(()),
        }
    }

    fn race(&self, t: &Transfer, what: &str, way: &str, span: Span) -> Box<Fault> {
        let place = if way == "into" { t.dst.place } else { t.src.place };
        let name = self.name(place);
        let message = format!("`{name}` is {what} while a copy {way} it is on its way");
        let started = self.call.kernel.loc(t.span);
        Fault::new("K0408", span, message)
            .label(format!("{what} here"))
            .note(format!("the copy was started at {started}"))
            .help("wait for the copy first")
    }

    /// Fails if something that was started never ended.
    pub(super) fn all_landed(&self) -> Checked<()> {
        if let Some(t) = self.dma.flying.front() {
            let message = format!("the copy into `{}` is never waited for", self.name(t.dst.place));
            return Err(Fault::new("K0403", t.span, message)
                .label("started here")
                .help("wait for it, on the same semaphore, before the last grid step ends"));
        }
        if let Some(((param, _), bytes)) = self.dma.landed.iter().find(|(_, n)| *n > 0) {
            let p = &self.call.kernel.params[*param];
            let message = format!("semaphore `{}` still counts {bytes} bytes at the end", p.name);
            return Err(Fault::new("K0403", p.span, message)
                .label("declared here")
                .help("wait for as many bytes as were copied"));
        }
        Ok(())
    }
}

pub(super) fn lock<T>(data: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A core that failed leaves whole elements behind: the data is usable, and the call fails anyway.
    data.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A layout of this shape that repeats one element.
fn repeated(l: &layout::Layout) -> layout::Layout {
    layout::Layout { offset: 0, shape: l.shape, strides: l.shape.iter().map(|_| 0).collect() }
}

/// Copies what is inside both arrays; the rest of the destination is undefined afterwards.
fn transfer(from: &Data, src: &View, to: &mut Data, dst: &View, t: &Transfer) -> Checked<()> {
    fn run<T: Stored>(from: &[T], src: &View, to: &mut Data, dst: &View, t: &Transfer) -> Option<()> {
        let to = T::elements_of_mut(to)?;
        if let (Some(_), all) = (t.src.clipped(), t.dst.clipped().unwrap_or(t.dst)) {
            let l = all.layout();
            layout::copy(&[T::POISON], &repeated(&l), to, &l, |x| x);
        }
        layout::copy(from, &src.layout(), to, &dst.layout(), |x| x);
        Some(())
    }
    each_data!(from, v => run(v, src, to, dst, t))
        .ok_or_else(|| Fault::refused(t.span, "a copy between element types"))
}
