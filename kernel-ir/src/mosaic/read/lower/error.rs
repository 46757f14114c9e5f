//! What can be wrong with a module: an operation that is not known, a form that is not, and nonsense.

use super::scope::Lower;
use crate::diag::Diagnostic;

impl Lower<'_> {
    /// `K0810` for the operation at hand.
    pub(super) fn unknown(&self) -> Diagnostic {
        let message = format!("`{}` is not an operation that is understood", self.name);
        self.at(Diagnostic::error("K0810", message))
            .help("see `kernels-cli explain K0810` for those that are")
    }

    /// `K0811` for the operation at hand: `what` follows its name, and names the attribute or type in question.
    pub(super) fn unsupported(&self, what: impl std::fmt::Display) -> Diagnostic {
        self.at(Diagnostic::error("K0811", format!("`{}` {what}, which is not supported", self.name)))
    }

    /// `K0812` for the operation at hand: `what` follows its name.
    pub(super) fn malformed(&self, what: impl std::fmt::Display) -> Diagnostic {
        self.at(Diagnostic::error("K0812", format!("`{}` {what}", self.name)))
            .help("the module is damaged, or was written for another version of Mosaic than it says")
    }

    fn at(&self, d: Diagnostic) -> Diagnostic {
        d.at(self.places.loc(self.span).clone(), "in this operation")
    }
}
