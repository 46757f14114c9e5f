//! What is wrong with a module's bytes, and how much memory they may take.

use crate::diag::Diagnostic;

pub(super) type Fallible<T> = Result<T, Fault>;

/// Why bytes are no module, and where.
#[derive(Debug)]
pub(super) struct Fault {
    code: &'static str,
    message: String,
    /// The byte of the file.
    at: Option<usize>,
}

impl Fault {
    /// Bytes that are not what stands there in MLIR's bytecode.
    pub(super) fn malformed(at: usize, message: impl Into<String>) -> Self {
        Self { code: "K0801", message: message.into(), at: Some(at) }
    }

    /// Bytes in a form that only another reader knows.
    pub(super) fn unknown(at: usize, message: impl Into<String>) -> Self {
        Self { code: "K0802", message: message.into(), at: Some(at) }
    }

    /// A module of a version of Mosaic that is not known.
    pub(super) fn version(message: impl Into<String>) -> Self {
        Self { code: "K0803", message: message.into(), at: None }
    }

    /// More than the limits allow.
    pub(super) fn limit(at: usize, message: impl Into<String>) -> Self {
        Self { code: "K0804", message: message.into(), at: Some(at) }
    }
}

impl From<Fault> for Diagnostic {
    fn from(f: Fault) -> Self {
        let place = f.at.map(|at| format!(" (byte {at})")).unwrap_or_default();
        Diagnostic::error(f.code, format!("{}{place}", f.message))
    }
}

/// Memory that a module may still take. It grows with the file, so that a small file cannot ask for much.
pub(super) struct Budget {
    left: usize,
}

/// What one allocation takes beyond its contents.
const OVERHEAD: usize = 32;

impl Budget {
    /// Bytes of memory for each byte of the file. A module as compilers write it takes about a tenth of that.
    const EACH: usize = 40;
    /// Bytes that any file may take.
    const FLOOR: usize = 1 << 16;

    /// The budget of a file of so many bytes.
    pub(super) fn of(file: usize) -> Self {
        Self { left: file.saturating_mul(Self::EACH).saturating_add(Self::FLOOR) }
    }

    /// Takes memory for `count` values of type `T` in one allocation.
    pub(super) fn take<T>(&mut self, at: usize, count: usize) -> Fallible<()> {
        let bytes = count.saturating_mul(size_of::<T>()).saturating_add(OVERHEAD);
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| Fault::limit(at, "the module takes too much memory for its size"))?;
        Ok(())
    }

    /// An empty vector with room for `count` values, paid for.
    pub(super) fn vec<T>(&mut self, at: usize, count: usize) -> Fallible<Vec<T>> {
        if count == 0 {
            return Ok(vec![]);
        }
        self.take::<T>(at, count)?;
        Ok(Vec::with_capacity(count))
    }
}
