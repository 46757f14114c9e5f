//! K0305, K0311: what the kernel keeps in VMEM and SMEM fits.

use super::{Found, maps};
use crate::diag::Diagnostic;
use crate::ir::{DType, Kernel, MemorySpace, Param, RefType, Type};

const MIB: u64 = 1 << 20;

/// VMEM of the TPU generations that have most (v5e, v6e).
const LARGEST_VMEM: u64 = 128 * MIB;

/// SMEM of every TPU generation, less what libtpu keeps (it takes 1021 KiB on v5e).
const SMEM: u64 = MIB - 3 * 1024;

/// Bytes that a row of SMEM is padded to.
const SMEM_ROW: u64 = 512;

/// What a parameter takes of a memory.
struct Buffer<'k> {
    param: &'k Param,
    ty: &'k RefType,
    /// Bytes of one, padded.
    bytes: u64,
    /// Two for a window that moves.
    copies: u64,
}

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    for (space, name, code, largest) in
        [(MemorySpace::Vmem, "VMEM", "K0305", LARGEST_VMEM), (MemorySpace::Smem, "SMEM", "K0311", SMEM)]
    {
        let mut buffers: Vec<_> = kernel.params.iter().filter_map(|p| buffer(kernel, p, space)).collect();
        let total = buffers.iter().fold(0_u64, |n, b| n.saturating_add(b.bytes.saturating_mul(b.copies)));
        if total > largest {
            buffers.sort_by_key(|b| std::cmp::Reverse(b.bytes.saturating_mul(b.copies)));
            let (needs, has) = (size(total), size(largest));
            let message =
                format!("kernel `{}` needs {needs} of {name}, but no TPU has more than {has}", kernel.name);
            let d = Diagnostic::error(code, message).at(kernel.loc(kernel.span).clone(), "in this launch");
            let d = buffers.iter().take(8).fold(d, |d, b| d.note(line(b)));
            found.push(
                d.help("use smaller blocks, or keep large arrays in HBM and copy the parts that are needed"),
            );
        }
    }
}

fn buffer<'k>(kernel: &'k Kernel, param: &'k Param, space: MemorySpace) -> Option<Buffer<'k>> {
    let Type::Ref(ty) = kernel.ty(param.value) else { return None };
    if ty.space != space {
        return None;
    }
    let shape: Vec<u64> = ty.static_shape()?.iter().map(|n| *n as u64).collect();
    let moves = param.window.is_some() && !maps::depends(param).is_constant();
    let bytes = padded(ty.dtype()?, &shape, space);
    Some(Buffer { param, ty, bytes, copies: if moves { 2 } else { 1 } })
}

/// Bytes of an array in tiles of 128 lanes by a register of rows; SMEM has rows only.
fn padded(dtype: DType, shape: &[u64], space: MemorySpace) -> u64 {
    let bytes = dtype.bytes() as u64;
    let (outer, rows, lanes) = match shape {
        [] => (&[][..], 1, 1),
        [n] => (&[][..], 1, *n),
        [outer @ .., rows, lanes] => (outer, *rows, *lanes),
    };
    let packing = 32 / dtype.bits() as u64;
    let (row, rows) = match space {
        MemorySpace::Smem => (lanes.saturating_mul(bytes).next_multiple_of(SMEM_ROW), rows),
        _ => {
            let tile = rows.next_power_of_two().clamp(packing, 8 * packing);
            (lanes.next_multiple_of(128).saturating_mul(bytes), rows.next_multiple_of(tile))
        }
    };
    outer.iter().fold(row.saturating_mul(rows), |n, d| n.saturating_mul(*d))
}

/// E.g. "`acc`: vmem f32[4096, 4096] takes 64.0 MiB".
fn line(b: &Buffer<'_>) -> String {
    let total = size(b.bytes.saturating_mul(b.copies));
    let twice = if b.copies == 2 { ", two buffers since it moves" } else { "" };
    format!("`{}`: {} takes {total}{twice}", b.param.name, b.ty)
}

fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let kib = bytes as f64 / 1024.0;
    if bytes >= MIB { format!("{:.1} MiB", kib / 1024.0) } else { format!("{kib:.1} KiB") }
}
