//! The table of codes: each with the title and the explanation that `kernels-cli explain` prints.
//!
//! The hundreds say which stage found it: `K00` the shape of the IR itself, `K01` recording, `K02` the verifier's
//! data flow, `K03` the launch and the machine, `K04` the CPU executor, `K05` the TPU compiler, `K06` writing Mosaic
//! modules, `K07` calling published ones, `K08` reading Mosaic modules. A code keeps its meaning for ever. Explanations
//! are Markdown, one file a code, in `codes/`.

/// What a code means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeDoc {
    /// E.g. `K0105`.
    pub code: &'static str,
    /// One phrase.
    pub title: &'static str,
    /// Markdown: why it is an error, an example, and what to do.
    pub text: &'static str,
}

macro_rules! table {
    ($($code:literal $title:literal)*) => {
        /// Every code, sorted.
        pub const ALL: &[CodeDoc] = &[$(CodeDoc {
            code: $code,
            title: $title,
            text: include_str!(concat!("codes/", $code, ".md")),
        }),*];
    };
}

table! {
    "K0001" "the kernel's operations do not hang together"
    "K0002" "an operation does not fit its operands"
    "K0003" "a parameter does not fit its array or window"
    "K0101" "a value is used outside the region that made it"
    "K0102" "a tile is taken with the wrong rank"
    "K0103" "shapes do not broadcast"
    "K0104" "there is no such axis"
    "K0105" "a dot contracts axes of unequal length"
    "K0106" "a dot takes two matrices"
    "K0107" "a carried value changes its type in a loop"
    "K0108" "too many indices"
    "K0109" "a slice is out of bounds"
    "K0110" "a stored tile does not fit the window"
    "K0111" "a copy between windows of different shapes"
    "K0112" "a slice of dynamic size outside a copy"
    "K0113" "a reshape changes the number of elements"
    "K0114" "a token belongs to another launch"
    "K0115" "tiles that are joined or chosen between do not match"
    "K0201" "an output is never written"
    "K0202" "scratch is read before it is written"
    "K0203" "a started copy is never waited for"
    "K0204" "a wait for a copy that was not started"
    "K0205" "a window is touched while a copy into it is under way"
    "K0206" "a parameter is never used"
    "K0207" "an input is written"
    "K0301" "a block does not fit its array"
    "K0302" "a block does not fit the (8, 128) tiles"
    "K0303" "steps of a parallel axis write the same block"
    "K0304" "an output block is left and visited again"
    "K0305" "a kernel needs more VMEM than there is"
    "K0306" "a block map does not map grid indices to block indices"
    "K0307" "a block index is out of bounds"
    "K0308" "a dynamic index is not known to be aligned"
    "K0309" "the machine has no such operation on this type"
    "K0310" "a copy cuts tiles apart"
    "K0311" "a kernel needs more SMEM than there is"
    "K0312" "no argument shows a dim"
    "K0313" "a copy takes a traced number of rows of a symbolic array"
    "K0401" "an access is out of bounds when the kernel runs"
    "K0402" "a wait that never ends"
    "K0403" "a copy was started and never waited for"
    "K0404" "an argument does not fit the kernel"
    "K0405" "a call does not meet a demand of the kernel"
    "K0406" "an undefined value decides what happens"
    "K0407" "a loop does not end"
    "K0408" "memory is used while a copy is under way"
    "K0409" "an integer is divided by zero"
    "K0410" "parallel steps write the same block"
    "K0411" "the executor cannot run the kernel"
    "K0412" "an assertion of the kernel does not hold"
    "K0501" "the TPU compiler rejects the kernel"
    "K0502" "the TPU compiler crashed"
    "K0503" "libtpu is not found"
    "K0504" "the TPU compiler takes too long"
    "K0505" "the TPU compiler runs out of VMEM"
    "K0506" "the TPU's matrix unit does not take the type"
    "K0507" "the TPU compiler rejects a block's shape"
    "K0508" "the TPU compiler cannot prove an alignment"
    "K0509" "the TPU compiler's process cannot be started"
    "K0601" "Mosaic has no form for this"
    "K0602" "the kernel to translate is malformed"
    "K0603" "MLIR refuses the module"
    "K0701" "index.json breaks its contract"
    "K0702" "an expression over dims has no value"
    "K0703" "the arguments do not fit the operation"
    "K0704" "no module serves the call"
    "K0705" "a module is not the one that the index describes"
    "K0706" "no dims are known that a module serves"
    "K0801" "a module's bytes are malformed"
    "K0802" "a module is written in a form that is not known"
    "K0803" "a module is of an unknown version of Mosaic"
    "K0804" "a module is too deep or too large to read"
    "K0805" "a call in a StableHLO text is not understood"
    "K0810" "an operation of a module is not known"
    "K0811" "a form of an operation is not supported"
    "K0812" "a module breaks the rules of its operations"
}

/// The documentation of a code.
pub fn explain(code: &str) -> Option<&'static CodeDoc> {
    ALL.iter().find(|d| d.code.eq_ignore_ascii_case(code))
}
