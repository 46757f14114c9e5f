//! Kernels from Rust: fetch one, look at its ops, take the module that serves a call.

use std::path::{Path, PathBuf};

use fs_err as fs;
use kernel_ir::mosaic::call::{Binding, CallError, Index, ModuleEntry, TensorType};

use crate::error::{Code, Error, Result};
use crate::hub::{CommitId, Fetched, RepoId, Revision, Silent, Wanted, fetch, open_cached};
use crate::package::{Metadata, Variant};
use crate::settings::{Environment, HubSettings};

/// Fetches a kernel, or takes it from the cache, and checks every byte of it.
///
/// The hub, the token, the cache and offline mode come from the environment, as for every client of
/// the Hub: HF_ENDPOINT, HF_TOKEN, HF_HUB_CACHE, HF_HUB_OFFLINE.
///
/// ```no_run
/// use hub_cli::{Version, get_kernel};
///
/// let kernel = get_kernel("tengomucho/ragged-dot-tpu", Version(1))?;
/// println!("{} ops in {}", kernel.index()?.ops.len(), kernel.path().display());
/// # Ok::<(), hub_cli::Error>(())
/// ```
///
/// # Errors
/// `H01xx` for the arguments and the environment, `H02xx` for what does not exist or cannot be
/// reached, `H03xx` and `H04xx` for a kernel that is not what it says.
pub fn get_kernel(repo: &str, revision: impl Into<Revision>) -> Result<Kernel> {
    let settings = HubSettings::from_environment(&Environment::of_process())?;
    let wanted = Wanted { repo: repo.parse()?, revision: revision.into(), variants: vec![] };
    Kernel::open(&settings, &wanted)
}

/// A kernel on this machine, checked.
#[derive(Clone, Debug)]
pub struct Kernel {
    fetched: Fetched,
}

/// The module that serves one call.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    /// What index.json says about it.
    pub entry: &'a ModuleEntry,
    /// The dims and dtypes of the call.
    pub binding: Binding,
    /// Its Mosaic bytecode.
    pub bytes: Vec<u8>,
}

impl Kernel {
    /// Fetches `wanted` as `settings` say.
    ///
    /// # Errors
    /// Those of [`get_kernel`].
    pub fn open(settings: &HubSettings, wanted: &Wanted) -> Result<Self> {
        let fetched = if settings.offline {
            open_cached(&settings.cache, wanted)?
        } else {
            fetch(&settings.client()?, &settings.cache, wanted, &mut Silent)?
        };
        Ok(Self { fetched })
    }

    /// The repository it came from.
    pub fn repo(&self) -> &RepoId {
        &self.fetched.repo
    }

    /// The commit that was fetched.
    pub fn commit(&self) -> &CommitId {
        &self.fetched.commit
    }

    /// The folder that holds the files as the repository has them.
    pub fn path(&self) -> &Path {
        &self.fetched.snapshot
    }

    /// Its variants, sorted by name.
    pub fn variants(&self) -> &[Variant] {
        &self.fetched.variants
    }

    /// What metadata.json says; all variants agree but for id and backend.
    pub fn metadata(&self) -> &Metadata {
        &self.fetched.variants[0].metadata
    }

    /// The ops of this kernel and their modules.
    ///
    /// # Errors
    /// `H0405` if the kernel was not built by Tessera, and has no index.json.
    pub fn index(&self) -> Result<&Index> {
        self.indexed().map(|(_, index)| index)
    }

    /// The module of `op` that serves arguments of these types, on this TPU generation if one is given.
    ///
    /// # Errors
    /// `H0412` if the arguments do not fit the op, or no module serves them.
    pub fn select(&self, op: &str, arguments: &[TensorType], generation: Option<&str>) -> Result<Module<'_>> {
        let (variant, index) = self.indexed()?;
        let no_module = |e: CallError| Error::new(Code::NoModule, e.to_string()).because(e);
        let binding = index.op(op).and_then(|op| op.bind(arguments)).map_err(no_module)?;
        let entry = index.select(op, &binding.dtypes, &binding.dims, generation).map_err(no_module)?;
        let file = file_of(variant, &entry.file)?;
        let bytes = fs::read(&file).map_err(|e| Error::io(&file, e))?;
        // The cache may have changed since the kernel was opened.
        entry.check_body(&bytes).map_err(|e| Error::new(Code::Module, e.to_string()).because(e))?;
        Ok(Module { entry, binding, bytes })
    }

    /// A variant with an index; they all carry the same one.
    fn indexed(&self) -> Result<(&Variant, &Index)> {
        let found = self.fetched.variants.iter().find_map(|v| Some((v, v.index.as_ref()?)));
        found.ok_or_else(|| {
            Error::new(Code::Index, format!("{} has no index.json: Tessera did not build it", self.repo()))
        })
    }
}

fn file_of(variant: &Variant, path: &str) -> Result<PathBuf> {
    let found = variant.files.iter().find(|(p, _)| p.as_str() == path).map(|(_, file)| file.clone());
    found.ok_or_else(|| Error::new(Code::Module, format!("{} has no file {path}", variant.name)))
}
