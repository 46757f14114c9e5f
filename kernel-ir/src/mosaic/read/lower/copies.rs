//! Copies and semaphores.

use super::Fallible;
use super::scope::{Known, Lower};
use crate::ir::{DType, Elem, GridAxis, Literal, MemorySpace, OpKind, RefType, Semantics, Type, Value};
use crate::mosaic::read::module::{Operation, ValueId};

/// The operands of a copy, whatever its version orders them like.
struct Copy {
    source: ValueId,
    sent: Option<ValueId>,
    target: ValueId,
    landed: Option<ValueId>,
    device: Option<ValueId>,
    cores: [Option<ValueId>; 2],
}

impl Lower<'_> {
    /// Groups of operands, one or none each.
    fn groups<const N: usize>(&self, op: &Operation) -> Fallible<Option<[Option<ValueId>; N]>> {
        let Some(sizes) = self.segments(op, N)? else { return Ok(None) };
        let mut groups = [None; N];
        let mut next = op.operands.iter();
        for (group, size) in groups.iter_mut().zip(sizes) {
            if size > 1 {
                return Err(self.malformed("has several operands where one belongs"));
            }
            if size == 1 {
                *group = next.next().copied();
            }
        }
        Ok(Some(groups))
    }

    fn is_semaphore(&self, v: ValueId) -> bool {
        let Ok(Known::Value(x)) = self.known(v) else { return false };
        matches!(self.ty(*x), Type::Ref(r) if r.dtype().is_none())
    }

    /// The operands of `enqueue_dma` and `wait_dma`: source, its semaphore, target, its semaphore, device, core,
    /// subcore. Before version 14 there is no subcore, before version 2 no core and no count of each.
    fn copy(&self, op: &Operation) -> Fallible<Copy> {
        let groups = match self.groups::<7>(op)? {
            Some(groups) => groups,
            None => match op.operands[..] {
                [s, t, landed] => [Some(s), None, Some(t), Some(landed), None, None, None],
                [s, sent, t, landed, device] => {
                    [Some(s), Some(sent), Some(t), Some(landed), Some(device), None, None]
                }
                _ => return Err(self.malformed(format!("has {} operands", op.operands.len()))),
            },
        };
        let [Some(source), sent, Some(target), landed, device, core, subcore] = groups else {
            return Err(self.malformed("has no source or no target"));
        };
        Ok(Copy { source, sent, target, landed, device, cores: [core, subcore] })
    }

    /// The operands of `wait_dma2`: semaphore, source, target, device, core.
    fn old_copy(&self, op: &Operation) -> Fallible<Copy> {
        let groups = match (self.groups::<5>(op)?, &op.operands[..]) {
            (Some(groups), _) => groups,
            (None, [sem, s, t]) => [Some(*sem), Some(*s), Some(*t), None, None],
            // The oldest form: a semaphore, and the memory that is waited for.
            (None, [sem, target]) => [Some(*sem), Some(*target), Some(*target), None, None],
            _ => return Err(self.malformed(format!("has {} operands", op.operands.len()))),
        };
        let [Some(landed), Some(source), Some(target), device, core] = groups else {
            return Err(self.malformed("has no semaphore, no source or no target"));
        };
        Ok(Copy { source, sent: None, target, landed: Some(landed), device, cores: [core, None] })
    }

    fn semaphore(&mut self, v: Option<ValueId>) -> Fallible<Value> {
        let v = v.ok_or_else(|| self.unsupported("has no semaphore"))?;
        let (x, r) = self.memref(v)?;
        if r.dtype().is_none() && r.shape.is_empty() {
            return Ok(x);
        }
        Err(self.malformed(format!("counts on a {r} instead of one semaphore")))
    }

    /// Checks that what is named is this core: a device has one.
    fn this_core(&self, named: [Option<ValueId>; 2]) -> Fallible<()> {
        let one = |g: &GridAxis| g.semantics != Semantics::Parallel || g.extent.known() == Some(1);
        let first = |v: ValueId| self.constant_of(v) == Some(Literal::Int(0)) && self.grid.iter().all(one);
        match named {
            [None, None] => Ok(()),
            [Some(core), None] if first(core) => Ok(()),
            _ => Err(self.unsupported("names another core with `core_id` or `subcore_id`")),
        }
    }

    /// The core that is named, if it may be another one: a map over cores is a grid of one parallel axis, a step a core.
    fn other_core(&mut self, named: [Option<ValueId>; 2]) -> Fallible<Option<Value>> {
        match (self.this_core(named), named, self.grid.as_slice()) {
            (Err(_), [Some(core), None], [cores]) if cores.semantics == Semantics::Parallel => {
                self.scalar(core).map(Some)
            }
            (this, ..) => this.map(|()| None),
        }
    }

    /// Both ends of a copy, which are alike.
    fn both_ends(&mut self, copy: &Copy) -> Fallible<(Value, Value)> {
        let ((src, a), (dst, b)) = (self.memref(copy.source)?, self.memref(copy.target)?);
        if a.elem != b.elem || a.shape != b.shape || a.dtype().is_none() {
            return Err(self.malformed(format!("copies a {a} to a {b}")));
        }
        Ok((src, dst))
    }

    /// An `i32` scalar.
    fn scalar(&mut self, v: ValueId) -> Fallible<Value> {
        let x = self.get(v)?;
        match self.ty(x) {
            Type::Scalar(DType::I32) => Ok(x),
            other => Err(self.malformed(format!("takes a {other} where an i32 belongs"))),
        }
    }

    /// `tpu.enqueue_dma`
    pub(super) fn enqueue_dma(&mut self, op: &Operation) -> Fallible<()> {
        let copy = self.copy(op)?;
        self.this_core(copy.cores)?;
        let (src, dst) = self.both_ends(&copy)?;
        let received = self.semaphore(copy.landed)?;
        let kind = match copy.device {
            None => OpKind::CopyStart { src, dst, sem: received },
            Some(device) => {
                let (sent, device) = (self.semaphore(copy.sent)?, self.scalar(device)?);
                OpKind::CopyStartRemote { src, sent, dst, received, device }
            }
        };
        self.append(kind, vec![]);
        Ok(())
    }

    /// `tpu.wait_dma`, and `tpu.wait_dma2` of older versions: for what has landed, or for what has been sent.
    pub(super) fn wait_dma(&mut self, op: &Operation) -> Fallible<()> {
        let old = op.operands.first().is_some_and(|v| self.is_semaphore(*v));
        let copy = if old { self.old_copy(op)? } else { self.copy(op)? };
        let (src, dst) = self.both_ends(&copy)?;
        let sends =
            !old && self.module.attribute(op, "wait_target").is_some() && !self.flag(op, "wait_target")?;
        let kind = match sends {
            false => OpKind::CopyWait { src, dst, sem: self.semaphore(copy.landed)? },
            true => OpKind::CopyWait { src, dst: src, sem: self.semaphore(copy.sent)? },
        };
        self.append(kind, vec![]);
        Ok(())
    }

    /// `tpu.sem_signal`: semaphore, amount, device, core, subcore.
    pub(super) fn sem_signal(&mut self, op: &Operation) -> Fallible<()> {
        let groups = match (self.groups::<5>(op)?, &op.operands[..]) {
            (Some(groups), _) => groups,
            (None, [sem, amount]) => [Some(*sem), Some(*amount), None, None, None],
            (None, [sem, amount, device]) => [Some(*sem), Some(*amount), Some(*device), None, None],
            _ => return Err(self.malformed(format!("has {} operands", op.operands.len()))),
        };
        let [sem, Some(amount), device, core, subcore] = groups else {
            return Err(self.malformed("has no amount"));
        };
        let core = self.other_core([core, subcore])?;
        let (sem, amount) = (self.semaphore(sem)?, self.scalar(amount)?);
        let device = device.map(|d| self.scalar(d)).transpose()?;
        self.append(OpKind::SemSignal { sem, amount, device, core }, vec![]);
        Ok(())
    }

    /// `tpu.sem_wait`
    pub(super) fn sem_wait(&mut self, op: &Operation) -> Fallible<()> {
        let [sem, amount] = self.operands(op)?;
        let (sem, amount) = (self.semaphore(Some(sem))?, self.scalar(amount)?);
        self.append(OpKind::SemWait { sem, amount }, vec![]);
        Ok(())
    }

    /// `tpu.sem_read`
    pub(super) fn sem_read(&mut self, op: &Operation) -> Fallible<()> {
        let [sem] = self.operands(op)?;
        let sem = self.semaphore(Some(sem))?;
        let x = self.push(OpKind::SemRead { sem }, Type::Scalar(DType::I32))?;
        self.done(op, x)
    }

    /// `tpu.sem_barrier`
    pub(super) fn barrier(&mut self, op: &Operation) -> Fallible<()> {
        let [] = self.operands(op)?;
        let v = self.result(op)?;
        let r = RefType { elem: Elem::Semaphore, shape: vec![], space: MemorySpace::Semaphore };
        let declared = self.ref_type(self.module.values[v.0 as usize])?;
        if declared != r {
            return Err(self.unsupported(format!("makes a {declared}")));
        }
        let x = self.push(OpKind::BarrierSemaphore, Type::Ref(r))?;
        self.set(v, Known::Value(x));
        Ok(())
    }
}
