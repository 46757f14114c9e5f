//! The properties that operations of MLIR's own dialects have in bytecode of version 5 and 6, where each operation has an
//! encoding of its own. Modules in Mosaic's stable form have none: their operations are of no dialect that MLIR knows.

/// A property: its name, and how it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Property {
    /// An attribute.
    Attribute(&'static str),
    /// An attribute, or none.
    Optional(&'static str),
    /// How many operands each group of so many has: an attribute in version 5, from 6 on behind all other properties.
    Segments(usize),
}

/// The name of the attribute that [`Property::Segments`] stands for.
pub(super) const SEGMENTS: &str = "operandSegmentSizes";

use Property::{Attribute as A, Optional as O, Segments};

/// The properties of an operation in the order in which MLIR 22 and 24 write them; `None` for an operation that is not known
/// or has none.
pub(super) fn of(operation: &str) -> Option<&'static [Property]> {
    Some(match operation {
        "builtin.module" => &[O("sym_name"), O("sym_visibility")],
        "func.func" => &[
            O("arg_attrs"),
            A("function_type"),
            O("no_inline"),
            O("res_attrs"),
            A("sym_name"),
            O("sym_visibility"),
        ],
        "func.call" => &[O("arg_attrs"), A("callee"), O("no_inline"), O("res_attrs")],
        "arith.constant" => &[A("value")],
        "arith.cmpi" => &[A("predicate")],
        "arith.cmpf" => &[O("fastmath"), A("predicate")],
        "arith.addf"
        | "arith.divf"
        | "arith.extf"
        | "arith.maxnumf"
        | "arith.maximumf"
        | "arith.minnumf"
        | "arith.minimumf"
        | "arith.mulf"
        | "arith.negf"
        | "arith.remf"
        | "arith.scaling_extf"
        | "arith.subf"
        | "arith.truncf"
        | "arith.scaling_truncf" => &[O("fastmath"), O("roundingmode")],
        "arith.addi" | "arith.muli" | "arith.shli" | "arith.subi" | "arith.trunci" => &[O("overflowFlags")],
        "arith.divsi" | "arith.divui" | "arith.shrsi" | "arith.shrui" => &[O("isExact")],
        "vector.load" | "vector.store" | "memref.store" => &[O("alignment"), O("nontemporal")],
        // Hints, all three; MLIR 22 has no second one, and its last is taken for that.
        "memref.load" => &[O("alignment"), O("invariant"), O("nontemporal")],
        "vector.constant_mask" => &[A("mask_dim_sizes")],
        "vector.extract" | "vector.insert" => &[A("static_position")],
        "vector.extract_strided_slice" => &[A("offsets"), A("sizes"), A("strides")],
        "vector.insert_strided_slice" => &[A("offsets"), A("strides")],
        "vector.multi_reduction" => &[A("kind"), A("reduction_dims")],
        "vector.reduction" => &[O("fastmath"), A("kind")],
        "vector.shuffle" => &[A("mask")],
        "vector.transpose" | "memref.transpose" => &[A("permutation")],
        "memref.alloc" | "memref.alloca" => &[O("alignment"), Segments(2)],
        "memref.reinterpret_cast" | "memref.subview" => {
            &[Segments(4), A("static_offsets"), A("static_sizes"), A("static_strides")]
        }
        "scf.for" => &[O("unsignedCmp")],
        "scf.index_switch" => &[A("cases")],
        "cf.assert" => &[A("msg")],
        _ if operation.starts_with("math.") => &[O("fastmath"), O("roundingmode")],
        _ => return None,
    })
}
