//! K0203, K0204, K0205: copies pair with waits, and what is in flight is left alone.

use std::collections::BTreeMap;

use super::Found;
use super::ints::IntFact;
use super::views::{Length, Origin, View};
use crate::diag::Diagnostic;
use crate::ir::{Block, Kernel, Op, OpKind, Span, Value};

/// Starts and waits on one semaphore, or on all of one parameter if a slot is chosen by a traced index.
#[derive(Default)]
struct Traffic {
    starts: Vec<Event>,
    waits: Vec<Event>,
}

#[derive(Clone, Copy)]
struct Event {
    span: Span,
    /// Position in program order.
    at: usize,
    /// Runs exactly once in every grid step.
    always: bool,
}

/// A semaphore: the parameter, and the slot if all uses of the parameter have a known one.
type Key = (usize, Option<Vec<usize>>);

pub(super) fn check(kernel: &Kernel, views: &[Option<View>], ints: &[IntFact], found: &mut Found) {
    let mut c = Copies { kernel, views, ints, events: vec![], found };
    c.block(&kernel.body, true);
    let events = std::mem::take(&mut c.events);
    pair(kernel, &events, found);
}

struct Copies<'k> {
    kernel: &'k Kernel,
    views: &'k [Option<View>],
    ints: &'k [IntFact],
    /// Every start (true) and wait (false), with its semaphore.
    events: Vec<(Key, bool, Event)>,
    found: &'k mut Found,
}

/// A copy on its way in a straight line of operations.
struct Flight<'k> {
    src: &'k View,
    dst: &'k View,
    sem: &'k View,
    span: Span,
}

impl<'k> Copies<'k> {
    fn view(&self, v: Value) -> Option<&'k View> {
        self.views[v.0 as usize].as_ref()
    }

    fn block(&mut self, b: &Block, always: bool) {
        let mut flying: Vec<Flight<'k>> = vec![];
        for op in &b.ops {
            self.touches(op, &flying);
            match &op.kind {
                OpKind::CopyStart { src, dst, sem } => {
                    self.event(*sem, true, op.span, always);
                    if let (Some(src), Some(dst), Some(sem)) =
                        (self.view(*src), self.view(*dst), self.view(*sem))
                    {
                        flying.push(Flight { src, dst, sem, span: op.span });
                    }
                }
                OpKind::CopyWait { sem, .. } => {
                    self.event(*sem, false, op.span, always);
                    if let Some(sem) = self.view(*sem) {
                        // Whether it is this copy's wait may depend on a traced slot: assume so.
                        flying.retain(|f| f.sem.param != sem.param);
                    }
                }
                _ => {}
            }
            for inner in op.kind.blocks() {
                self.block(inner, false);
                let mut waited = vec![];
                self.waits_in(inner, &mut waited);
                flying.retain(|f| !waited.contains(&f.sem.param));
            }
        }
    }

    fn waits_in(&self, b: &Block, waited: &mut Vec<usize>) {
        for op in &b.ops {
            if let OpKind::CopyWait { sem, .. } = &op.kind {
                waited.extend(self.view(*sem).map(|v| v.param));
            }
            for inner in op.kind.blocks() {
                self.waits_in(inner, waited);
            }
        }
    }

    fn event(&mut self, sem: Value, start: bool, span: Span, always: bool) {
        let Some(view) = self.view(sem) else { return };
        let slot = view.axes.iter().map(|a| match a.origin {
            Origin::Number(n) => Some(n),
            _ => None,
        });
        let event = Event { span, at: self.events.len(), always };
        self.events.push(((view.param, slot.collect()), start, event));
    }

    /// K0205: a load or store that surely meets a copy under way.
    fn touches(&mut self, op: &Op, flying: &[Flight<'k>]) {
        let (base, offsets, stores) = match &op.kind {
            OpKind::Load { base, offsets } => (base, offsets, false),
            OpKind::Store { base, offsets, .. } => (base, offsets, true),
            _ => return,
        };
        let Some(view) = self.view(*base) else { return };
        let shape = match &op.kind {
            OpKind::Store { value, .. } => self.kernel.ty(*value).shape(),
            _ => op.results.first().and_then(|v| self.kernel.ty(*v).shape()),
        };
        let sizes = Length::of_tile(shape.unwrap_or_default());
        let touched = view.access(offsets, &sizes, self.ints);
        for f in flying {
            if touched.surely_meets(f.dst) || (stores && touched.surely_meets(f.src)) {
                let name = &self.kernel.params[view.param].name;
                let what = if stores { "stored to" } else { "loaded" };
                let message = format!("`{name}` is {what} while a copy of it is under way");
                let d = Diagnostic::error("K0205", message)
                    .at(self.kernel.loc(op.span).clone(), format!("{what} here"))
                    .at(self.kernel.loc(f.span).clone(), "the copy starts here");
                self.found.push(d.help("call `.wait()` on the copy first"));
            }
        }
    }
}

/// K0203, K0204: what is left when starts and waits are paired.
fn pair(kernel: &Kernel, events: &[(Key, bool, Event)], found: &mut Found) {
    let mut traffic: BTreeMap<Key, Traffic> = BTreeMap::new();
    for ((param, slot), start, event) in events {
        let known = events.iter().all(|((p, s), ..)| p != param || s.is_some());
        let t = traffic.entry((*param, slot.clone().filter(|_| known))).or_default();
        if *start { &mut t.starts } else { &mut t.waits }.push(*event);
    }
    for ((param, slot), t) in traffic {
        let name = &kernel.params[param].name;
        let sem = match slot.as_deref() {
            Some([n]) => format!("slot {n} of `{name}`"),
            _ => format!("`{name}`"),
        };
        let counted = t.starts.iter().chain(&t.waits).all(|e| e.always);
        let unwaited = match t.starts.last() {
            Some(e) if t.waits.is_empty() || (counted && t.starts.len() > t.waits.len()) => Some(e),
            _ => None,
        };
        if let Some(e) = unwaited {
            let d = Diagnostic::error("K0203", format!("a copy that {sem} counts is never waited for"));
            let d = d.at(kernel.loc(e.span).clone(), "started here");
            found.push(d.help("keep the copy and call `.wait()` on it before its data is used"));
        }
        // The n-th wait needs n starts before it; a start in an earlier grid step would need its own condition.
        let early = |(i, w): &(usize, &Event)| t.starts.iter().filter(|s| s.at < w.at).count() <= *i;
        let unstarted = match t.waits.first() {
            Some(e) if t.starts.is_empty() => Some(e),
            _ if counted => t.waits.iter().enumerate().find(early).map(|(_, w)| w),
            _ => None,
        };
        if let Some(e) = unstarted {
            let d = Diagnostic::error("K0204", format!("a wait on {sem} for a copy that was not started"));
            let d = d.at(kernel.loc(e.span).clone(), "never returns");
            found.push(d.help("call `.start()` on the copy before"));
        }
    }
}
