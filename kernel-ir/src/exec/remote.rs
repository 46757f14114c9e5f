//! What a core does to other members of its mesh: copies and signals. Outside a mesh, device 0 and core 0 are the core itself.

use crate::ir::Span;

use super::core::Core;
use super::dma::{Transfer, dense};
use super::fault::{Checked, Fault};
use super::mesh::{Effect, Message};
use super::plan::Slot;
use super::semaphore::Semaphore;
use super::view::Place;

/// The operands of a copy to a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteCopy {
    pub(super) src: Slot,
    pub(super) sent: Slot,
    pub(super) dst: Slot,
    pub(super) received: Slot,
    pub(super) device: Slot,
}

impl Core<'_> {
    /// The id of this device in its mesh.
    pub(super) fn device_id(&self) -> i32 {
        self.call.mesh.map_or(0, |e| e.device() as i32)
    }

    /// The member of the mesh that an op means by a device and a core; `None` when it is this one.
    fn member(&self, [device, core]: [Option<Slot>; 2], span: Span) -> Checked<Option<usize>> {
        let mesh = self.call.mesh;
        let (devices, cores) = mesh.map_or((1, 1), |e| (e.devices(), e.cores()));
        let here = mesh.map_or((0, 0), |e| (e.device(), e.core()));
        let device = match device {
            None => here.0,
            Some(slot) => {
                let id = self.index(slot, "a device id", span)?;
                usize::try_from(id).ok().filter(|n| *n < devices).ok_or_else(|| {
                    let message = format!("there is no device {id}: the kernel runs on {devices}");
                    let fault = Fault::new("K0401", span, message).label("to this device");
                    fault.help("run it on a mesh of as many devices as it was written for")
                })?
            }
        };
        let core = match core {
            None => here.1,
            Some(slot) => {
                let id = self.index(slot, "a core id", span)?;
                usize::try_from(id).ok().filter(|n| *n < cores).ok_or_else(|| {
                    let message = format!("there is no core {id}: the kernel runs on {cores}");
                    let fault = Fault::new("K0401", span, message).label("to this core");
                    fault.help("a kernel that names cores runs on as many as its grid has steps")
                })?
            }
        };
        Ok(((device, core) != here).then_some(device * cores + core))
    }

    /// Signals a semaphore of a device and a core.
    pub(super) fn signal_member(
        &mut self,
        sem: Semaphore,
        amount: i64,
        member: [Option<Slot>; 2],
        span: Span,
    ) -> Checked<()> {
        match (self.member(member, span)?, self.call.mesh) {
            (Some(to), Some(endpoint)) => {
                let effect = Effect::Signal(amount);
                endpoint.send(to, Message { sem, effect, from: endpoint.id, span });
            }
            _ => self.semaphores.add(sem, amount),
        }
        Ok(())
    }

    /// Starts a copy to a device. What it reads is read at once, so that results do not depend on the speed of threads;
    /// its source may still not be written before the copy is waited for.
    pub(super) fn copy_start_remote(&mut self, copy: RemoteCopy, span: Span) -> Checked<()> {
        let (src, dst) = self.ends(copy.src, copy.dst, span)?;
        let (sent, received) = (self.semaphore(copy.sent, span)?, self.semaphore(copy.received, span)?);
        let member = self.member([Some(copy.device), None], span)?;
        match (member, self.call.mesh) {
            (Some(to), Some(endpoint)) => {
                self.may_read(&src, span)?;
                if let Place::Local(p) = dst.place
                    && self.call.kernel.params[p].window.is_some()
                {
                    let message =
                        format!("a copy into the window `{}` of another device", self.name(dst.place));
                    return Err(Fault::refused(span, message).help("copy into scratch or a whole array"));
                }
                let data = self.snapshot(&src, span)?;
                let weight = self.weight(received, &dst, span)?;
                let effect = Effect::Copy { data, dst: Box::new(dst), weight };
                endpoint.send(to, Message { sem: received, effect, from: endpoint.id, span });
            }
            _ => self.fly(src, dst, received, span)?,
        }
        let weight = self.weight(sent, &src, span)?;
        self.dma.flying.push_back(Transfer { src, dst: None, sem: sent, weight, span });
        Ok(())
    }

    /// Takes in what another device sent.
    pub(super) fn accept(&mut self, message: Message) -> Checked<()> {
        let weight = match message.effect {
            Effect::Signal(amount) => amount,
            Effect::Copy { data, dst, weight } => {
                self.deliver(&data, &dense(&dst.shape()), &dst, None, message.span)?;
                weight
            }
        };
        self.semaphores.add(message.sem, weight);
        Ok(())
    }
}
