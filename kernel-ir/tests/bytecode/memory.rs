//! Memory: a module of 1 MiB never takes more than 64 MiB, whatever its bytes are.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kernel_ir::mosaic::read;

/// The system's allocator, counting what each thread holds.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

#[allow(unsafe_code, reason = "an allocator that counts")]
// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may both be there for a moment.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The most bytes held during `f` beyond what was held before.
fn peak(f: impl FnOnce()) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    f();
    (PEAK.get() - before) as usize
}

const MIB: usize = 1 << 20;

#[test]
fn a_mebibyte_takes_no_more_than_64() {
    for (name, bytes) in hostile() {
        assert!(bytes.len() <= MIB, "{name} has {} bytes", bytes.len());
        let text = peak(|| drop(read::mlir(&bytes)));
        let kernel = peak(|| drop(read::kernel(&bytes, None)));
        assert!(text.max(kernel) <= 64 * MIB, "{name} takes {text} bytes for text, {kernel} for a kernel");
    }
}

/// The prefix form of an integer.
fn varint(n: usize) -> Vec<u8> {
    let bytes = (usize::BITS - n.leading_zeros()).div_ceil(7).max(1) as usize;
    if bytes > 8 {
        return [&[0][..], &n.to_le_bytes()].concat();
    }
    ((n << 1 | 1) << (bytes - 1)).to_le_bytes()[..bytes].to_vec()
}

/// A file of version 0. Attribute 0 is the unknown location, type 0 is `i1`; operation 0 is the module, 1 is `x.op`.
struct File {
    /// First `builtin`, `module`, `x` and `op`.
    strings: Vec<Vec<u8>>,
    /// The string of each dialect: `builtin` and `x` first.
    dialects: Vec<usize>,
    /// Dialect and string of further operations.
    operations: Vec<(usize, usize)>,
    attributes: Vec<Vec<u8>>,
    types: Vec<Vec<u8>>,
    /// What is in the block of the module, and how many operations and values are.
    body: Vec<u8>,
    count: usize,
    values: usize,
}

impl File {
    fn new() -> Self {
        Self {
            strings: [&b"builtin"[..], b"module", b"x", b"op"].map(Vec::from).to_vec(),
            dialects: vec![0, 2],
            operations: vec![(0, 1), (1, 3)],
            attributes: vec![varint(15)],
            types: vec![[varint(0), varint(4)].concat()],
            body: vec![],
            count: 0,
            values: 0,
        }
    }

    fn with_body(count: usize, values: usize, body: Vec<u8>) -> Self {
        Self { body, count, values, ..Self::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = [&b"ML\xefR"[..], &varint(0), b"test\0"].concat();
        let mut section = |id: u8, data: &[u8]| file.extend([&[id][..], &varint(data.len()), data].concat());
        let mut strings = varint(self.strings.len());
        self.strings.iter().rev().for_each(|s| strings.extend(varint(s.len() + 1)));
        self.strings.iter().for_each(|s| strings.extend([&s[..], &[0]].concat()));
        section(0, &strings);
        let mut dialects = varint(self.dialects.len());
        self.dialects.iter().for_each(|name| dialects.extend(varint(*name)));
        for (dialect, name) in &self.operations {
            dialects.extend([varint(*dialect), varint(1), varint(*name)].concat());
        }
        section(1, &dialects);
        let mut offsets = [varint(self.attributes.len()), varint(self.types.len())].concat();
        for table in [&self.attributes, &self.types] {
            offsets.extend([varint(0), varint(table.len())].concat());
            // Text starts with what no code is.
            let binary = |entry: &Vec<u8>| usize::from(entry[..1] != *b"#");
            table.iter().for_each(|entry| offsets.extend(varint(entry.len() << 1 | binary(entry))));
        }
        section(2, &[&self.attributes.concat()[..], &self.types.concat()].concat());
        section(3, &offsets);
        // One operation; it is the module and has one region of one block.
        let module = [varint(1 << 1), varint(0), vec![1 << 4], varint(0), varint(1 << 1), varint(1)].concat();
        section(4, &[&module[..], &varint(self.values), &varint(self.count << 1), &self.body].concat());
        file
    }
}

/// An operation `x.op` with the parts that `mask` says.
fn op(mask: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    [varint(1), vec![mask], varint(0), parts.concat()].concat()
}

const ATTRIBUTES: u8 = 1;
const RESULTS: u8 = 1 << 1;
const OPERANDS: u8 = 1 << 2;
const REGIONS: u8 = 1 << 4;

/// A kernel of `count` stores of an integer into SMEM.
fn stores(count: usize) -> Vec<u8> {
    let mut file = File::new();
    let texts = [
        "main",
        "sym_name",
        "function_type",
        "value",
        "func",
        "arith",
        "constant",
        "memref",
        "store",
        "return",
    ];
    file.strings.extend(texts.map(|t| t.as_bytes().to_vec()));
    let string = |text| 4 + texts.iter().position(|t| *t == text).unwrap();
    file.dialects.extend(["func", "arith", "memref"].map(string));
    let names = [(2, "func"), (3, "constant"), (4, "store"), (2, "return")];
    file.operations.extend(names.map(|(dialect, name)| (dialect, string(name))));
    let smem = b"#tpu.memory_space<smem>\0".to_vec();
    // Types: `i32`, `index`, `memref<8xi32, smem>`, and the function's.
    let memref = [varint(11), varint(1), varint(1), varint(8 << 1), varint(1), varint(2)].concat();
    let function = [varint(2), varint(1), varint(3), varint(0)].concat();
    file.types.extend([[varint(0), varint(32 << 2)].concat(), varint(1), memref, function]);
    let text = |t| [varint(2), varint(string(t))].concat();
    let identity = [varint(23), varint(1 << 2)].concat();
    file.attributes.extend([
        smem,
        identity,
        text("sym_name"),
        text("main"),
        text("function_type"),
        text("value"),
    ]);
    let of_type = [varint(6), varint(4)].concat();
    let function = [varint(1), varint(2), varint(3), varint(4), varint(5), varint(7)].concat();
    // A zero of each integer type.
    let zero = |ty| [8, ty, 0].map(varint).concat();
    let value = |attribute| [1, 1, 6, attribute].map(varint).concat();
    file.attributes.extend([of_type, function, zero(1), zero(2), value(9), value(10)]);
    let constant = |attribute, ty| {
        [varint(3), vec![ATTRIBUTES | RESULTS], [0, attribute, 1, ty].map(varint).concat()].concat()
    };
    let store = [varint(4), vec![OPERANDS], [0, 3, 1, 0, 2].map(varint).concat()].concat();
    // A region of one block with one argument, three values.
    let region = [1 << 1, 1, 3, (count + 3) << 1 | 1, 1, 3, 0].map(varint).concat();
    file.body = [varint(2), vec![ATTRIBUTES | REGIONS], varint(0), varint(8), region].concat();
    file.body.extend([constant(11, 1), constant(12, 2), store.repeat(count)].concat());
    file.body.extend([varint(5), vec![0], varint(0)].concat());
    file.count = 1;
    file.bytes()
}

#[test]
fn a_small_kernel_of_stores_is_one() {
    let kernel = read::kernel(&stores(3), None).unwrap();
    assert_eq!(kernel.to_string().matches("store").count(), 3, "{kernel}");
}

/// Operations that hold one another.
pub(super) fn nested(depth: usize) -> Vec<u8> {
    // One region, one block, no values, one operation.
    let outer = op(REGIONS, &[varint(1 << 1), varint(1), varint(0), varint(1 << 1)]);
    File::with_body(1, 0, [outer.repeat(depth), op(0, &[])].concat()).bytes()
}

/// Files of nearly 1 MiB that try to take much.
pub(super) fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let n = MIB - 4096;
    let many = |entry: Vec<u8>, each: usize| (0..n / each).map(|_| entry.clone()).collect::<Vec<_>>();
    let attributes = |more: Vec<Vec<u8>>| {
        let mut file = File::new();
        file.attributes.extend(more);
        file.bytes()
    };
    let twice = |i: usize| [varint(0), varint(2), varint(i + 1), varint(i + 1)].concat();
    let mut names = File::new();
    names.strings[2] = vec![b'x'; n / 2];
    names.operations.extend((0..n / 16).map(|_| (1, 3)));
    for i in 0..n / 16 {
        names.body.extend([varint(2 + i), vec![0], varint(0)].concat());
    }
    names.count = n / 16;
    let mut strings = File::new();
    strings.strings.extend(many(vec![], 2));
    let mut types = File::new();
    types.types.extend(many(varint(1), 2));
    let mut shapes = File::new();
    shapes.types.push([varint(13), varint(n), vec![1; n], varint(0)].concat());
    let mut bits = File::new();
    let length = [vec![0], (16 * n as u64).to_le_bytes().to_vec()].concat();
    bits.types.push([varint(13), varint(1), length, varint(0)].concat());
    bits.attributes.push([varint(18), varint(1), varint(n), vec![0x55; n]].concat());
    let mut repeated = File::new();
    repeated.strings.push(vec![b'y'; n / 2]);
    // The string, and a dictionary that holds it under its own name.
    repeated
        .attributes
        .extend([[varint(2), varint(4)].concat(), [varint(1), varint(1), varint(1), varint(1)].concat()]);
    repeated.body = op(ATTRIBUTES, &[varint(2)]).repeat(n / 8);
    repeated.count = n / 8;
    vec![
        ("operations", File::with_body(n / 3, 0, op(0, &[]).repeat(n / 3)).bytes()),
        ("results", File::with_body(1, n - 9, op(RESULTS, &[varint(n - 9), vec![1; n - 9]])).bytes()),
        ("operations with a result", {
            let one = op(RESULTS, &[varint(1), varint(0)]);
            File::with_body(n / 5, n / 5, one.repeat(n / 5)).bytes()
        }),
        ("operands", {
            let first = op(RESULTS, &[varint(1), varint(0)]);
            let second = op(OPERANDS, &[varint(n - 99), vec![1; n - 99]]);
            File::with_body(2, 1, [first, second].concat()).bytes()
        }),
        ("regions", File::with_body(1, 0, op(REGIONS, &[varint(n << 1), vec![1; n]])).bytes()),
        ("blocks", {
            let blocks = [varint(1 << 1), varint(n), varint(0), vec![1; n]];
            File::with_body(1, 0, op(REGIONS, &blocks)).bytes()
        }),
        ("strings", strings.bytes()),
        ("types", types.bytes()),
        ("a shape", shapes.bytes()),
        ("units", attributes(many(varint(7), 2))),
        ("an array", attributes(vec![[varint(0), varint(n), vec![1; n]].concat()])),
        ("empty arrays", attributes(many([varint(0), varint(0)].concat(), 3))),
        ("identity maps", attributes(many([varint(23), varint(255 << 2)].concat(), 5))),
        (
            "maps of sums",
            attributes(many([&[0x2f, 7, 1, 3][..], &[7; 60], &[5, 3].repeat(61)].concat(), 188)),
        ),
        ("truth values", bits.bytes()),
        ("names of operations", names.bytes()),
        ("a long attribute, repeated", repeated.bytes()),
        ("a large dictionary", attributes(vec![[varint(1), varint(n / 2), vec![1; n]].concat()])),
        ("a tower of arrays", attributes((1..60).map(twice).chain([varint(7)]).collect())),
        ("an array that holds itself", attributes(vec![[varint(0), varint(1), varint(1)].concat()])),
        ("stores", stores(n / 7)),
        ("as many stores as are read", stores((1 << 16) - 8)),
        ("nesting", nested(n / 8)),
        ("announced operations", File::with_body(usize::MAX >> 1, 0, vec![]).bytes()),
        ("announced values", File::with_body(0, usize::MAX, vec![]).bytes()),
    ]
}
