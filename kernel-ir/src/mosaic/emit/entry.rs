//! What `index.json` says of a module, and the configuration that the compiler gets with it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Module;
use crate::mosaic::call::{self, ModuleEntry, Table};
use crate::target::Generation;

const MIB: u64 = 1 << 20;

impl Module {
    /// The module's entry in an index. The caller says where the file lies, which dtypes and tile sizes the kernel was
    /// recorded with, and which generations have compiled it.
    pub fn entry(
        &self,
        file: impl Into<String>,
        dtypes: Table<String>,
        tile: Table<i64>,
        generations: &[Generation],
    ) -> ModuleEntry {
        ModuleEntry {
            file: file.into(),
            sha256: hex::encode(Sha256::digest(&self.bytecode)),
            bytes: self.bytecode.len() as u64,
            kernel: self.name.clone(),
            dtypes,
            tile,
            demands: self.demands.clone(),
            operands: self.operands.clone(),
            results: self.results.clone(),
            vmem_bytes: self.vmem.total(),
            custom_call_config: self.custom_call_config(),
            backend_config: self.beside(),
            generations: generations.iter().map(|g| g.name().to_owned()).collect(),
        }
    }

    /// The `backend_config` of the custom call, as JSON.
    pub fn backend_config(&self) -> String {
        call::backend_config(&self.bytecode, &self.custom_call_config(), &self.beside())
    }

    /// VMEM that the compiler may use for the kernel, in bytes.
    ///
    /// Windows and scratch take what [`VmemUse`](crate::target::VmemUse) says; the compiler adds scratch of its own,
    /// mostly for vectors that do not fit into registers. Measured with libtpu 0.0.52: ragged_dot in bfloat16 takes 1.05 to
    /// 1.12 times the estimate; a bfloat16 matmul with
    /// 256x512x256 blocks takes 1.00 (v6e) to 1.16 (v4) times the estimate; with float32 in several passes, 1.4 (v6e)
    /// to 1.84 times (v5e). Twice the estimate and 4 MiB is asked for, and never less than the largest default. What
    /// is not used costs nothing, and libtpu cuts the number down to the VMEM that the chip has.
    pub fn scoped_vmem_bytes(&self) -> u64 {
        let all = || Generation::ALL.into_iter().map(Generation::target);
        let least = all().map(|t| t.scoped_vmem_bytes).max().unwrap_or(0);
        let most = all().map(|t| t.vmem_bytes).max().unwrap_or(0);
        let asked = self.vmem.total().saturating_mul(2).saturating_add(4 * MIB);
        asked.checked_next_multiple_of(MIB).unwrap_or(most).clamp(least, most)
    }

    /// What stands beside `custom_call_config`.
    fn beside(&self) -> Table<Value> {
        // Memory space 1 is VMEM.
        let vmem = json!([{ "memory_space": 1, "offset": 0, "size": self.scoped_vmem_bytes() }]);
        Table::from_iter([("scoped_memory_configs", vmem)])
    }

    /// What stands beside the body: that it is in the stable form, that the compiler lays vectors out, and what ties it
    /// to other devices.
    fn custom_call_config(&self) -> Table<Value> {
        let mut config = vec![("serialization_format", json!(1)), ("needs_layout_passes", json!(true))];
        if self.mesh.communicates {
            config.push(("has_communication", json!(true)));
        }
        if self.mesh.barrier {
            config.push(("collective_id", json!(0)));
        }
        Table::from_iter(config)
    }
}
