//! Takes libtpu's messages apart: its error code, the sentence, the user's lines, the operation, VMEM sizes.

use crate::diag::SourceLoc;

use super::location;

/// A message of libtpu, in parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Message {
    /// OpenXLA's code, e.g. `E2002`.
    pub(crate) code: Option<String>,
    /// What is wrong, without the frame around it.
    pub(crate) headline: String,
    /// The source places of the operation, innermost first.
    pub(crate) places: Vec<SourceLoc>,
    /// Line and column in the module, when it was given as text and says nothing of its source.
    pub(crate) position: Option<(u32, u32)>,
    /// The operation as the compiler prints it.
    pub(crate) operation: Option<String>,
    /// VMEM needed and allowed, as the compiler writes them (`17.00M`).
    pub(crate) vmem: Option<(String, String)>,
    /// The largest VMEM allocations.
    pub(crate) allocations: Vec<String>,
}

const AT: &str = "\n\nat location: ";
const INVOLVED: &str = "The MLIR operation involved:";
const MAX_HEADLINE: usize = 600;
const MAX_OPERATION: usize = 240;
const MAX_ALLOCATIONS: usize = 6;

/// Takes a message apart.
pub(crate) fn parse(text: &str) -> Message {
    let mut message = Message::default();
    let body = strip_frame(text);
    let (code, body) = split_code(body);
    message.code = code;
    message.headline = headline(body);
    let places = text
        .find(AT)
        .and_then(|at| location::first(&text[at..]))
        .or_else(|| printed_place(text))
        .or_else(|| metadata_place(text))
        .unwrap_or_default();
    // A module given as text has the file name `-`: its lines are the module's own.
    let (own, places): (Vec<SourceLoc>, _) = places.into_iter().partition(|place| &*place.file == "-");
    message.position = own.first().filter(|_| places.is_empty()).map(|place| (place.line, place.column));
    message.places = places;
    message.operation = text.split_once(INVOLVED).and_then(|(_, rest)| {
        let line = rest.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(shorten(line, MAX_OPERATION))
    });
    message.vmem = between(text, "Scoped allocation with size ", " and limit ", " ")
        .or_else(|| between(text, "memory space vmem. Used ", " of ", " "));
    message.allocations = allocations(text);
    message
}

/// Drops `INVALID_ARGUMENT: ` and ``Mosaic failed to compile TPU kernel with .. HLO name `name.1`: ``.
fn strip_frame(text: &str) -> &str {
    let text = match text.split_once(": ") {
        Some((status, rest)) if status.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') => rest,
        _ => text,
    };
    if !text.starts_with("Mosaic failed to compile TPU kernel") {
        return text;
    }
    text.split_once("HLO name `").and_then(|(_, rest)| rest.split_once("`: ")).map_or(text, |(_, rest)| rest)
}

/// Splits off `E2002: CompileTimeSomething:`, which may follow a few words of context that belong to the sentence.
fn split_code(text: &str) -> (Option<String>, String) {
    let words: Vec<&str> = text.splitn(64, ' ').collect();
    let is_code = |word: &&str| {
        let digits = word.strip_prefix('E').and_then(|word| word.strip_suffix(':'));
        digits.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let Some(at) = words.iter().position(is_code) else { return (None, text.to_owned()) };
    let code = words[at].trim_end_matches(':').to_owned();
    let rest = words[at + 1..].join(" ");
    let sentence = rest.split_once(':').map_or(rest.as_str(), |(_name, sentence)| sentence);
    (Some(code), [&words[..at], &[sentence.trim_start()]].concat().join(" "))
}

/// The first paragraph, on one line, up to where the compiler prints the operation.
fn headline(body: String) -> String {
    if let Some((head, error)) = body.split_once(": error: ") {
        let (context, _place) = head.rsplit_once([' ', '\n']).unwrap_or(("", head));
        let error = error.lines().next().unwrap_or("");
        return shorten(format!("{context} {error}").trim(), MAX_HEADLINE);
    }
    let end = ["\n\n", "\nSee https:", ": %", ": \""].iter().filter_map(|stop| body.find(stop)).min();
    let sentence = &body[..end.unwrap_or(body.len())];
    // The rest of a VMEM message repeats the whole HLO line.
    let sentence = match sentence.split_once(" while allocating on stack for ") {
        Some((head, _)) => head,
        None => sentence,
    };
    let line = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(line.trim_end_matches(['.', ':']), MAX_HEADLINE)
}

/// `kernels/add.rs:20:9: error: ..`, as MLIR's parser and verifier print.
fn printed_place(text: &str) -> Option<Vec<SourceLoc>> {
    let (head, _) = text.split_once(": error: ")?;
    let place = head.rsplit(['\n', ' ']).next()?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let file = parts.next()?;
    Some(vec![SourceLoc { file: file.into(), line, column }])
}

/// `metadata={source_file="k.rs" source_line=3 .. source_column=7 ..}`, as HLO prints.
fn metadata_place(text: &str) -> Option<Vec<SourceLoc>> {
    let file = text.split_once("source_file=\"")?.1.split_once('"')?.0;
    let number = |name: &str| -> Option<u32> {
        let rest = text.split_once(name)?.1;
        rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
    };
    let (line, column) = (number(" source_line=")?, number(" source_column=").unwrap_or(0));
    Some(vec![SourceLoc { file: file.into(), line, column }])
}

fn between(text: &str, before: &str, middle: &str, after: &str) -> Option<(String, String)> {
    let (left, rest) = text.split_once(before)?.1.split_once(middle)?;
    let right = rest.split_once(after).map_or(rest, |(right, _)| right);
    Some((left.to_owned(), right.to_owned()))
}

/// `128.00M: input window allocation for operator input 0. ..`, from the list in a message about capacity.
fn allocations(text: &str) -> Vec<String> {
    let entries = text.split(". Size: ").skip(1).take(MAX_ALLOCATIONS);
    let describe = |entry: &str| {
        let size = entry.lines().next()?.trim();
        let tag = entry.split_once("Tag: ")?.1.lines().next()?;
        let words: Vec<&str> =
            tag.split(". ").filter(|sentence| !sentence.starts_with("The u8 shape")).collect();
        Some(format!("{size}: {}", words.join(". ").trim_end_matches('.')))
    };
    entries.filter_map(describe).collect()
}

fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Message, parse};

    const UNPROVEN: &str = "Mosaic failed to compile TPU kernel with MLIR module name `k` HLO name `name.1`: E2003: \
        CompileTimeMosaicUnprovenMemoryAccessAlignment: cannot statically prove that index in dimension 1 is a \
        multiple of 128\nSee https://openxla.org/xla/errors/error_2003 for more details.\n\nat location: \
        loc(\"dyn\"(\"k.rs\":7:9))\n\nThe MLIR operation involved:\n  %3 = \"xir.vector_load\"(%arg1, %0, %2) \
        <{strides = array<i32>}> : (memref<8x256xf32>, index, index) -> vector<8x128xf32>\n\nPlease report a bug";
    const SCOPED: &str = "E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on \
        stack for %name.1 = f32[8,8]{1,0:T(8,128)} custom-call(%Arg_0.1), metadata={source_file=\"k.rs\" source_line=3 \
        source_end_line=3 source_column=7 source_end_column=7}. Scoped allocation with size 32.00M and limit 16.00M \
        exceeded scoped vmem limit by 16.00M.\nSee https://openxla.org/xla/errors/error_1001 for more details.";
    const CAPACITY: &str = "XLA:TPU compile permanent error. Ran out of memory in memory space vmem. Used 256.00M of \
        127.94M vmem. Exceeded vmem capacity by 128.06M.\n\nProgram vmem requirement 256.00M:\n    scoped  256.00M\n\n  \
        Largest program allocations in vmem:\n\n  1. Size: 128.00M\n     Shape: u8[134217728]{0}\n     Tag: input window \
        allocation for operator input 0. The window shape is f32[4096,4096]. The u8 shape/size shown above represents \
        the raw byte size of this window in VMEM. This allocation has 2 buffering levels.\n     Allocation type: scoped\n";
    const MISALIGNED: &str = "INVALID_ARGUMENT: Mosaic failed to compile TPU kernel with MLIR module name `k` HLO name \
        `name.1`: Failed to set window params for input 0: E2002: CompileTimeMosaicMisalignedBlockAndTiling:\nOperand of \
        shape (..., 16, 256) has tiling (8, 128), but its block shape (..., 4, 128) is not divisible by tiling evenly nor \
        matches the full shape\nSee https://openxla.org/xla/errors/error_2002 for more details.";
    const VERIFIER: &str = "Failed to parse the Mosaic module: kernels/my_kernel.rs:42:17: error: 'arith.addf' op operand \
        #0 must be floating-point-like, but got 'vector<8x128xi32>'\nkernels/my_kernel.rs:42:17: note: see current \
        operation: %2 = \"arith.addf\"(%1, %1) : (vector<8x128xi32>) -> vector<8x128xi32>\n";
    const TEXT: &str = "Mosaic failed to compile TPU kernel with MLIR module name `k` HLO name `name.1`: failed to \
        legalize operation 'math.cbrt': %9 = \"math.cbrt\"(%8) : (vector<8x128xf32>) -> vector<8x128xf32>\n\nat \
        location: loc(\"-\":5:7)\n\nThe MLIR operation involved:\n  %9 = \"math.cbrt\"(%8)\n";

    fn places(message: &Message) -> Vec<String> {
        message.places.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_operation_is_rejected_at_its_line() {
        let message = parse(UNPROVEN);
        assert_eq!(message.code.as_deref(), Some("E2003"));
        assert_eq!(
            message.headline,
            "cannot statically prove that index in dimension 1 is a multiple of 128"
        );
        assert_eq!(places(&message), ["k.rs:7:9"]);
        assert!(message.operation.unwrap().starts_with("%3 = \"xir.vector_load\"("));
        assert_eq!(message.vmem, None);
    }

    #[test]
    fn vmem_sizes_are_read_from_both_messages() {
        let message = parse(SCOPED);
        assert_eq!(message.code.as_deref(), Some("E1001"));
        assert_eq!(message.headline, "Ran out of memory in memory space vmem");
        assert_eq!(message.vmem, Some(("32.00M".into(), "16.00M".into())));
        assert_eq!(places(&message), ["k.rs:3:7"]);
        let message = parse(CAPACITY);
        assert_eq!(message.vmem, Some(("256.00M".into(), "127.94M".into())));
        let allocation = "128.00M: input window allocation for operator input 0. The window shape is \
            f32[4096,4096]. This allocation has 2 buffering levels";
        assert_eq!(message.allocations, [allocation]);
    }

    #[test]
    fn context_before_the_code_stays_in_the_sentence() {
        let message = parse(MISALIGNED);
        assert_eq!(message.code.as_deref(), Some("E2002"));
        let headline = "Failed to set window params for input 0: Operand of shape (..., 16, 256) has tiling (8, 128), \
            but its block shape (..., 4, 128) is not divisible by tiling evenly nor matches the full shape";
        assert_eq!(message.headline, headline);
    }

    #[test]
    fn the_verifiers_form_of_a_place_is_read_too() {
        let message = parse(VERIFIER);
        assert_eq!(places(&message), ["kernels/my_kernel.rs:42:17"]);
        let headline = "Failed to parse the Mosaic module: 'arith.addf' op operand #0 must be floating-point-like, but \
            got 'vector<8x128xi32>'";
        assert_eq!(message.headline, headline);
    }

    #[test]
    fn a_line_of_the_modules_own_text_is_no_source_place() {
        let message = parse(TEXT);
        assert_eq!(message.headline, "failed to legalize operation 'math.cbrt'");
        assert_eq!(message.position, Some((5, 7)));
        assert!(message.places.is_empty());
    }

    proptest! {
        #[test]
        fn no_message_is_too_strange(
            sample in prop::sample::select(vec![UNPROVEN, SCOPED, CAPACITY, MISALIGNED, VERIFIER, TEXT]),
            at in any::<prop::sample::Index>(),
            junk in "\\PC{0,8}",
        ) {
            let mut end = at.index(sample.len());
            while !sample.is_char_boundary(end) { end -= 1; }
            parse(&format!("{}{junk}{}", &sample[..end], &sample[end..]));
            parse(&format!("{}{junk}", &sample[..end]));
            parse(&junk);
        }
    }
}
