//! A simulated mesh: one thread a device, each with its own memory; what devices send each other waits in mailboxes.
//!
//! A message is taken in when its receiver waits on (or reads) the semaphore that counts it, so that a kernel that
//! synchronises as it should has one result, however fast its threads are. Of several messages the one of the lowest
//! sender comes first, or any one when the order is shuffled. When every device waits and no mailbox holds what one of
//! them waits for, the mesh is in a deadlock, and all of them stop.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::diag::Diagnostic;
use crate::ir::{Kernel, Span};

use super::data::Data;
use super::dma::lock;
use super::grid::SplitMix;
use super::semaphore::Semaphore;
use super::view::View;

/// What one device does to another.
#[derive(Debug)]
pub(super) enum Effect {
    /// Adds to a semaphore.
    Signal(i64),
    /// Copies elements to a place.
    Copy { data: Data, dst: Box<View>, weight: i64 },
}

/// A message to a device.
#[derive(Debug)]
pub(super) struct Message {
    /// What counts it, on the receiver.
    pub(super) sem: Semaphore,
    pub(super) effect: Effect,
    pub(super) from: usize,
    pub(super) span: Span,
}

/// What a device waits for.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) sem: Semaphore,
    pub(super) name: String,
    pub(super) count: i64,
    pub(super) needed: i64,
    pub(super) span: Span,
    pub(super) step: Vec<i32>,
}

#[derive(Debug)]
enum Status {
    Running,
    Waiting(Waiting),
    Finished,
}

#[derive(Debug)]
struct Device {
    mailbox: Vec<Message>,
    status: Status,
}

#[derive(Debug)]
struct State {
    devices: Vec<Device>,
    /// Nobody waits any longer: a device has failed, or all of them wait.
    stopped: bool,
    deadlock: bool,
    /// The device that failed first.
    failed: Option<usize>,
    order: Option<SplitMix>,
}

/// The devices of a call.
#[derive(Debug)]
pub(super) struct Mesh {
    state: Mutex<State>,
    changed: Condvar,
}

/// A device of a mesh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    mesh: &'a Mesh,
    pub(super) id: usize,
}

impl Mesh {
    pub(super) fn new(devices: usize, shuffle: Option<u64>) -> Self {
        let device = || Device { mailbox: vec![], status: Status::Running };
        let state = State {
            devices: std::iter::repeat_with(device).take(devices).collect(),
            stopped: false,
            deadlock: false,
            failed: None,
            order: shuffle.map(SplitMix),
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) const fn endpoint(&self, id: usize) -> Endpoint<'_> {
        Endpoint { mesh: self, id }
    }

    /// The device that failed by itself, if one did.
    pub(super) fn failed(&self) -> Option<usize> {
        lock(&self.state).failed
    }

    /// What went wrong between the devices, if something did.
    pub(super) fn verdict(&self, kernel: &Kernel) -> Option<Diagnostic> {
        let state = lock(&self.state);
        if state.deadlock {
            return Some(state.deadlock(kernel));
        }
        let left = |(to, d): (usize, &Device)| Some((to, d.mailbox.first()?.from, d.mailbox.first()?.span));
        let (to, from, span) = state.devices.iter().enumerate().find_map(left)?;
        let message = format!("device {to} never waits for what device {from} sends it");
        Some(
            Diagnostic::error("K0403", message)
                .at(kernel.loc(span).clone(), "sent here")
                .note(format!("in kernel `{}`", kernel.name))
                .help("wait for it on the receiver, on the same semaphore, before the last grid step ends"),
        )
    }
}

impl State {
    /// Takes a message that counts on a semaphore.
    fn take(&mut self, id: usize, sem: Semaphore) -> Option<Message> {
        let mailbox = &mut self.devices[id].mailbox;
        let fitting = || mailbox.iter().enumerate().filter(|(_, m)| m.sem == sem);
        let at = match &mut self.order {
            None => fitting().min_by_key(|(_, m)| m.from).map(|(i, _)| i),
            Some(order) => {
                let n = fitting().count().max(1);
                fitting().nth(order.below(n as u64) as usize).map(|(i, _)| i)
            }
        };
        at.map(|i| mailbox.remove(i))
    }

    /// Notes a deadlock when nobody can go on and somebody wants to.
    fn check(&mut self) {
        let none = |f: fn(&Status) -> bool| !self.devices.iter().any(|d| f(&d.status));
        if none(|s| matches!(s, Status::Running)) && !none(|s| matches!(s, Status::Waiting(_))) {
            self.deadlock |= !self.stopped;
            self.stopped = true;
        }
    }

    fn deadlock(&self, kernel: &Kernel) -> Diagnostic {
        let mut d = Diagnostic::error("K0402", "the devices of the mesh wait for each other forever");
        for (id, device) in self.devices.iter().enumerate() {
            d = match &device.status {
                Status::Waiting(w) => {
                    let loc = kernel.loc(w.span);
                    if d.labels.iter().all(|l| l.loc != *loc) {
                        d = d.at(loc.clone(), format!("device {id} waits here"));
                    }
                    d.note(format!(
                        "device {id} waits at {loc}, grid step {:?}, until `{}` has reached {}; it counts {}",
                        w.step, w.name, w.needed, w.count
                    ))
                }
                _ => d.note(format!("device {id} has finished")),
            };
        }
        d.note(format!("in kernel `{}`", kernel.name))
            .help("each wait needs a signal or a copy that another device sends before it waits itself")
    }
}

impl<'a> Endpoint<'a> {
    /// How many devices there are.
    pub(super) fn devices(&self) -> usize {
        self.state().devices.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.mesh.state)
    }

    /// Sends a message to another device.
    pub(super) fn send(&self, to: usize, message: Message) {
        let mut state = self.state();
        let device = &mut state.devices[to];
        if matches!(&device.status, Status::Waiting(w) if w.sem == message.sem) {
            device.status = Status::Running;
        }
        device.mailbox.push(message);
        self.mesh.changed.notify_all();
    }

    /// Takes a message that counts on a semaphore, if one has come.
    pub(super) fn poll(&self, sem: Semaphore) -> Option<Message> {
        let message = self.state().take(self.id, sem);
        if message.is_none() {
            // Whoever reads a semaphore in a loop waits for another thread.
            std::thread::yield_now();
        }
        message
    }

    /// Waits for a message; `None` when the mesh has stopped.
    pub(super) fn receive(&self, waiting: Waiting) -> Option<Message> {
        let mut state = self.state();
        loop {
            if let Some(message) = state.take(self.id, waiting.sem) {
                state.devices[self.id].status = Status::Running;
                return Some(message);
            }
            state.devices[self.id].status = Status::Waiting(waiting.clone());
            state.check();
            if state.stopped {
                self.mesh.changed.notify_all();
                return None;
            }
            state = self.mesh.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// The end of a device's run, whichever way it comes.
    pub(super) const fn guard(self) -> Guard<'a> {
        Guard { device: self, failed: true }
    }

    fn end(&self, failed: bool) {
        let mut state = self.state();
        if !state.stopped {
            state.devices[self.id].status = Status::Finished;
            state.failed = failed.then_some(self.id);
        }
        state.stopped |= failed;
        state.check();
        self.mesh.changed.notify_all();
    }
}

/// Ends a device when it is dropped: nobody waits for a thread that is no more.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    device: Endpoint<'a>,
    failed: bool,
}

impl Guard<'_> {
    /// Notes how a device has ended.
    pub(super) fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.failed = result.is_err();
        result
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.device.end(self.failed);
    }
}
