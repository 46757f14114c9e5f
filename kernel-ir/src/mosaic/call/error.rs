//! What can go wrong between reading an index and calling a module.

/// Why an index cannot be used, or a module cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// `index.json` breaks its contract.
    #[error("index.json is not valid: {at}: {problem}")]
    Index {
        /// Where in the file: `ops.ragged_dot.modules[0].file`.
        at: String,
        /// What is wrong there.
        problem: String,
    },
    /// An expression over dims has no value.
    #[error("`{expr}` has no value: {problem}")]
    Expr {
        /// The expression, in infix form.
        expr: String,
        /// Why: a division by zero, an overflow, a dim that is not bound.
        problem: String,
    },
    /// The arguments do not fit the operation's interface.
    #[error("{problem}")]
    Arguments {
        /// Which argument, what it should be, what it is.
        problem: String,
    },
    /// The operation has no module for these dtypes, dims and generation.
    #[error("no module of `{op}` serves this call:{}", list(.reasons))]
    NoModule {
        /// The operation.
        op: String,
        /// One line a module: its file, and why it was passed over.
        reasons: Vec<String>,
    },
    /// The bytes of a module are not the bytes that the index describes.
    #[error("`{file}` is not the module that the index describes: {problem}")]
    Body {
        /// The file's path inside the variant.
        file: String,
        /// Length or digest, expected and found.
        problem: String,
    },
}

impl CallError {
    /// The error's stable code.
    pub fn code(&self) -> &'static str {
        match self {
            CallError::Index { .. } => "K0701",
            CallError::Expr { .. } => "K0702",
            CallError::Arguments { .. } => "K0703",
            CallError::NoModule { .. } => "K0704",
            CallError::Body { .. } => "K0705",
        }
    }

    pub(crate) fn index(at: impl Into<String>, problem: impl Into<String>) -> CallError {
        CallError::Index { at: at.into(), problem: problem.into() }
    }

    pub(crate) fn arguments(problem: impl Into<String>) -> CallError {
        CallError::Arguments { problem: problem.into() }
    }
}

fn list(reasons: &[String]) -> String {
    if reasons.is_empty() {
        return " it has none".to_owned();
    }
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}
