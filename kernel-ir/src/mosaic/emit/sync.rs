//! Semaphores, copies between devices, and what else ties cores together: ids, random bits, assertions.

use melior::ir::Value;

use super::function::Function;
use super::types;
use super::{Fallible, problem};
use crate::ir::{self, MemorySpace, OpKind};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// Starts a copy to another device.
    pub(super) fn copy_remote(
        &mut self,
        ends: [ir::Value; 2],
        semaphores: [ir::Value; 2],
        device: ir::Value,
    ) -> Fallible<()> {
        let [src, dst] = ends;
        let [sent, received] = semaphores;
        for sem in semaphores {
            self.one_semaphore(sem)?;
        }
        let operands = [src, sent, dst, received, device];
        let operands: Fallible<Vec<_>> = operands.into_iter().map(|v| self.get(v)).collect();
        // source, its semaphore, target, its semaphore, device, core, subcore
        let attributes = [
            ("operandSegmentSizes", types::i32s(self.context, &[1, 1, 1, 1, 1, 0, 0])),
            ("priority", types::i32(self.context, 0)),
            ("strict_ordering", types::boolean(self.context, false)),
        ];
        self.op("tpu.enqueue_dma", &operands?, &[], &attributes)?;
        Ok(())
    }

    /// Adds to a semaphore, here or on another device and core.
    pub(super) fn signal(
        &mut self,
        sem: ir::Value,
        amount: ir::Value,
        member: [Option<ir::Value>; 2],
    ) -> Fallible<()> {
        self.one_semaphore(sem)?;
        let mut operands = vec![self.get(sem)?, self.get(amount)?];
        for id in member.into_iter().flatten() {
            operands.push(self.get(id)?);
        }
        let [device, core] = member.map(|id| i32::from(id.is_some()));
        let segments = types::i32s(self.context, &[1, 1, device, core, 0]);
        self.op("tpu.sem_signal", &operands, &[], &[("operandSegmentSizes", segments)])?;
        Ok(())
    }

    /// Waits until a semaphore has counted so much.
    pub(super) fn wait(&mut self, sem: ir::Value, amount: ir::Value) -> Fallible<()> {
        self.one_semaphore(sem)?;
        let operands = [self.get(sem)?, self.get(amount)?];
        self.op("tpu.sem_wait", &operands, &[], &[])?;
        Ok(())
    }

    /// Seeds the random generator.
    pub(super) fn seed(&mut self, seeds: &[ir::Value]) -> Fallible<()> {
        let seeds: Fallible<Vec<_>> = seeds.iter().map(|v| self.get(*v)).collect();
        self.op("tpu.prng_set_seed_32", &seeds?, &[], &[])?;
        Ok(())
    }

    /// Stops the kernel where a condition does not hold.
    pub(super) fn assert(&mut self, cond: ir::Value, message: &str) -> Fallible<()> {
        let message = types::string(self.context, message);
        self.op("cf.assert", &[self.get(cond)?], &[], &[("msg", message)])?;
        Ok(())
    }

    /// An operation of this file that makes one value.
    pub(super) fn sync_value(&mut self, kind: &OpKind, result: ir::Value) -> Fallible<Value<'c, 'a>> {
        let ty = self.mlir_of(result)?;
        match kind {
            OpKind::SemRead { sem } => {
                self.one_semaphore(*sem)?;
                self.value("tpu.sem_read", &[self.get(*sem)?], ty, &[])
            }
            OpKind::BarrierSemaphore => self.value("tpu.sem_barrier", &[], ty, &[]),
            OpKind::DeviceId => self.value("tpu.device_id", &[], ty, &[]),
            OpKind::PrngBits if self.tile(result)?.shape.len() < 2 => {
                let text = "random bits for a tile of one axis";
                Err(problem(self.kernel, self.span, "K0601", text)
                    .help("make a tile of two axes and reshape it"))
            }
            OpKind::PrngBits => self.value("tpu.prng_random_bits", &[], ty, &[]),
            other => Err(self.malformed(format!("{other:?} makes no value"))),
        }
    }

    fn one_semaphore(&self, sem: ir::Value) -> Fallible<()> {
        let ty = self.reference(sem)?;
        match ty.space == MemorySpace::Semaphore && ty.shape.is_empty() {
            true => Ok(()),
            false => Err(self.malformed(format!("one semaphore is counted on, not {ty}"))),
        }
    }
}
