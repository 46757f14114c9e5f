//! Lifetimes of tiles: after which step a buffer can be given back, and where a value can be moved instead of copied.

use std::collections::HashSet;

use super::{Action, Code, Passed, Slot};

/// Fills in `release` and `last` of a block and the blocks inside. `args` are slots that the block owns from the start.
pub(super) fn assign(code: &mut Code, args: &[Slot]) {
    let mut owned: HashSet<Slot> = args.iter().copied().collect();
    for step in &code.steps {
        written(&step.action, &mut |s| {
            owned.insert(s);
        });
    }
    let mut seen = HashSet::new();
    hand_over(&mut code.results, |slot, seen| owned.contains(&slot) && !seen.contains(&slot), &mut seen);
    for step in code.steps.iter_mut().rev() {
        let mut inner = HashSet::new();
        inside(&step.action, &mut |s| {
            inner.insert(s);
        });
        let may_move = |slot: Slot, seen: &HashSet<Slot>| {
            owned.contains(&slot) && !seen.contains(&slot) && !inner.contains(&slot)
        };
        match &mut step.action {
            Action::If { then, otherwise, .. } => {
                assign(then, &[]);
                assign(otherwise, &[]);
            }
            Action::For { init, args, body, .. } => {
                assign(body, args);
                hand_over(init, may_move, &mut seen);
            }
            Action::While { init, cond, body, body_args, .. } => {
                // The condition only looks at what is carried; the body takes it.
                assign(cond, &[]);
                assign(body, body_args);
                hand_over(init, may_move, &mut seen);
            }
            _ => {}
        }
        let release = &mut step.release;
        let mut read = |s: Slot| {
            if owned.contains(&s) && seen.insert(s) {
                release.push(s);
            }
        };
        reads(&step.action, &mut read);
        inside(&step.action, &mut read);
    }
}

/// Marks, from the last to the first, which of these slots may be moved.
fn hand_over(
    passed: &mut [Passed],
    may_move: impl Fn(Slot, &HashSet<Slot>) -> bool,
    seen: &mut HashSet<Slot>,
) {
    for p in passed.iter_mut().rev().filter(|p| p.is_tile) {
        p.last = may_move(p.slot, seen);
        if p.last {
            seen.insert(p.slot);
        }
    }
}

/// Tile slots that an action fills.
fn written(action: &Action, f: &mut impl FnMut(Slot)) {
    match action {
        Action::Fused(g) => g.outs.iter().for_each(|(s, _)| f(*s)),
        Action::Materialize { to, .. } | Action::Concatenate { to, .. } | Action::Roll { to, .. } => f(*to),
        Action::LoadBits { to, .. } | Action::Bitcast { to, .. } | Action::Gather { to, .. } => f(*to),
        Action::ArgReduce { to, .. } | Action::Random { to, .. } => f(*to),
        Action::Dot(d) => f(d.to),
        Action::Reduce(r) => f(r.to),
        Action::If { results, .. } | Action::For { results, .. } | Action::While { results, .. } => {
            results.iter().for_each(|s| f(*s))
        }
        Action::Plain { .. } | Action::ToScalar { .. } | Action::Store(_) => {}
    }
}

/// Tile slots that an action reads by itself.
fn reads(action: &Action, f: &mut impl FnMut(Slot)) {
    let mut operand = |o: &super::Operand| {
        if let Some(s) = o.tile_slot() {
            f(s);
        }
    };
    match action {
        Action::Fused(g) => g.leaves.iter().for_each(operand),
        Action::Materialize { from, .. } | Action::Roll { from, .. } | Action::ToScalar { from, .. } => {
            operand(from)
        }
        Action::Bitcast { from, .. } | Action::ArgReduce { from, .. } => operand(from),
        Action::Gather { from, index, .. } => {
            operand(from);
            operand(index);
        }
        Action::Store(store) => {
            operand(&store.value);
            store.mask.iter().for_each(operand);
        }
        Action::Concatenate { xs, .. } => xs.iter().for_each(operand),
        Action::Reduce(r) => operand(&r.from),
        Action::Dot(d) => {
            operand(&d.lhs);
            operand(&d.rhs);
            d.acc.iter().for_each(operand);
        }
        Action::For { init, .. } | Action::While { init, .. } => {
            let tiles = init.iter().filter(|p| p.is_tile && !p.last);
            tiles.for_each(|p| f(p.slot));
        }
        Action::If { .. } | Action::Plain { .. } | Action::LoadBits { .. } | Action::Random { .. } => {}
    }
}

/// Tile slots that the blocks inside an action read.
fn inside(action: &Action, f: &mut impl FnMut(Slot)) {
    let mut code = |c: &Code| {
        for step in &c.steps {
            reads_dyn(&step.action, f);
        }
        for p in c.results.iter().filter(|p| p.is_tile) {
            f(p.slot);
        }
    };
    match action {
        Action::If { then, otherwise, .. } => {
            code(then);
            code(otherwise);
        }
        Action::For { body, .. } => code(body),
        Action::While { cond, body, .. } => {
            code(cond);
            code(body);
        }
        _ => {}
    }
}

fn reads_dyn(action: &Action, f: &mut dyn FnMut(Slot)) {
    // A trait object ends the recursion of types.
    let mut f = f;
    reads(action, &mut f);
    inside(action, &mut f);
}
