//! How much VMEM a kernel takes: its windows (twice, when they move) and its scratch, padded to whole tiles.

use std::sync::Arc;

use super::{LANES, SUBLANES, packing};
use crate::ir::{DType, Kernel, MemorySpace, OpKind, Param, Role, Type, Value, Window};

/// What one parameter takes of VMEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmemItem {
    /// The parameter.
    pub name: Arc<str>,
    /// Its role.
    pub role: Role,
    /// Bytes of one buffer, padded to whole tiles.
    pub bytes: u64,
    /// Buffers: 2 for a window that moves (one is copied while the other is used), else 1.
    pub buffers: u64,
}

impl VmemItem {
    /// All of its bytes.
    pub const fn total(&self) -> u64 {
        self.bytes.saturating_mul(self.buffers)
    }
}

/// What a kernel takes of VMEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmemUse {
    /// One item a parameter that lies in VMEM, in parameter order.
    pub items: Vec<VmemItem>,
}

impl VmemUse {
    /// What `kernel` takes. Parameters of dynamic extent are left out: they cannot lie in VMEM.
    pub fn of(kernel: &Kernel) -> Self {
        Self { items: kernel.params.iter().filter_map(|p| item(kernel, p)).collect() }
    }

    /// The bytes of every item together.
    pub fn total(&self) -> u64 {
        self.items.iter().fold(0, |sum, i| sum.saturating_add(i.total()))
    }
}

fn item(kernel: &Kernel, p: &Param) -> Option<VmemItem> {
    let Type::Ref(r) = &kernel.values.get(p.value.0 as usize)?.ty else {
        return None;
    };
    if r.space != MemorySpace::Vmem {
        return None;
    }
    Some(VmemItem {
        name: p.name.clone(),
        role: p.role,
        bytes: padded_bytes(r.dtype()?, &r.static_shape()?),
        buffers: if p.window.as_ref().is_some_and(moves) { 2 } else { 1 },
    })
}

/// Whether grid steps see different blocks: false when no index depends on the step. Such a window is copied once, so it
/// needs no second buffer.
pub fn moves(window: &Window) -> bool {
    let mut stepping: Vec<Value> = window.index.args.clone();
    for op in &window.index.ops {
        let steps = matches!(op.kind, OpKind::ProgramId { .. })
            || !op.kind.blocks().is_empty()
            || op.kind.operands().iter().any(|v| stepping.contains(v));
        if steps {
            stepping.extend(&op.results);
        }
    }
    window.index.results.iter().any(|v| stepping.contains(v))
}

/// Bytes of an array in VMEM.
///
/// Measured with libtpu 0.0.52 on v4, v6e and v7x, from what it says it used: rows are [`LANES`] elements long, or a
/// multiple; their number is a multiple of 8 for every element type, except that fewer than 8 rows are rounded up to a
/// power of two and to whole 32-bit words. A single axis is rounded up to 512 bytes.
pub fn padded_bytes(dtype: DType, shape: &[usize]) -> u64 {
    let up = |n: usize, to: usize| n.checked_next_multiple_of(to).unwrap_or(usize::MAX);
    let (outer, rows, columns) = match shape {
        [] => (&[][..], 1, packing(dtype) * LANES),
        [n] => (&[][..], 1, up(*n, packing(dtype) * LANES)),
        [outer @ .., m, n] => {
            let tile = m.checked_next_power_of_two().unwrap_or(SUBLANES);
            (outer, up(*m, tile.clamp(packing(dtype), SUBLANES)), up(*n, LANES))
        }
    };
    let of = [rows, columns, dtype.bytes()];
    of.iter().chain(outer).fold(1_u64, |bytes, n| bytes.saturating_mul(*n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libtpu said it used for scratch of this shape.
    #[test]
    fn padding_is_the_compilers() {
        let measured: [(DType, &[usize], u64); 14] = [
            (DType::F32, &[1, 128], 512),
            (DType::F32, &[4, 128], 2048),
            (DType::F32, &[20, 128], 12288),
            (DType::F32, &[512, 1], 262_144),
            (DType::F32, &[300], 1536),
            (DType::F32, &[3, 100, 200], 319_488),
            (DType::Bf16, &[1, 128], 512),
            (DType::Bf16, &[4, 128], 1024),
            (DType::Bf16, &[20, 128], 6144),
            (DType::Bf16, &[3, 100, 200], 159_744),
            (DType::Bf16, &[300], 1024),
            (DType::I8, &[4, 128], 512),
            (DType::I8, &[20, 128], 3072),
            (DType::I8, &[3, 100, 200], 79_872),
        ];
        for (dtype, shape, bytes) in measured {
            assert_eq!(padded_bytes(dtype, shape), bytes, "{dtype}{shape:?}");
        }
    }
}
