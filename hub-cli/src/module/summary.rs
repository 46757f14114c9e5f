//! What a module is, in a form that people read: its grid, its arrays and windows, its memory, its operations, its source.

use std::collections::BTreeMap;

use kernel_ir::ir::{Kernel, Param, Role, Semantics, Type, Window, WindowUnit};
use kernel_ir::target::{Generation, VmemUse};
use serde::Serialize;

use super::formula;
use super::types::shown;
use crate::output::size;

/// A module, described.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) kernel: String,
    /// `stable_mosaic.version`, if it has one.
    pub(crate) mosaic_version: Option<i64>,
    pub(crate) bytes: usize,
    pub(crate) grid: Vec<Axis>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) vmem_bytes: u64,
    /// Generations whose VMEM holds windows and scratch.
    pub(crate) fits: Vec<&'static str>,
    /// How often each operation stands in the body.
    pub(crate) operations: BTreeMap<String, usize>,
    /// Source files with their first and last line.
    pub(crate) sources: BTreeMap<String, (u32, u32)>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    extent: String,
    semantics: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct Parameter {
    name: String,
    role: &'static str,
    /// The ref that the body sees.
    memory: String,
    /// The whole array behind it.
    array: Option<String>,
    /// Which block a grid step sees: `(i, j) -> (i, 0)`, in blocks or in elements.
    window: Option<String>,
    vmem_bytes: Option<u64>,
    buffers: Option<u64>,
}

impl Summary {
    /// Describes a kernel that was read from so many bytes.
    pub(crate) fn new(kernel: &Kernel, mosaic_version: Option<i64>, bytes: usize) -> Self {
        let vmem = VmemUse::of(kernel);
        let fits = |g: &Generation| vmem.total() <= g.target().vmem_bytes;
        let (mut operations, mut sources) = (BTreeMap::new(), BTreeMap::<String, (u32, u32)>::new());
        kernel.each_op(&mut |op| {
            *operations.entry(op.kind.name()).or_default() += 1;
            let loc = kernel.loc(op.span);
            if loc.line > 0 {
                let lines = sources.entry(loc.file.to_string()).or_insert((loc.line, loc.line));
                *lines = (lines.0.min(loc.line), lines.1.max(loc.line));
            }
        });
        Self {
            kernel: kernel.name.clone(),
            mosaic_version,
            bytes,
            grid: kernel.grid.iter().map(|g| axis(g.extent.to_string(), g.semantics)).collect(),
            parameters: kernel.params.iter().map(|p| parameter(kernel, &vmem, p)).collect(),
            vmem_bytes: vmem.total(),
            fits: Generation::ALL.iter().filter(|g| fits(g)).map(|g| g.name()).collect(),
            operations,
            sources,
        }
    }

    /// The text for a terminal.
    pub(crate) fn text(&self) -> String {
        use anstyle::{AnsiColor, Style};
        let (bold, dim) = (Style::new().bold(), AnsiColor::BrightBlack.on_default());
        let version = self.mosaic_version.map_or("unversioned".to_owned(), |v| format!("version {v}"));
        let mut text =
            format!("{bold}{}{bold:#}  Mosaic {version}, {}\n", self.kernel, size(self.bytes as u64));
        let grid: Vec<String> = self.grid.iter().map(|a| format!("{} {}", a.extent, a.semantics)).collect();
        text += &format!(
            "{bold}grid{bold:#}  {}\n",
            if grid.is_empty() { "none".into() } else { grid.join(" x ") }
        );
        let width = self.parameters.iter().map(|p| p.name.len()).max().unwrap_or(0);
        let memory = self.parameters.iter().map(|p| p.memory.len()).max().unwrap_or(0);
        let mut role = "";
        for p in &self.parameters {
            if p.role != role {
                text += &format!("{bold}{}{bold:#}\n", p.role);
                role = p.role;
            }
            let mut line = format!("  {:<width$}  {:<memory$}", p.name, p.memory);
            if let Some(array) = &p.array {
                line += &format!("  of {array}");
            }
            if let Some(window) = &p.window {
                line += &format!("  {dim}at{dim:#} {window}");
            }
            if let (Some(bytes), Some(n)) = (p.vmem_bytes, p.buffers) {
                let times = if n == 1 { String::new() } else { format!("{n} x ") };
                line += &format!("  {dim}{times}{}{dim:#}", size(bytes));
            }
            text += line.trim_end();
            text.push('\n');
        }
        text += &format!("{bold}VMEM{bold:#}  {} in windows and scratch; fits ", size(self.vmem_bytes));
        text += &if self.fits.is_empty() { "no generation".to_owned() } else { self.fits.join(", ") };
        let operations: Vec<String> = self.operations.iter().map(|(n, c)| format!("{n} {c}")).collect();
        text += &format!("\n{bold}operations{bold:#}  {}\n", operations.join(", "));
        for (file, (first, last)) in &self.sources {
            text += &format!("{bold}source{bold:#}  {file}:{first}-{last}\n");
        }
        text
    }
}

const fn axis(extent: String, semantics: Semantics) -> Axis {
    let semantics = match semantics {
        Semantics::Parallel => "parallel",
        Semantics::Arbitrary => "arbitrary",
    };
    Axis { extent, semantics }
}

fn parameter(kernel: &Kernel, vmem: &VmemUse, p: &Param) -> Parameter {
    let item = vmem.items.iter().find(|i| i.name == p.name);
    Parameter {
        name: p.name.to_string(),
        role: match p.role {
            Role::Prefetch => "prefetched",
            Role::Input => "inputs",
            Role::Output => "outputs",
            Role::Scratch => "scratch",
        },
        memory: match kernel.ty(p.value) {
            Type::Ref(r) => r.to_string(),
            other => other.to_string(),
        },
        array: p.array.as_ref().map(shown),
        window: p.window.as_ref().map(|w| window(kernel, w)),
        vmem_bytes: item.map(|i| i.bytes),
        buffers: item.map(|i| i.buffers),
    }
}

fn window(kernel: &Kernel, w: &Window) -> String {
    let map = formula::of_block(kernel, &w.index);
    match &w.unit {
        WindowUnit::Blocks => map,
        WindowUnit::Elements(pads) if pads.iter().all(|p| *p == (0, 0)) => format!("{map} elements"),
        WindowUnit::Elements(pads) => format!("{map} elements, padded by {pads:?}"),
    }
}
