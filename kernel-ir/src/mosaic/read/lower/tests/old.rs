//! Forms that older versions of the stable dialect had come out as the newer ones do.

use super::build::{Make, Named};
use crate::ir::{Kernel, OpKind};
use crate::mosaic::read::module::ValueId;

const TILE: &str = "vector<8x128xi32>";
const VMEM: &str = "memref<8x128xi32, vmem>";
const HBM: &str = "memref<8x128xi32, any>";
const SEMAPHORE: &str = "memref<!tpu.dma_semaphore, semaphore_mem>";

fn kernel(arguments: &[&str], body: impl FnOnce(&mut Make, &[ValueId])) -> Kernel {
    let mut m = Make::new();
    let scratch = m.int(arguments.iter().filter(|a| a.contains('!')).count() as i64);
    m.function("main", arguments, &[("scratch_operands", scratch)], |m, args| {
        body(m, args);
        m.effect("func.return", &[], &[]);
    });
    m.lower().unwrap_or_else(|e| panic!("{e:?}"))
}

/// A kernel of one operation on a loaded tile.
fn one(
    name: &str,
    out: &str,
    attributes: impl FnOnce(&mut Make) -> Vec<(&'static str, crate::mosaic::read::module::AttrId)>,
) -> Kernel {
    let memref = out.replace("vector", "memref");
    kernel(&[VMEM, &memref], |m, args| {
        let x = m.load(args[0], TILE);
        let attributes = attributes(m);
        let operands = match name {
            "tpu.iota" => vec![],
            "tpu.dynamic_gather" => vec![x, x],
            "vector.multi_reduction" => vec![x, m.constant(out, 0)],
            _ => vec![x],
        };
        let named: Named<'_> = &attributes;
        let y = m.op(name, &operands, out, named);
        m.store(args[1], y, out.matches('x').count());
    })
}

#[test]
fn lists_were_arrays_of_attributes_or_single_numbers() {
    let new = one("tpu.iota", TILE, |m| vec![("dimensions", m.ints(&[1]))]);
    assert_eq!(one("tpu.iota", TILE, |m| vec![("dimension", m.int(1))]), new);

    let new = one("tpu.dynamic_gather", TILE, |m| vec![("dimensions", m.ints(&[0]))]);
    assert_eq!(one("tpu.dynamic_gather", TILE, |m| vec![("dimension", m.int(0))]), new);

    let kind = |m: &mut Make| ("kind", m.opaque("#vector.kind<add>"));
    let new =
        one("vector.multi_reduction", "vector<8xi32>", |m| vec![kind(m), ("reduction_dims", m.ints(&[1]))]);
    let old =
        one("vector.multi_reduction", "vector<8xi32>", |m| vec![kind(m), ("reduction_dims", m.list(&[1]))]);
    assert_eq!(old, new);
}

#[test]
fn a_repetition_is_a_concatenation() {
    let kernel =
        one("tpu.repeat", "vector<24x128xi32>", |m| vec![("dimension", m.int(0)), ("times", m.int(3))]);
    let joins = |op: &crate::ir::Op| matches!(&op.kind, OpKind::Concatenate { xs, axis: 0 } if xs.len() == 3);
    assert!(kernel.body.ops.iter().any(joins), "{kernel}");
}

#[test]
fn positions_of_extremes_had_no_axis() {
    let kind = |m: &mut Make| vec![("axis", m.int(1)), ("kind", m.opaque("#tpu.reduction_kind<arg_max>"))];
    let old = one("tpu.reduce_index", "vector<8xi32>", kind);
    let new = one("tpu.reduce_index", "vector<8x1xi32>", kind);
    let searches = |k: &Kernel| {
        k.body.ops.iter().filter(|o| matches!(o.kind, OpKind::ArgReduce { axis: 1, .. })).count()
    };
    assert_eq!((searches(&old), searches(&new)), (1, 1));
}

/// A copy and its wait, in the forms of these versions.
fn copy(
    start: impl FnOnce(&mut Make, ValueId, ValueId, ValueId),
    wait: impl FnOnce(&mut Make, ValueId, ValueId, ValueId),
) -> Vec<OpKind> {
    let kernel = kernel(&[HBM, VMEM, SEMAPHORE], |m, args| {
        start(m, args[0], args[1], args[2]);
        wait(m, args[0], args[1], args[2]);
    });
    kernel.body.ops.into_iter().map(|op| op.kind).collect()
}

fn segments(m: &mut Make, sizes: &[i64]) -> Vec<(&'static str, crate::mosaic::read::module::AttrId)> {
    vec![("operandSegmentSizes", m.ints(sizes))]
}

#[test]
fn copies_had_fewer_operands_in_another_order() {
    let start = |sizes: &'static [i64]| {
        move |m: &mut Make, s, t, sem| {
            let attributes = if sizes.is_empty() { vec![] } else { segments(m, sizes) };
            m.effect("tpu.enqueue_dma", &[s, t, sem], &attributes);
        }
    };
    let wait = |sizes: &'static [i64]| {
        move |m: &mut Make, s, t, sem| {
            let mut attributes = segments(m, sizes);
            attributes.push(("wait_target", m.int(1)));
            m.effect("tpu.wait_dma", &[s, t, sem], &attributes);
        }
    };
    let new = copy(start(&[1, 0, 1, 1, 0, 0, 0]), wait(&[1, 0, 1, 1, 0, 0, 0]));
    assert!(matches!(new[..], [OpKind::CopyStart { .. }, OpKind::CopyWait { .. }]), "{new:?}");
    // Version 13, version 1, and the waits of versions 7 and 3.
    assert_eq!(copy(start(&[1, 0, 1, 1, 0, 0]), wait(&[1, 0, 1, 1, 0, 0])), new);
    assert_eq!(copy(start(&[]), wait(&[1, 0, 1, 1, 0, 0])), new);
    let second = |m: &mut Make, s, t, sem| {
        let attributes = segments(m, &[1, 1, 1, 0, 0]);
        m.effect("tpu.wait_dma2", &[sem, s, t], &attributes);
    };
    assert_eq!(copy(start(&[]), second), new);
    assert_eq!(copy(start(&[]), |m, s, t, sem| m.effect("tpu.wait_dma2", &[sem, s, t], &[])), new);
    // The oldest names the memory that is waited for only.
    let oldest = copy(start(&[]), |m, _, t, sem| m.effect("tpu.wait_dma", &[sem, t], &[]));
    let (OpKind::CopyWait { dst: a, sem: b, .. }, OpKind::CopyWait { dst: c, sem: d, .. }) =
        (&oldest[1], &new[1])
    else {
        panic!("{oldest:?}");
    };
    assert_eq!((a, b), (c, d));
}

#[test]
fn signals_had_no_cores() {
    let signal = |sizes: &[i64], device: bool| {
        let kernel = kernel(&["memref<!tpu.semaphore, semaphore_mem>"], |m, args| {
            let (one, three) = (m.constant("i32", 1), m.constant("i32", 3));
            let attributes = if sizes.is_empty() { vec![] } else { segments(m, sizes) };
            let mut operands = vec![args[0], one];
            operands.extend(device.then_some(three));
            m.effect("tpu.sem_signal", &operands, &attributes);
        });
        kernel.body.ops.last().unwrap().kind.clone()
    };
    assert_eq!(signal(&[], false), signal(&[1, 1, 0, 0, 0], false));
    assert_eq!(signal(&[1, 1, 1, 0], true), signal(&[1, 1, 1, 0, 0], true));
    assert_eq!(signal(&[], true), signal(&[1, 1, 1, 0, 0], true));
    let mut m = Make::new();
    m.main(&["memref<!tpu.semaphore, semaphore_mem>"], |m, args| {
        // The first core is this one, the second is not there.
        let one = m.constant("i32", 1);
        let attributes = segments(m, &[1, 1, 0, 1, 0]);
        let zero = m.constant("i32", 0);
        m.effect("tpu.sem_signal", &[args[0], one, zero], &attributes);
        m.effect("tpu.sem_signal", &[args[0], one, one], &attributes);
    });
    assert!(m.refusal().contains("`core_id`"), "{}", m.refusal());
}
