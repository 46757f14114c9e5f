//! Semaphores: what a core counts, and waiting for it.
//!
//! A DMA semaphore counts the bytes of copies that have landed; a counting semaphore counts signals, and one for each
//! copy. Whoever waits lands what is on its way: first this core's own copies, in the order in which they were started,
//! then what other devices sent.

use crate::ir::{Elem, Span};

use super::core::Core;
use super::fault::{Checked, Fault};
use super::mesh::Waiting;
use super::plan::Slot;
use super::view::{Place, View};

/// One semaphore of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Semaphore {
    pub(super) place: Place,
    /// Which one of the parameter's.
    index: usize,
}

/// What the semaphores of a core count; those that are not listed are 0.
#[derive(Debug, Default)]
pub(super) struct Semaphores {
    counts: Vec<(Semaphore, i64)>,
}

impl Semaphores {
    fn count(&self, sem: Semaphore) -> i64 {
        self.counts.iter().find(|(s, _)| *s == sem).map_or(0, |(_, n)| *n)
    }

    /// Adds to what a semaphore counts.
    pub(super) fn add(&mut self, sem: Semaphore, amount: i64) {
        match self.counts.iter_mut().find(|(s, _)| *s == sem) {
            Some((_, n)) => *n = n.wrapping_add(amount),
            None => self.counts.push((sem, amount)),
        }
    }
}

impl Core<'_> {
    /// Which semaphore a ref means.
    pub(super) fn semaphore(&self, sem: Slot, span: Span) -> Checked<Semaphore> {
        let view = self.view(sem, span)?;
        match view.place {
            Place::Semaphores(_) | Place::Barrier if view.len() == 1 => {
                Ok(Semaphore { place: view.place, index: view.layout().offset })
            }
            _ => Err(Fault::refused(span, "not one semaphore")),
        }
    }

    /// True when a semaphore counts bytes.
    fn counts_bytes(&self, sem: Semaphore) -> bool {
        let param = sem.place.param().map(|p| self.call.kernel.params[p].value);
        param.is_some_and(|v| self.call.kernel.ref_ty(v).elem == Elem::DmaSemaphore)
    }

    /// By how much a copy into (or from) a view counts on a semaphore.
    pub(super) fn weight(&self, sem: Semaphore, view: &View, span: Span) -> Checked<i64> {
        if !self.counts_bytes(sem) {
            return Ok(1);
        }
        let dtype = self.dtype(view).ok_or_else(|| Fault::refused(span, "a copy of semaphores"))?;
        Ok((view.len() * dtype.bits() / 8) as i64)
    }

    /// Signals a semaphore of this core, or of another device or core.
    pub(super) fn signal(
        &mut self,
        sem: Slot,
        amount: Slot,
        member: [Option<Slot>; 2],
        span: Span,
    ) -> Checked<()> {
        let sem = self.semaphore(sem, span)?;
        let amount = self.index(amount, "the amount of a signal", span)?;
        self.signal_member(sem, amount, member, span)
    }

    /// Waits until a counting semaphore has reached an amount.
    pub(super) fn sem_wait(&mut self, sem: Slot, amount: Slot, span: Span) -> Checked<()> {
        let sem = self.semaphore(sem, span)?;
        let needed = self.index(amount, "the amount to wait for", span)?;
        self.wait_for(sem, needed, span, |core, count| {
            let name = core.name(sem.place);
            let message = format!("waits until `{name}` has reached {needed}, which never happens");
            Fault::new("K0402", span, message)
                .label("on a TPU this waits forever")
                .help("signal the semaphore as often as it is waited for")
                .note(format!("it counts {count}, and nothing is on its way"))
        })
    }

    /// Waits until a copy of a view's size has landed.
    pub(super) fn copy_wait(&mut self, dst: Slot, sem: Slot, span: Span) -> Checked<()> {
        let to = self.view(dst, span)?;
        let sem = self.semaphore(sem, span)?;
        let needed = self.weight(sem, &to, span)?;
        self.wait_for(sem, needed, span, |core, landed| {
            let message = format!("waits for a copy into `{}` that was never started", core.name(to.place));
            let fault = Fault::new("K0402", span, message).label("on a TPU this waits forever");
            let fault = fault.help("start a copy on the same semaphore, as often as it is waited for");
            if landed == 0 {
                return fault;
            }
            fault.note(format!("needs {needed} bytes; {landed} have landed and no copy is on its way"))
        })
    }

    /// What a semaphore counts now. Everything on its way to it lands first, as on a machine whose copies are fast.
    pub(super) fn sem_read(&mut self, sem: Slot, span: Span) -> Checked<i32> {
        let sem = self.semaphore(sem, span)?;
        while self.land_next(sem)? {}
        while let Some(message) = self.call.mesh.and_then(|e| e.poll(sem)) {
            self.accept(message)?;
        }
        Ok(self.semaphores.count(sem) as i32)
    }

    fn wait_for(
        &mut self,
        sem: Semaphore,
        needed: i64,
        span: Span,
        never: impl Fn(&Self, i64) -> Box<Fault>,
    ) -> Checked<()> {
        loop {
            let count = self.semaphores.count(sem);
            if count >= needed {
                self.semaphores.add(sem, -needed);
                return Ok(());
            }
            if self.land_next(sem)? {
                continue;
            }
            let Some(endpoint) = self.call.mesh else {
                return Err(never(self, count));
            };
            let waiting = Waiting {
                sem,
                name: self.name(sem.place).to_owned(),
                count,
                needed,
                span,
                step: self.step.clone(),
            };
            let message = endpoint.receive(waiting).ok_or_else(|| Fault::stopped(span))?;
            self.accept(message)?;
        }
    }

    /// Fails if a semaphore still counts something at the end.
    pub(super) fn all_counted(&self) -> Checked<()> {
        let Some((sem, n)) = self.semaphores.counts.iter().find(|(_, n)| *n != 0) else {
            return Ok(());
        };
        let kernel = self.call.kernel;
        let span = sem.place.param().map_or(kernel.span, |p| kernel.params[p].span);
        let (unit, help) = if self.counts_bytes(*sem) {
            (" bytes", "wait for as many bytes as were copied")
        } else {
            ("", "wait for as much as is signalled")
        };
        let message = format!("semaphore `{}` still counts {n}{unit} at the end", self.name(sem.place));
        Err(Fault::new("K0403", span, message).label("declared here").help(help))
    }
}
