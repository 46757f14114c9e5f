//! What is known of the call of a module: the types of its operands and results.

use crate::ir::ArrayType;

/// How a module is called, as far as that is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallTypes {
    /// The operands of the custom call, in order: grid bounds that the call fixes (`i32[]`), prefetched arrays, inputs.
    pub operands: Option<Vec<ArrayType>>,
    /// The results of the custom call, in order.
    pub results: Vec<ArrayType>,
}
