//! K0001, K0003: broken tables and regions are refused, at a place that exists.

use kernel_ir::ir::*;

use super::builder::*;

#[test]
fn a_well_formed_kernel_passes() {
    with_blocks(|_, _, _| {}).facts();
}

fn broken(f: impl FnOnce(&mut Kernel)) -> Vec<&'static str> {
    let mut kernel = with_blocks(|b, x, _| {
        let (lo, hi) = (b.int(0), b.int(4));
        b.range(lo, hi, |b, _| {
            b.read(x);
        });
    })
    .finish();
    f(&mut kernel);
    codes(&kernel)
}

fn body_for(kernel: &mut Kernel) -> &mut Block {
    let op = kernel.body.ops.iter_mut().find_map(|op| match &mut op.kind {
        OpKind::For { body, .. } => Some(body),
        _ => None,
    });
    op.unwrap()
}

#[test]
fn indices_outside_their_tables_are_found() {
    assert_eq!(broken(|k| k.spans.clear()), ["K0001"]);
    assert_eq!(broken(|k| k.span = Span(99)), ["K0001"]);
    assert_eq!(broken(|k| k.values[0].span = Span(99)), ["K0001"]);
    assert_eq!(broken(|k| k.params[0].span = Span(99)), ["K0001"]);
    assert_eq!(broken(|k| k.body.ops[0].span = Span(99)), ["K0001"]);
    assert_eq!(broken(|k| k.params[0].value = Value(999)), ["K0001"]);
    assert_eq!(broken(|k| k.body.ops[0].results = vec![Value(999)]), ["K0001"]);
    assert_eq!(broken(|k| k.params[0].window.as_mut().unwrap().span = Span(99)), ["K0001"]);
}

#[test]
fn a_value_is_made_once_and_before_its_use() {
    assert_eq!(broken(|k| k.body.ops.swap(0, 1)), [""; 0]);
    assert_eq!(broken(|k| k.body.ops.reverse()), ["K0001"]);
    assert_eq!(
        broken(|k| {
            let op = k.body.ops[0].clone();
            k.body.ops.push(op);
        }),
        ["K0001"]
    );
}

#[test]
fn a_value_ends_with_its_region() {
    let codes = broken(|k| {
        let inner = body_for(k).ops[0].results[0];
        let Some(OpKind::Store { value, .. }) = k.body.ops.last_mut().map(|op| &mut op.kind) else {
            unreachable!()
        };
        *value = inner;
    });
    assert_eq!(codes, ["K0001"]);
}

#[test]
fn what_a_region_takes_and_yields_matches() {
    assert_eq!(broken(|k| body_for(k).args.clear()), ["K0001"]);
    assert_eq!(
        broken(|k| {
            let x = k.params[0].value;
            body_for(k).results.push(x);
        }),
        ["K0001"]
    );
    assert_eq!(broken(|k| k.body.results.push(k.params[0].value)), ["K0001"]);
    assert_eq!(broken(|k| k.body.ops[0].results.clear()), ["K0001"]);
}

#[test]
fn nesting_is_bounded() {
    let mut b = with_blocks(|_, _, _| {});
    let p = b.program_id(0);
    let cond = b.flag(p);
    let mut inner = Block::default();
    for _ in 0..70 {
        let kind = OpKind::If { cond, then: inner, otherwise: Block::default() };
        inner = Block { ops: vec![Op { kind, results: vec![], span: Span(0) }], ..Block::default() };
    }
    let mut kernel = b.finish();
    kernel.body.ops.extend(inner.ops);
    assert_eq!(codes(&kernel), ["K0001"]);
}

#[test]
fn a_grid_extent_is_a_count() {
    assert_eq!(broken(|k| k.grid[0].extent = DimExpr::Const(-1)), ["K0001"]);
    assert_eq!(broken(|k| k.grid[0].extent = DimExpr::Const(1 << 40)), ["K0001"]);
}

#[test]
fn a_parameter_fits_its_array() {
    fn wrong(f: impl FnOnce(&mut Param)) -> Vec<&'static str> {
        broken(|k| f(&mut k.params[0]))
    }
    assert_eq!(wrong(|p| p.array = None), ["K0003"]);
    assert_eq!(wrong(|p| p.array.as_mut().unwrap().dtype = I32), ["K0003"]);
    assert_eq!(wrong(|p| p.array.as_mut().unwrap().shape[0] = DimExpr::Const(-8)), ["K0003"]);
    assert_eq!(wrong(|p| p.array.as_mut().unwrap().shape[0] = DimExpr::Const(1 << 60)), ["K0003"]);
    assert_eq!(wrong(|p| p.window.as_mut().unwrap().block = vec![8, 256]), ["K0003"]);
    assert_eq!(wrong(|p| p.window = None), [""; 0]);
    assert_eq!(wrong(|p| p.role = Role::Scratch), ["K0003"]);
    assert_eq!(wrong(|p| p.role = Role::Prefetch), ["K0003"]);
}
