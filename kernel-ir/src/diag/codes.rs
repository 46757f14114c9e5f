//! The table of codes: each with the title and the explanation that `kernels-cli explain` prints.

/// What a code means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeDoc {
    /// E.g. `K0105`.
    pub code: &'static str,
    /// One phrase.
    pub title: &'static str,
    /// A paragraph: why it is an error, an example, and what to do.
    pub text: &'static str,
}

/// Every code, sorted.
pub const ALL: &[CodeDoc] = &[];

/// The documentation of a code.
pub fn explain(code: &str) -> Option<&'static CodeDoc> {
    ALL.iter().find(|d| d.code.eq_ignore_ascii_case(code))
}
