//! A simulated mesh: one thread a member, each with its own memory; what members send each other waits in mailboxes.
//!
//! A member is a device, or one of its cores where a kernel names cores: those of a device share its arrays.
//!
//! A message is taken in when its receiver waits on (or reads) the semaphore that counts it, so that a kernel that
//! synchronises as it should has one result, however fast its threads are. Of several messages the one of the lowest
//! sender comes first, or any one when the order is shuffled. When every member waits and no mailbox holds what one of
//! them waits for, the mesh is in a deadlock, and all of them stop.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::diag::Diagnostic;
use crate::ir::{Kernel, Span};

use super::data::Data;
use super::dma::lock;
use super::grid::SplitMix;
use super::semaphore::Semaphore;
use super::view::View;

/// What one member does to another.
#[derive(Debug)]
pub(super) enum Effect {
    /// Adds to a semaphore.
    Signal(i64),
    /// Copies elements to a place.
    Copy { data: Data, dst: Box<View>, weight: i64 },
}

/// A message to a member.
#[derive(Debug)]
pub(super) struct Message {
    /// What counts it, on the receiver.
    pub(super) sem: Semaphore,
    pub(super) effect: Effect,
    pub(super) from: usize,
    pub(super) span: Span,
}

/// What a member waits for.
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
struct Member {
    mailbox: Vec<Message>,
    status: Status,
}

#[derive(Debug)]
struct State {
    members: Vec<Member>,
    /// Nobody waits any longer: a member has failed, or all of them wait.
    stopped: bool,
    deadlock: bool,
    /// The member that failed first.
    failed: Option<usize>,
    order: Option<SplitMix>,
}

/// The members of a call.
#[derive(Debug)]
pub(super) struct Mesh {
    devices: usize,
    /// Members of each device.
    cores: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// A member of a mesh: core `id % cores` of device `id / cores`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    mesh: &'a Mesh,
    pub(super) id: usize,
}

impl Mesh {
    /// A mesh of devices with `cores` members each, at least one.
    pub(super) fn new(devices: usize, cores: usize, shuffle: Option<u64>) -> Self {
        let member = || Member { mailbox: vec![], status: Status::Running };
        let state = State {
            members: std::iter::repeat_with(member).take(devices * cores).collect(),
            stopped: false,
            deadlock: false,
            failed: None,
            order: shuffle.map(SplitMix),
        };
        Self { devices, cores, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) const fn endpoint(&self, id: usize) -> Endpoint<'_> {
        Endpoint { mesh: self, id }
    }

    /// What a member is called.
    pub(super) fn name(&self, id: usize) -> String {
        let (device, core) = (id / self.cores, id % self.cores);
        match (self.devices, self.cores) {
            (_, 1) => format!("device {device}"),
            (1, _) => format!("core {core}"),
            _ => format!("core {core} of device {device}"),
        }
    }

    /// The member that failed by itself, if one did.
    pub(super) fn failed(&self) -> Option<usize> {
        lock(&self.state).failed
    }

    /// What went wrong between the members, if something did.
    pub(super) fn verdict(&self, kernel: &Kernel) -> Option<Diagnostic> {
        let state = lock(&self.state);
        if state.deadlock {
            return Some(self.deadlock(&state, kernel));
        }
        let left = |(to, d): (usize, &Member)| Some((to, d.mailbox.first()?.from, d.mailbox.first()?.span));
        let (to, from, span) = state.members.iter().enumerate().find_map(left)?;
        let message = format!("{} never waits for what {} sends it", self.name(to), self.name(from));
        Some(
            Diagnostic::error("K0403", message)
                .at(kernel.loc(span).clone(), "sent here")
                .note(format!("in kernel `{}`", kernel.name))
                .help("wait for it on the receiver, on the same semaphore, before the last grid step ends"),
        )
    }

    fn deadlock(&self, state: &State, kernel: &Kernel) -> Diagnostic {
        let members =
            if self.devices == 1 && self.cores > 1 { "the cores" } else { "the devices of the mesh" };
        let mut d = Diagnostic::error("K0402", format!("{members} wait for each other forever"));
        for (id, member) in state.members.iter().enumerate() {
            let name = self.name(id);
            d = match &member.status {
                Status::Waiting(w) => {
                    let loc = kernel.loc(w.span);
                    if d.labels.iter().all(|l| l.loc != *loc) {
                        d = d.at(loc.clone(), format!("{name} waits here"));
                    }
                    d.note(format!(
                        "{name} waits at {loc}, grid step {:?}, until `{}` has reached {}; it counts {}",
                        w.step, w.name, w.needed, w.count
                    ))
                }
                _ => d.note(format!("{name} has finished")),
            };
        }
        d.note(format!("in kernel `{}`", kernel.name))
            .help("each wait needs a signal or a copy that another one sends before it waits itself")
    }
}

impl State {
    /// Takes a message that counts on a semaphore.
    fn take(&mut self, id: usize, sem: Semaphore) -> Option<Message> {
        let mailbox = &mut self.members[id].mailbox;
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
        let none = |f: fn(&Status) -> bool| !self.members.iter().any(|d| f(&d.status));
        if none(|s| matches!(s, Status::Running)) && !none(|s| matches!(s, Status::Waiting(_))) {
            self.deadlock |= !self.stopped;
            self.stopped = true;
        }
    }
}

impl<'a> Endpoint<'a> {
    /// How many devices there are.
    pub(super) const fn devices(&self) -> usize {
        self.mesh.devices
    }

    /// How many members each device has.
    pub(super) const fn cores(&self) -> usize {
        self.mesh.cores
    }

    /// The device that this is one of.
    pub(super) const fn device(&self) -> usize {
        self.id / self.mesh.cores
    }

    /// Which core of its device it is.
    pub(super) const fn core(&self) -> usize {
        self.id % self.mesh.cores
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.mesh.state)
    }

    /// Sends a message to another member.
    pub(super) fn send(&self, to: usize, message: Message) {
        let mut state = self.state();
        let member = &mut state.members[to];
        if matches!(&member.status, Status::Waiting(w) if w.sem == message.sem) {
            member.status = Status::Running;
        }
        member.mailbox.push(message);
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
                state.members[self.id].status = Status::Running;
                return Some(message);
            }
            state.members[self.id].status = Status::Waiting(waiting.clone());
            state.check();
            if state.stopped {
                self.mesh.changed.notify_all();
                return None;
            }
            state = self.mesh.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// The end of a member's run, whichever way it comes.
    pub(super) const fn guard(self) -> Guard<'a> {
        Guard { member: self, failed: true }
    }

    fn end(&self, failed: bool) {
        let mut state = self.state();
        if !state.stopped {
            state.members[self.id].status = Status::Finished;
            state.failed = failed.then_some(self.id);
        }
        state.stopped |= failed;
        state.check();
        self.mesh.changed.notify_all();
    }
}

/// Ends a member when it is dropped: nobody waits for a thread that is no more.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    member: Endpoint<'a>,
    failed: bool,
}

impl Guard<'_> {
    /// Notes how a member has ended.
    pub(super) fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.failed = result.is_err();
        result
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.member.end(self.failed);
    }
}
