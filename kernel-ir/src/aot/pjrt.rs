//! The part of the PJRT C API that ahead-of-time compilation needs: load a plugin, name a topology, compile, free.
//!
//! The API is a table of function pointers whose order never changes within major version 0, and argument structs that
//! start with their own size and only ever grow at the end. Two habits follow. A function is looked up by its place,
//! and only if the table is long enough. Every argument struct carries a zeroed tail: a newer library that reads
//! further finds zeros, the default of every field; an older one stops earlier.
//!
//! Source of the layout: `xla/pjrt/c/pjrt_c_api.h` of OpenXLA. This is the one file of the crate with `unsafe` code
//! that is not MLIR's.
#![allow(unsafe_code, reason = "libtpu is reached through a C interface, and only from here")]

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;

use libloading::Library;

/// The places in the function table.
#[derive(Clone, Copy, Debug)]
enum Entry {
    ErrorDestroy = 0,
    ErrorMessage = 1,
    PluginInitialize = 3,
    ExecutableDestroy = 40,
    ExecutableSizeOfGeneratedCodeInBytes = 45,
    TopologyDescriptionCreate = 82,
    TopologyDescriptionDestroy = 83,
    TopologyDescriptionPlatformVersion = 85,
    Compile = 89,
}

/// The head of `PJRT_Api`; the function table follows it.
#[repr(C)]
struct ApiTable {
    struct_size: usize,
    extension_start: *mut c_void,
    version: ApiVersion,
    functions: [*const c_void; 0],
}

#[repr(C)]
struct ApiVersion {
    struct_size: usize,
    extension_start: *mut c_void,
    major: c_int,
    minor: c_int,
}

/// An argument struct: the common head, the call's own fields, and zeros where later versions put more.
#[repr(C)]
struct Args<T> {
    struct_size: usize,
    extension_start: *mut c_void,
    fields: T,
    tail: [usize; 32],
}

impl<T> Args<T> {
    fn new(fields: T) -> Args<T> {
        Args { struct_size: size_of::<Args<T>>(), extension_start: ptr::null_mut(), fields, tail: [0; 32] }
    }
}

/// `PJRT_Error_Destroy_Args`, `PJRT_Executable_Destroy_Args`, `PJRT_TopologyDescription_Destroy_Args`: one handle.
#[repr(C)]
struct Handle(*mut c_void);

/// A handle in, a string or an array out.
#[repr(C)]
struct HandleText {
    handle: *mut c_void,
    text: *const c_char,
    size: usize,
}

#[repr(C)]
struct ExecutableSize {
    executable: *mut c_void,
    bytes: i64,
}

#[repr(C)]
struct TopologyCreate {
    name: *const c_char,
    name_size: usize,
    options: *const c_void,
    num_options: usize,
    topology: *mut c_void,
}

#[repr(C)]
struct Program {
    code: *const c_char,
    code_size: usize,
    format: *const c_char,
    format_size: usize,
}

#[repr(C)]
struct Compile {
    topology: *const c_void,
    program: *const Args<Program>,
    options: *const c_char,
    options_size: usize,
    client: *mut c_void,
    executable: *mut c_void,
}

/// A loaded and initialised plugin.
#[derive(Debug)]
pub(crate) struct Api {
    table: *const ApiTable,
    /// Keeps the code mapped for as long as the table is used.
    _library: Library,
}

impl Api {
    /// Loads the plugin at `path` and initialises it. This runs the library's own start-up code.
    pub(crate) fn load(path: &Path) -> Result<Api, String> {
        // SAFETY: running libtpu's initialisers is what the caller asks for, in a process made for it.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The dynamic loader's words are in the source; the error itself only says that it failed.
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })?;
        // SAFETY: every PJRT plugin exports this symbol with this signature.
        let get = unsafe { library.get::<unsafe extern "C" fn() -> *const ApiTable>(b"GetPjrtApi\0") };
        let get = get.map_err(|error| format!("it is not a PJRT plugin: {error}"))?;
        // SAFETY: the function takes nothing and returns a static table or null.
        let table = unsafe { get() };
        // SAFETY: the table outlives the library's mapping, which `Api` keeps.
        let Some(head) = (unsafe { table.as_ref() }) else {
            return Err("it has no PJRT API table".to_owned());
        };
        if head.version.major != 0 {
            return Err(format!(
                "its PJRT API is version {}.{}, not 0.x",
                head.version.major, head.version.minor
            ));
        }
        let api = Api { table, _library: library };
        api.call(Entry::PluginInitialize, &mut Args::new(()))?;
        Ok(api)
    }

    /// The version of the API that the library implements, `major.minor`.
    pub(crate) fn version(&self) -> String {
        // SAFETY: `table` was checked in `load`.
        let version = unsafe { &(*self.table).version };
        format!("{}.{}", version.major, version.minor)
    }

    /// Describes the topology called `name`, e.g. `v6e:2x2`; no such machine needs to be there.
    pub(crate) fn topology(&self, name: &str) -> Result<Topology<'_>, String> {
        let mut args = Args::new(TopologyCreate {
            name: name.as_ptr().cast(),
            name_size: name.len(),
            options: ptr::null(),
            num_options: 0,
            topology: ptr::null_mut(),
        });
        self.call(Entry::TopologyDescriptionCreate, &mut args)?;
        Ok(Topology { api: self, handle: args.fields.topology })
    }

    /// The function at `entry`, if the library is new enough to have it.
    fn function(&self, entry: Entry) -> Result<*const c_void, String> {
        let place = entry as usize;
        let end = size_of::<ApiTable>() + (place + 1) * size_of::<*const c_void>();
        // SAFETY: `table` was checked in `load`; the place lies inside the size that the library declares.
        let function = unsafe {
            let table = &*self.table;
            if table.struct_size < end {
                return Err(format!("libtpu is too old: its PJRT API has no {entry:?}"));
            }
            *table.functions.as_ptr().add(place)
        };
        if function.is_null() {
            return Err(format!("libtpu does not implement {entry:?}"));
        }
        Ok(function)
    }

    /// Calls a function that returns `PJRT_Error*`.
    fn call<T>(&self, entry: Entry, args: &mut Args<T>) -> Result<(), String> {
        let function = self.function(entry)?;
        // SAFETY: every function of the table but the two for errors has this signature; `args` is its argument
        // struct, as the table of entries and the structs above pair them.
        let error = unsafe {
            let function: unsafe extern "C" fn(*mut Args<T>) -> *mut c_void = std::mem::transmute(function);
            function(args)
        };
        if error.is_null() { Ok(()) } else { Err(self.take_error(error)) }
    }

    /// The text of an error, which is freed.
    fn take_error(&self, error: *mut c_void) -> String {
        let mut args = Args::new(HandleText { handle: error, text: ptr::null(), size: 0 });
        self.call_void(Entry::ErrorMessage, &mut args);
        // SAFETY: the text lives until the error is destroyed, which happens after the copy.
        let text = unsafe { text(&args.fields) };
        self.call_void(Entry::ErrorDestroy, &mut Args::new(Handle(error)));
        text
    }

    /// Calls one of the functions that return nothing.
    fn call_void<T>(&self, entry: Entry, args: &mut Args<T>) {
        if let Ok(function) = self.function(entry) {
            // SAFETY: as in `call`, for the functions that return nothing.
            unsafe {
                let function: unsafe extern "C" fn(*mut Args<T>) = std::mem::transmute(function);
                function(args);
            }
        }
    }

    /// Frees a handle; that it could not be freed is of no use to anybody.
    fn destroy(&self, entry: Entry, handle: *mut c_void) {
        let _leaked = self.call(entry, &mut Args::new(Handle(handle)));
    }
}

/// Copies the text out of a filled-in struct.
///
/// # Safety
/// `text` must be null or point at `size` readable bytes.
unsafe fn text(args: &HandleText) -> String {
    if args.text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(args.text.cast::<u8>(), args.size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A machine to compile for.
#[derive(Debug)]
pub(crate) struct Topology<'a> {
    api: &'a Api,
    handle: *mut c_void,
}

impl Topology<'_> {
    /// What the library says of its own version.
    pub(crate) fn platform_version(&self) -> Result<String, String> {
        let mut args = Args::new(HandleText { handle: self.handle, text: ptr::null(), size: 0 });
        self.api.call(Entry::TopologyDescriptionPlatformVersion, &mut args)?;
        // SAFETY: the text lives as long as the topology.
        Ok(unsafe { text(&args.fields) })
    }

    /// Compiles an MLIR program (StableHLO, as text or bytecode) for one device of this topology.
    pub(crate) fn compile(&self, program: &[u8]) -> Result<Executable<'_>, String> {
        const FORMAT: &str = "mlir";
        let program = Args::new(Program {
            code: program.as_ptr().cast(),
            code_size: program.len(),
            format: FORMAT.as_ptr().cast(),
            format_size: FORMAT.len(),
        });
        let mut args = Args::new(Compile {
            topology: self.handle,
            program: &raw const program,
            options: COMPILE_OPTIONS.as_ptr().cast(),
            options_size: COMPILE_OPTIONS.len(),
            client: ptr::null_mut(),
            executable: ptr::null_mut(),
        });
        self.api.call(Entry::Compile, &mut args)?;
        Ok(Executable { api: self.api, handle: args.fields.executable, _topology: PhantomData })
    }
}

impl Drop for Topology<'_> {
    fn drop(&mut self) {
        self.api.destroy(Entry::TopologyDescriptionDestroy, self.handle);
    }
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Executable<'a> {
    api: &'a Api,
    handle: *mut c_void,
    _topology: PhantomData<&'a Topology<'a>>,
}

impl Executable<'_> {
    /// The size of the machine code, in bytes.
    pub(crate) fn code_bytes(&self) -> Result<i64, String> {
        let mut args = Args::new(ExecutableSize { executable: self.handle, bytes: 0 });
        self.api.call(Entry::ExecutableSizeOfGeneratedCodeInBytes, &mut args)?;
        Ok(args.fields.bytes)
    }
}

impl Drop for Executable<'_> {
    fn drop(&mut self) {
        self.api.destroy(Entry::ExecutableDestroy, self.handle);
    }
}

/// A serialised `xla.CompileOptionsProto`: one replica, one partition, any device.
///
/// Field 3, `executable_build_options`, 15 bytes long: field 1 `device_ordinal` = -1 (a ten-byte varint, "not set");
/// field 4 `num_replicas` = 1; field 5 `num_partitions` = 1.
const COMPILE_OPTIONS: [u8; 17] = [
    0x1a, 15, //
    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, //
    0x20, 1, //
    0x28, 1,
];
