//! Runs the steps of a plan: control flow, and the dispatch of everything else.

use crate::ir::Span;

use super::core::Core;
use super::fault::{Checked, Fault};
use super::plan::{Action, Code, LaneKind, Passed, Slot, Step};
use super::scalar::Scalar;
use super::tile::Tile;

/// A value on its way from one block to another.
enum Carried {
    Scalar(Scalar),
    Tile(Tile),
}

impl Core<'_> {
    /// Runs a block.
    pub(super) fn run(&mut self, code: &Code) -> Checked<()> {
        for step in &code.steps {
            self.step(step)?;
            for slot in &step.release {
                let tile = std::mem::take(&mut self.tiles[*slot]);
                self.pool.give(tile);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Checked<()> {
        let span = step.span;
        match &step.action {
            Action::Plain { kind, to } => self.plain(kind, *to, span)?,
            Action::Fused(group) => self.fused(group)?,
            Action::Materialize { from, to } => {
                let tile = self.materialize(from, span)?;
                self.set_tile(*to, tile);
            }
            Action::Dot(dot) => self.dot(dot, span)?,
            Action::Reduce(r) => self.reduce(r, span)?,
            Action::Concatenate { xs, axis, to, shape } => self.concatenate(xs, *axis, *to, shape, span)?,
            Action::Roll { from, amount, axis, to } => self.roll(from, *amount, *axis, *to, span)?,
            Action::ToScalar { from, to } => self.scalars[*to] = self.first(from, span)?,
            Action::Store(store) => self.store(store, &step.release, span)?,
            Action::LoadBits { from, dtype, to } => {
                let tile = self.load_bits(from, *dtype, span)?;
                self.set_tile(*to, tile);
            }
            Action::Bitcast { from, dtype, to } => self.bitcast(from, *dtype, *to, span)?,
            Action::Gather { from, index, axis, to } => self.gather(from, index, *axis, *to, span)?,
            Action::ArgReduce { op, from, axis, to } => self.arg_reduce(*op, from, *axis, *to, span)?,
            Action::Random { len, to } => {
                let mut tile = self.pool.take(LaneKind::Int, *len);
                if let Tile::Int(v) = &mut tile {
                    self.random.fill(v);
                }
                self.set_tile(*to, tile);
            }
            Action::If { cond, then, otherwise, results } => {
                let code = if self.flag(*cond, "a condition", span)? { then } else { otherwise };
                self.run(code)?;
                self.pass(&code.results, results);
            }
            Action::For { lo, hi, index, init, args, body, results } => {
                let (lo, hi) =
                    (self.index(*lo, "a loop bound", span)?, self.index(*hi, "a loop bound", span)?);
                self.budget(hi.saturating_sub(lo).try_into().unwrap_or(0), span)?;
                let mut carried = vec![];
                self.take_all(init, &mut carried);
                for i in lo..hi {
                    self.spend(1, span)?;
                    // Both bounds are `i32`.
                    self.scalars[*index] = Scalar::int(i as i32);
                    self.give_all(&mut carried, args);
                    self.run(body)?;
                    self.take_all(&body.results, &mut carried);
                }
                self.give_all(&mut carried, results);
            }
            Action::While { init, cond, cond_args, body, body_args, results } => {
                let mut carried = vec![];
                self.take_all(init, &mut carried);
                let mut rounds = 0;
                loop {
                    self.give_all(&mut carried, cond_args);
                    self.run(cond)?;
                    let more = match cond.results.first() {
                        Some(c) => self.flag(c.slot, "a loop condition", span)?,
                        None => false,
                    };
                    // The condition only looked at the values: they move on.
                    self.move_on(cond_args, init, &mut carried);
                    if !more {
                        break;
                    }
                    rounds += 1;
                    self.budget(rounds, span)?;
                    self.spend(1, span)?;
                    self.give_all(&mut carried, body_args);
                    self.run(body)?;
                    self.take_all(&body.results, &mut carried);
                }
                self.give_all(&mut carried, results);
            }
        }
        Ok(())
    }

    fn budget(&self, rounds: u64, span: Span) -> Checked<()> {
        let most = self.call.options.max_iterations;
        if rounds <= most {
            return Ok(());
        }
        let message = format!("this loop runs more than {most} times");
        Err(Fault::new("K0407", span, message)
            .label("does it end?")
            .help("raise `Options::max_iterations` if it is meant to run this long"))
    }

    /// Counts grid steps and rounds of loops.
    pub(super) fn spend(&mut self, rounds: u64, span: Span) -> Checked<()> {
        self.rounds += rounds;
        let most = self.call.options.max_rounds;
        if self.rounds <= most {
            return Ok(());
        }
        let message = format!("the kernel runs more than {most} grid steps and rounds of loops");
        Err(Fault::new("K0407", span, message)
            .label("does it end?")
            .help("raise `Options::max_rounds` if it is meant to run this long"))
    }

    fn take(&mut self, p: &Passed) -> Carried {
        match (p.is_tile, p.last) {
            (false, _) => Carried::Scalar(self.scalars[p.slot]),
            (true, true) => Carried::Tile(std::mem::take(&mut self.tiles[p.slot])),
            (true, false) => Carried::Tile(self.tiles[p.slot].clone()),
        }
    }

    /// Takes values out of their slots; all of them before any is put into another, since they may trade places.
    fn take_all(&mut self, passed: &[Passed], carried: &mut Vec<Carried>) {
        carried.extend(passed.iter().map(|p| self.take(p)));
    }

    fn move_on(&mut self, slots: &[Slot], like: &[Passed], carried: &mut Vec<Carried>) {
        let passed =
            slots.iter().zip(like).map(|(slot, p)| Passed { slot: *slot, is_tile: p.is_tile, last: true });
        carried.extend(passed.map(|p| self.take(&p)));
    }

    fn give_all(&mut self, carried: &mut Vec<Carried>, slots: &[Slot]) {
        for (c, slot) in carried.drain(..).zip(slots) {
            match c {
                Carried::Scalar(s) => self.scalars[*slot] = s,
                Carried::Tile(t) => self.set_tile(*slot, t),
            }
        }
    }

    fn pass(&mut self, from: &[Passed], to: &[Slot]) {
        let mut carried = vec![];
        self.take_all(from, &mut carried);
        self.give_all(&mut carried, to);
    }
}
