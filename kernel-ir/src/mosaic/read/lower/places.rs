//! Source places: where the author wrote an operation, or else which operation of the module it is.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diag::SourceLoc;
use crate::ir::Span;
use crate::mosaic::read::module::{Module, Operation, Region};

/// The places of a module's operations, each kept once.
pub(super) struct Places<'m> {
    module: &'m Module,
    /// Stands for a file where the module has no locations.
    file: Arc<str>,
    spans: Vec<SourceLoc>,
    known: HashMap<SourceLoc, Span>,
    /// The number of each operation in printed order, from 1; made when an operation without a location is met.
    numbers: Option<HashMap<*const Operation, u32>>,
}

impl<'m> Places<'m> {
    /// The first place is the module as a whole.
    pub(super) fn new(module: &'m Module) -> Self {
        let file: Arc<str> = format!("<{}>", module.name.as_deref().unwrap_or("module")).into();
        let mut places =
            Self { module, file: file.clone(), spans: vec![], known: HashMap::new(), numbers: None };
        places.span(SourceLoc { file, line: 0, column: 0 });
        places
    }

    /// The place of an operation.
    pub(super) fn of(&mut self, op: &'m Operation) -> Span {
        if let Some(loc) = self.module.place(op.location) {
            return self.span(loc.clone());
        }
        let module = self.module;
        let numbers = self.numbers.get_or_insert_with(|| {
            let mut numbers = HashMap::new();
            number(&module.body, &mut numbers);
            numbers
        });
        let line = numbers.get(&std::ptr::from_ref(op)).copied().unwrap_or(0);
        self.span(SourceLoc { file: self.file.clone(), line, column: 1 })
    }

    /// The place of a span.
    pub(super) fn loc(&self, span: Span) -> &SourceLoc {
        self.spans.get(span.0 as usize).unwrap_or(&self.spans[0])
    }

    /// All places, by [`Span`]: `first`, then those that were met.
    pub(super) fn finish(mut self, first: Span) -> Vec<SourceLoc> {
        // A kernel's first place is its launch.
        if let Some(loc) = self.spans.get(first.0 as usize).cloned() {
            self.spans[0] = loc;
        }
        self.spans
    }

    fn span(&mut self, loc: SourceLoc) -> Span {
        if let Some(known) = self.known.get(&loc) {
            return *known;
        }
        let span = Span(u32::try_from(self.spans.len()).unwrap_or(0));
        self.spans.push(loc.clone());
        self.known.insert(loc, span);
        span
    }
}

/// Numbers operations as they are printed: each before those inside it. Nesting has been bounded.
fn number(ops: &[Operation], numbers: &mut HashMap<*const Operation, u32>) {
    for op in ops {
        let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
        numbers.insert(std::ptr::from_ref(op), next);
        for Region { blocks } in &op.regions {
            blocks.iter().for_each(|b| number(&b.operations, numbers));
        }
    }
}
