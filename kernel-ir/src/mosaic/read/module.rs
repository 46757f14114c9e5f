//! A module as it stands in MLIR: operations with operands, attributes and regions, before anything is made of them.
//!
//! Types, attributes and locations are kept once, in tables, and named by index: a small file can repeat a large type
//! many times.

use std::sync::Arc;

use crate::diag::SourceLoc;

/// An index into [`Module::types`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TypeId(pub(crate) u32);

/// An index into [`Module::attributes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AttrId(pub(crate) u32);

/// A value of the module: an index into [`Module::values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ValueId(pub(crate) u32);

/// A module.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Module {
    /// The symbol name, when it has one.
    pub(crate) name: Option<Arc<str>>,
    /// `stable_mosaic.version`; `None` when the operations have the names of their own dialects.
    pub(crate) version: Option<i64>,
    /// Top-level operations: functions.
    pub(crate) body: Vec<Operation>,
    /// By [`TypeId`].
    pub(crate) types: Vec<Type>,
    /// By [`AttrId`].
    pub(crate) attributes: Vec<Attribute>,
    /// By [`ValueId`]: the type.
    pub(crate) values: Vec<TypeId>,
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Operation {
    /// The name in its own dialect, as `vector.load`: `stable_mosaic.` is taken off.
    pub(crate) name: Arc<str>,
    pub(crate) operands: Vec<ValueId>,
    pub(crate) results: Vec<ValueId>,
    /// The attribute dictionary, inherent and discardable ones alike; names are unique.
    pub(crate) attributes: Option<AttrId>,
    pub(crate) regions: Vec<Region>,
    /// The location: an attribute of the kinds that end in `Loc`.
    pub(crate) location: Option<AttrId>,
}

/// A region. Mosaic's have one block; the reader takes more, and whoever needs one says so.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Region {
    pub(crate) blocks: Vec<Block>,
}

/// A block.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Block {
    pub(crate) arguments: Vec<ValueId>,
    pub(crate) operations: Vec<Operation>,
}

/// A type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Type {
    /// `i1` to `i64`, without signedness unless said.
    Integer {
        bits: u32,
        signedness: Signedness,
    },
    Index,
    None,
    /// A floating-point type, by its MLIR name: `f32`, `bf16`, `f8E4M3FN`.
    Float(Arc<str>),
    /// `vector<8x128xf32>`
    Vector {
        shape: Vec<i64>,
        element: TypeId,
    },
    /// `tensor<i32>`; `None` for a length that is not known.
    Tensor {
        shape: Vec<Option<i64>>,
        element: TypeId,
    },
    /// `memref<8x?xf32, layout, space>`; `None` for a length that is not known.
    MemRef {
        shape: Vec<Option<i64>>,
        element: TypeId,
        /// The layout map, when it is not the identity.
        layout: Option<AttrId>,
        space: Option<AttrId>,
    },
    Function {
        inputs: Vec<TypeId>,
        results: Vec<TypeId>,
    },
    /// A type of another dialect, as text: `!tpu.dma_semaphore`.
    Opaque(Arc<str>),
}

/// Whether an integer type has a sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signedness {
    Signless,
    Signed,
    Unsigned,
}

/// An attribute.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Attribute {
    Unit,
    /// An integer or `index` attribute, sign-extended from its type's width; a `bool` is 0 or 1.
    Integer {
        ty: TypeId,
        value: i64,
    },
    /// A float attribute, exact in `f64` for all types up to 64 bits.
    Float {
        ty: TypeId,
        value: f64,
    },
    String(Arc<str>),
    /// A reference to a symbol of the module, without the `@`.
    Symbol(Arc<str>),
    Type(TypeId),
    Array(Vec<AttrId>),
    /// In the order written.
    Dictionary(Vec<(Arc<str>, AttrId)>),
    /// `array<i32: 1, 2>`, sign-extended; booleans are 0 or 1.
    DenseArray {
        element: TypeId,
        values: Vec<i64>,
    },
    /// `array<f32: 1.0>`
    DenseFloats {
        element: TypeId,
        values: Vec<f64>,
    },
    /// A `dense<..>` constant of this vector or tensor type: the raw little-endian elements, or those of one element
    /// when it is a splat. An `i1` takes one byte, 0 or 1, whatever the file's encoding.
    Dense {
        ty: TypeId,
        splat: bool,
        data: Vec<u8>,
    },
    /// An affine map: results over dims and symbols.
    AffineMap {
        dims: usize,
        symbols: usize,
        results: Vec<AffineExpr>,
    },
    /// `loc(unknown)`
    UnknownLoc,
    /// `loc("file":line:column)`
    FileLoc(SourceLoc),
    /// `loc("name"(child))`
    NameLoc {
        name: Arc<str>,
        child: AttrId,
    },
    /// `loc(callsite(callee at caller))`
    CallLoc {
        callee: AttrId,
        caller: AttrId,
    },
    /// `loc(fused[..])`
    FusedLoc(Vec<AttrId>),
    /// An attribute of another dialect, as text: `#tpu.memory_space<vmem>`.
    Opaque(Arc<str>),
}

/// An affine expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AffineExpr {
    Dim(usize),
    Symbol(usize),
    Constant(i64),
    Add(Box<(AffineExpr, AffineExpr)>),
    Mul(Box<(AffineExpr, AffineExpr)>),
    Mod(Box<(AffineExpr, AffineExpr)>),
    FloorDiv(Box<(AffineExpr, AffineExpr)>),
    CeilDiv(Box<(AffineExpr, AffineExpr)>),
}

impl Module {
    /// The type of a type id.
    pub(crate) fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The attribute of an attribute id.
    pub(crate) fn attr(&self, id: AttrId) -> &Attribute {
        &self.attributes[id.0 as usize]
    }

    /// The type of a value.
    pub(crate) fn type_of(&self, v: ValueId) -> &Type {
        self.ty(self.values[v.0 as usize])
    }

    /// An attribute of an operation, by name.
    pub(crate) fn attribute(&self, op: &Operation, name: &str) -> Option<&Attribute> {
        let Attribute::Dictionary(entries) = self.attr(op.attributes?) else {
            return None;
        };
        entries.iter().find(|(n, _)| **n == *name).map(|(_, a)| self.attr(*a))
    }

    /// The innermost place in a file that a location leads to.
    pub(crate) fn place(&self, location: Option<AttrId>) -> Option<&SourceLoc> {
        let mut at = location?;
        // Locations nest; the table bounds how often one may lead to another.
        for _ in 0..64 {
            at = match self.attr(at) {
                Attribute::FileLoc(loc) => return Some(loc),
                Attribute::NameLoc { child, .. } => *child,
                Attribute::CallLoc { callee, .. } => *callee,
                Attribute::FusedLoc(all) => *all.first()?,
                _ => return None,
            };
        }
        None
    }
}
