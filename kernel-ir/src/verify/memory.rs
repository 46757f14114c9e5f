//! K0305, K0311: what the kernel keeps in VMEM and SMEM fits some TPU.

use super::Found;
use crate::diag::Diagnostic;
use crate::ir::{Kernel, MemorySpace, Type};
use crate::target::{Generation, VmemUse};

/// SMEM that libtpu keeps: it lets kernels take 1021 KiB of 1 MiB on v5e, 1022 on v4.
const SMEM_KEPT: u64 = 3 << 10;

/// Bytes that a row of SMEM is padded to.
const SMEM_ROW: u64 = 512;

/// What one parameter takes.
struct Buffer {
    name: String,
    bytes: u64,
    buffers: u64,
}

impl Buffer {
    const fn total(&self) -> u64 {
        self.bytes.saturating_mul(self.buffers)
    }
}

pub(super) fn check(kernel: &Kernel, vmem: &VmemUse, found: &mut Found) {
    let most = |f: fn(Generation) -> u64| Generation::ALL.into_iter().map(f).max().unwrap_or(0);
    let items = vmem.items.iter();
    let vmem =
        items.map(|i| Buffer { name: i.name.to_string(), bytes: i.bytes, buffers: i.buffers }).collect();
    let largest = most(|g| g.target().vmem_bytes);
    budget(kernel, "K0305", "VMEM", vmem, largest, found);
    let largest = most(|g| g.target().smem_bytes) - SMEM_KEPT;
    budget(kernel, "K0311", "SMEM", smem(kernel), largest, found);
}

fn budget(
    kernel: &Kernel,
    code: &'static str,
    memory: &str,
    mut buffers: Vec<Buffer>,
    largest: u64,
    found: &mut Found,
) {
    let total = buffers.iter().fold(0_u64, |n, b| n.saturating_add(b.total()));
    if total <= largest {
        return;
    }
    buffers.sort_by_key(|b| std::cmp::Reverse(b.total()));
    let (needs, has) = (size(total), size(largest));
    let message =
        format!("kernel `{}` needs {needs} of {memory}, but no TPU has more than {has}", kernel.name);
    let d = Diagnostic::error(code, message).at(kernel.loc(kernel.span).clone(), "in this launch");
    let d = buffers.iter().take(8).fold(d, |d, b| d.note(line(kernel, b)));
    found.push(d.help("use smaller blocks, or keep large arrays in HBM and copy the parts that are needed"));
}

fn smem(kernel: &Kernel) -> Vec<Buffer> {
    let buffer = |p: &crate::ir::Param| {
        let Type::Ref(r) = kernel.ty(p.value) else { return None };
        let (shape, element) = (r.static_shape()?, r.dtype()?.bytes() as u64);
        let (row, outer) = shape.split_last().map_or((1, &[][..]), |(n, outer)| (*n as u64, outer));
        let row = row.saturating_mul(element).checked_next_multiple_of(SMEM_ROW).unwrap_or(u64::MAX);
        let bytes = outer.iter().fold(row, |n, d| n.saturating_mul(*d as u64));
        (r.space == MemorySpace::Smem).then(|| Buffer { name: p.name.to_string(), bytes, buffers: 1 })
    };
    kernel.params.iter().filter_map(buffer).collect()
}

/// E.g. "`acc`: vmem f32[4096, 4096] takes 64.0 MiB".
fn line(kernel: &Kernel, b: &Buffer) -> String {
    let param = kernel.params.iter().find(|p| *p.name == *b.name);
    let ty = param.map_or_else(String::new, |p| format!("{} ", kernel.ty(p.value)));
    let twice = if b.buffers == 2 { ", two buffers since it moves" } else { "" };
    format!("`{}`: {ty}takes {}{twice}", b.name, size(b.total()))
}

fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let kib = bytes as f64 / 1024.0;
    if bytes >= 1 << 20 { format!("{:.1} MiB", kib / 1024.0) } else { format!("{kib:.1} KiB") }
}
