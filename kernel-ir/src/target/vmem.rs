//! How much VMEM a kernel takes: its windows (twice, when they move) and its scratch, padded to whole tiles.

use std::sync::Arc;

use super::{LANES, SUBLANES, packing, tile_rows};
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

/// Whether grid steps see different blocks: false when the index map gives constants only. Such a window is copied
/// once, so it needs no second buffer.
pub fn moves(window: &Window) -> bool {
    let constant = |v: &Value| {
        window.index.ops.iter().any(|op| op.results.contains(v) && matches!(op.kind, OpKind::Constant(_)))
    };
    !window.index.results.iter().all(constant)
}

/// Bytes of an array in VMEM: the last axis in whole rows of [`LANES`], the one before it in whole tiles.
///
/// Mosaic gives an array with few rows a tile of fewer (a power of two, of whole words), as its memref layout
/// inference does.
pub fn padded_bytes(dtype: DType, shape: &[usize]) -> u64 {
    let (outer, rows, columns) = match shape {
        [] => (&[][..], 1, 1),
        [n] => (&[][..], 1, *n),
        [outer @ .., m, n] => (outer, *m, *n),
    };
    let least = packing(dtype);
    let tile = if rows < SUBLANES { rows.max(1).next_power_of_two().max(least) } else { tile_rows(dtype) };
    [rows.next_multiple_of(tile), columns.next_multiple_of(LANES), dtype.bytes()]
        .iter()
        .chain(outer)
        .fold(1_u64, |bytes, n| bytes.saturating_mul(*n as u64))
}
