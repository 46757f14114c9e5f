//! What the compiler and its child process say to each other: one JSON object a line, over the child's stdin and stdout.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Set, to anything, in a child's environment: it tells a program that it is one.
pub(crate) const CHILD: &str = "TESSERA_AOT_CHILD";

/// What starts a line of ours; whatever else the child's stdout carries is libtpu's.
pub(crate) const PREFIX: &str = "@tessera-aot ";

/// From the compiler to the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Load this library. Comes first, once.
    Load {
        /// The path of libtpu.so.
        libtpu: PathBuf,
    },
    /// Compile a program.
    Compile {
        /// As libtpu names it: `v6e:2x2`.
        topology: String,
        /// The program's text.
        stablehlo: String,
    },
}

/// From the child to the compiler, one for each request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The library is loaded.
    Loaded {
        /// The version of its PJRT API.
        api: String,
    },
    /// The program is compiled.
    Compiled {
        /// The size of the machine code, in bytes.
        code_bytes: i64,
        /// How long the compiler took.
        seconds: f64,
        /// What the library says of its version.
        version: String,
    },
    /// The request failed, with the library's words.
    Failed(String),
}
