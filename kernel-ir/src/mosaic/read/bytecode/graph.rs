//! Checks that attributes and types do not lead to themselves, and that what they lead to is small enough to walk through.

use super::super::module::{AttrId, Attribute, Type, TypeId};
use super::fault::{Budget, Fallible, Fault};

/// The longest chain of attributes and types, each named by the one before.
pub(super) const DEEPEST: u16 = 256;

/// The most attributes and types that one holds, counting what is named twice twice.
pub(super) const LARGEST: u32 = 1 << 16;

/// Attributes and types as one graph: types first.
struct Graph<'a> {
    types: &'a [Type],
    attributes: &'a [Attribute],
}

/// What is known of a node.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// It is on the path that is being walked.
    Open,
    /// It holds so many nodes, in chains of so many.
    Done(u32, u16),
}

/// A node on the path: its number, which of its children is next, and what those before hold.
struct Step {
    node: u32,
    next: usize,
    size: u32,
    depth: u16,
}

impl Graph<'_> {
    fn len(&self) -> usize {
        self.types.len() + self.attributes.len()
    }

    fn ty(&self, id: TypeId) -> u32 {
        id.0
    }

    fn attribute(&self, id: AttrId) -> u32 {
        self.types.len() as u32 + id.0
    }

    /// The `i`-th node that a node names.
    fn child(&self, node: u32, i: usize) -> Option<u32> {
        match node.checked_sub(self.types.len() as u32) {
            None => self.child_of_type(&self.types[node as usize], i),
            Some(a) => self.child_of_attribute(&self.attributes[a as usize], i),
        }
    }

    fn child_of_type(&self, ty: &Type, i: usize) -> Option<u32> {
        match ty {
            Type::Vector { element, .. } | Type::Tensor { element, .. } => {
                (i == 0).then(|| self.ty(*element))
            }
            Type::MemRef { element, layout, space, .. } => {
                let others = [
                    Some(self.ty(*element)),
                    layout.map(|a| self.attribute(a)),
                    space.map(|a| self.attribute(a)),
                ];
                others.into_iter().flatten().nth(i)
            }
            Type::Function { inputs, results } => {
                let id = inputs.get(i).or_else(|| results.get(i.checked_sub(inputs.len())?));
                id.map(|t| self.ty(*t))
            }
            Type::Integer { .. } | Type::Index | Type::None | Type::Float(_) | Type::Opaque(_) => None,
        }
    }

    fn child_of_attribute(&self, attribute: &Attribute, i: usize) -> Option<u32> {
        match attribute {
            Attribute::Integer { ty, .. } | Attribute::Float { ty, .. } | Attribute::Dense { ty, .. } => {
                (i == 0).then(|| self.ty(*ty))
            }
            Attribute::Type(ty) => (i == 0).then(|| self.ty(*ty)),
            Attribute::DenseArray { element, .. } | Attribute::DenseFloats { element, .. } => {
                (i == 0).then(|| self.ty(*element))
            }
            Attribute::Array(all) | Attribute::FusedLoc(all) => all.get(i).map(|a| self.attribute(*a)),
            Attribute::Dictionary(all) => all.get(i).map(|(_, a)| self.attribute(*a)),
            Attribute::NameLoc { child, .. } => (i == 0).then(|| self.attribute(*child)),
            Attribute::CallLoc { callee, caller } => [callee, caller].get(i).map(|a| self.attribute(**a)),
            Attribute::Unit
            | Attribute::String(_)
            | Attribute::Symbol(_)
            | Attribute::AffineMap { .. }
            | Attribute::UnknownLoc
            | Attribute::FileLoc(_)
            | Attribute::Opaque(_) => None,
        }
    }
}

/// Checks a module's tables. `at` is where they stand in the file.
pub(super) fn check(
    at: usize,
    types: &[Type],
    attributes: &[Attribute],
    budget: &mut Budget,
) -> Fallible<()> {
    let graph = Graph { types, attributes };
    let mut marks: Vec<Mark> = budget.vec(at, graph.len())?;
    marks.resize(graph.len(), Mark::New);
    let mut path: Vec<Step> = vec![];
    for root in 0..graph.len() as u32 {
        if marks[root as usize] == Mark::New {
            path.push(Step { node: root, next: 0, size: 1, depth: 1 });
        }
        while let Some(length) = path.len().checked_sub(1) {
            let step = &mut path[length];
            marks[step.node as usize] = Mark::Open;
            let Some(child) = graph.child(step.node, step.next) else {
                marks[step.node as usize] = Mark::Done(step.size, step.depth);
                path.pop();
                continue;
            };
            match marks[child as usize] {
                Mark::New if length + 1 >= DEEPEST as usize => return Err(too_much(at)),
                Mark::New => path.push(Step { node: child, next: 0, size: 1, depth: 1 }),
                Mark::Open => return Err(Fault::malformed(at, "an attribute or a type holds itself")),
                Mark::Done(size, depth) => {
                    step.next += 1;
                    step.size = step.size.saturating_add(size);
                    step.depth = step.depth.max(depth + 1);
                    if step.size > LARGEST || step.depth > DEEPEST {
                        return Err(too_much(at));
                    }
                }
            }
        }
    }
    Ok(())
}

fn too_much(at: usize) -> Fault {
    Fault::limit(
        at,
        format!(
            "an attribute or a type holds more than {LARGEST} others, or in chains of more than {DEEPEST}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(attributes: &[Attribute]) -> Fallible<()> {
        check(0, &[], attributes, &mut Budget::of(1000))
    }

    #[test]
    fn what_holds_itself_is_refused() {
        let array = |ids: &[u32]| Attribute::Array(ids.iter().map(|i| AttrId(*i)).collect());
        assert!(run(&[array(&[1]), array(&[])]).is_ok());
        assert!(run(&[array(&[0])]).is_err());
        assert!(run(&[array(&[1]), array(&[2, 0]), Attribute::Unit]).is_err());
    }

    #[test]
    fn a_small_graph_that_is_a_large_tree_is_refused() {
        let twice = |i: u32| Attribute::Array(vec![AttrId(i + 1), AttrId(i + 1)]);
        let tower = |n: u32| (0..n).map(twice).chain([Attribute::Unit]).collect::<Vec<_>>();
        assert!(run(&tower(14)).is_ok());
        assert!(run(&tower(17)).is_err());
        let chain = |n: u32| (0..n).map(|i| Attribute::Array(vec![AttrId(i + 1)])).chain([Attribute::Unit]);
        assert!(run(&chain(255).collect::<Vec<_>>()).is_ok());
        assert!(run(&chain(256).collect::<Vec<_>>()).is_err());
        let upward = (0..300).map(|i| match i {
            0 => Attribute::Unit,
            i => Attribute::Array(vec![AttrId(i - 1)]),
        });
        assert!(run(&upward.collect::<Vec<_>>()).is_err());
    }
}
