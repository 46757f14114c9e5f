//! A case: one operation on inputs of its own. Many make one kernel, so that a compiler takes them all in one go.

use kernel_ir::ir::{DType, Kernel, MemorySpace, Offset, OpKind, Role, Type, Value};

use crate::build::Builder;

/// A tile of whole registers for every element type.
pub(crate) const SHAPE: &[usize] = &[32, 128];

type Body = Box<dyn Fn(&mut Builder, &[Value]) -> Value>;

/// One operation, from inputs to an output: tiles in VMEM, or scalars in SMEM.
pub(crate) struct Case {
    pub(crate) name: String,
    ins: Vec<(DType, Vec<usize>)>,
    out: (DType, Vec<usize>),
    space: MemorySpace,
    body: Body,
}

impl Case {
    pub(crate) fn tiles(
        name: &str,
        ins: &[(DType, &[usize])],
        out: (DType, &[usize]),
        body: impl Fn(&mut Builder, &[Value]) -> Value + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            ins: ins.iter().map(|(d, s)| (*d, s.to_vec())).collect(),
            out: (out.0, out.1.to_vec()),
            space: MemorySpace::Vmem,
            body: Box::new(body),
        }
    }

    pub(crate) fn scalars(
        name: &str,
        ins: &[DType],
        out: DType,
        body: impl Fn(&mut Builder, &[Value]) -> Value + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            ins: ins.iter().map(|d| (*d, vec![8])).collect(),
            out: (out, vec![8]),
            space: MemorySpace::Smem,
            body: Box::new(body),
        }
    }

    fn add_to(&self, b: &mut Builder, at: usize) {
        let text = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>();
        let array = |b: &mut Builder, name: String, role, (dtype, shape): &(DType, Vec<usize>)| {
            let shape = text(shape);
            let shape: Vec<&str> = shape.iter().map(String::as_str).collect();
            b.whole(&name, role, *dtype, &shape, self.space)
        };
        let ins = self.ins.iter().enumerate();
        let refs: Vec<_> = ins.map(|(i, t)| array(b, format!("x{at}_{i}"), Role::Input, t)).collect();
        let out = array(b, format!("y{at}"), Role::Output, &self.out);
        let scalar = self.space == MemorySpace::Smem;
        let offsets = vec![Offset::Const(0)];
        let mut xs = vec![];
        for (base, (d, shape)) in refs.into_iter().zip(&self.ins) {
            let offsets = offsets.clone();
            xs.push(match scalar {
                true => b.op(OpKind::LoadScalar { base, offsets }, Type::Scalar(*d)),
                false => b.load(base, *d, shape),
            });
        }
        let value = (self.body)(b, &xs);
        match scalar {
            true => b.effect(OpKind::StoreScalar { base: out, offsets, value }),
            false => b.store(out, value),
        }
    }
}

/// All cases in one kernel without a grid.
pub(crate) fn together(name: &str, cases: &[&Case]) -> Kernel {
    let mut b = Builder::new(name);
    for (at, case) in cases.iter().enumerate() {
        case.add_to(&mut b, at);
    }
    b.finish()
}
