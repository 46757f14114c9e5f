//! Checks a package that exists: the variants of a folder, or of what was just downloaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use kernel_ir::mosaic::call::Index;

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

use super::signing::{SecretKey, Signature};
use super::{Metadata, is_variant_name};

/// The largest file that belongs in a package, in bytes.
pub(crate) const MAX_FILE: u64 = 512 << 20;

/// One variant whose files were checked against its metadata.json and index.json.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The folder's name, such as `torch-tpu`.
    pub name: String,
    /// What metadata.json says.
    pub metadata: Metadata,
    /// What index.json says; packages that are not ours have none.
    pub index: Option<Index>,
    /// The files by path in the variant, and where each lies on this machine.
    pub files: BTreeMap<RepoPath, PathBuf>,
}

impl Variant {
    /// Checks the files of the variant `name`.
    ///
    /// # Errors
    /// `H0404` and `H0402` for metadata.json, `H0304` for the digest, `H0405` and `H0305` for index.json
    /// and the modules.
    pub fn check(name: &str, files: BTreeMap<RepoPath, PathBuf>) -> Result<Self> {
        let read = |path: &RepoPath| match files.get(path) {
            Some(file) => fs::read(file).map_err(|e| Error::io(file, e)),
            None => Err(Error::new(Code::Metadata, format!("{name} has no {path}"))),
        };
        let metadata =
            Metadata::parse(&read(&RepoPath::parse("metadata.json")?)?, &format!("{name}/metadata.json"))?;
        if let Some(digest) = &metadata.digest {
            digest.check(name, files.keys().cloned(), read)?;
        }
        let index_path = RepoPath::parse("index.json")?;
        let index = match files.contains_key(&index_path) {
            true => check_index(name, &read(&index_path)?, read)?,
            false => None,
        };
        Ok(Self { name: name.to_owned(), metadata, index, files })
    }

    /// The bytes of its metadata.json, which a signature covers.
    pub(crate) fn metadata_bytes(&self) -> Result<Vec<u8>> {
        let found = self.files.iter().find(|(path, _)| path.as_str() == "metadata.json");
        let (_, file) =
            found.ok_or_else(|| Error::new(Code::Metadata, format!("{} has no metadata.json", self.name)))?;
        fs::read(file).map_err(|e| Error::io(file, e))
    }

    /// Groups the files of a repository by variant and checks each.
    ///
    /// # Errors
    /// Those of [`Variant::check`]; `H0306` if the variants disagree on name or version or share an id.
    pub(crate) fn check_all(files: impl IntoIterator<Item = (RepoPath, PathBuf)>) -> Result<Vec<Self>> {
        let mut by_name: BTreeMap<String, BTreeMap<RepoPath, PathBuf>> = BTreeMap::new();
        for (path, file) in files {
            if let Some((variant, path)) = split_variant(&path) {
                by_name.entry(variant).or_default().insert(path, file);
            }
        }
        let variants =
            by_name.into_iter().map(|(name, files)| Self::check(&name, files)).collect::<Result<Vec<_>>>()?;
        agree(&variants)?;
        Ok(variants)
    }
}

/// Splits `build/VARIANT/PATH`.
pub(crate) fn split_variant(path: &RepoPath) -> Option<(String, RepoPath)> {
    let (variant, _) = path.as_str().strip_prefix("build/")?.split_once('/')?;
    let rest = path.strip_folder(&format!("build/{variant}"))?;
    is_variant_name(variant).then(|| (variant.to_owned(), rest))
}

/// Checks an index.json and the modules it names; a file of that name that is not of our kind is none.
fn check_index(
    variant: &str,
    json: &[u8],
    mut read: impl FnMut(&RepoPath) -> Result<Vec<u8>>,
) -> Result<Option<Index>> {
    let is_ours = |v: &serde_json::Value| v.get("mosaic_version").is_some() && v.get("ops").is_some();
    if !serde_json::from_slice(json).is_ok_and(|v| is_ours(&v)) {
        return Ok(None);
    }
    let index = Index::parse(json).map_err(|e| Error::new(Code::Index, format!("{variant}: {e}")))?;
    let mut checked = BTreeSet::new();
    for (_, op) in index.ops.iter() {
        for module in &op.modules {
            if checked.insert((&module.file, &module.sha256)) {
                let body = read(&RepoPath::parse(&module.file)?).map_err(|e| {
                    Error::new(Code::Module, format!("{variant}: {} cannot be read", module.file)).because(e)
                })?;
                module.check_body(&body).map_err(|e| Error::new(Code::Module, format!("{variant}: {e}")))?;
            }
        }
    }
    Ok(Some(index))
}

fn agree(variants: &[Variant]) -> Result<()> {
    let Some(first) = variants.first() else { return Ok(()) };
    let mut ids = BTreeMap::new();
    for variant in variants {
        let (a, b) = (&first.metadata, &variant.metadata);
        if (&a.name, a.version) != (&b.name, b.version) {
            let message = format!(
                "{} is {} version {}, and {} is {} version {}",
                first.name, a.name, a.version, variant.name, b.name, b.version
            );
            return Err(Error::new(Code::Identity, message));
        }
        if let Some(other) = ids.insert(&b.id, &variant.name) {
            let message = format!("{other} and {} have the same id {}", variant.name, b.id);
            return Err(Error::new(Code::Identity, message));
        }
    }
    Ok(())
}

/// A built package on this machine.
#[derive(Clone, Debug)]
pub struct LocalPackage {
    /// Its variants, sorted by name.
    pub variants: Vec<Variant>,
    /// The card that becomes README.md on `main`.
    pub card: Option<PathBuf>,
    /// Signatures, by variant.
    pub signatures: BTreeMap<String, Signature>,
    /// The folder with the variants.
    pub build: PathBuf,
}

impl LocalPackage {
    /// Opens the package in `path`: a package's folder with `build/` in it, or such a build folder.
    ///
    /// # Errors
    /// `H0409` if nothing was built there; `H0407` for files that do not belong in a package; those of
    /// [`Variant::check`].
    pub fn open(path: &Path) -> Result<Self> {
        let folders = [path.join("build"), path.to_path_buf()];
        let is_build = |folder: &PathBuf| variant_names(folder).is_ok_and(|names| !names.is_empty());
        let Some(build) = folders.into_iter().find(is_build) else {
            return Err(Error::new(Code::NoVariant, format!("{} holds no built variant", path.display()))
                .help(format!("run `kernels-cli build {}` first", path.display())));
        };
        let mut files = Vec::new();
        for name in variant_names(&build)? {
            let folder = RepoPath::parse(&format!("build/{name}"))?;
            walk(&build.join(&name), &mut |path, file| files.push((path.in_folder(&folder), file)))?;
        }
        let card = [build.join("CARD.md"), path.join("CARD.md")].into_iter().find(|card| card.is_file());
        let variants = Variant::check_all(files)?;
        let signatures = read_signatures(&build, &variants)?;
        Ok(Self { variants, card, signatures, build })
    }

    /// Signs every variant with `key`, in place of other signatures.
    ///
    /// # Errors
    /// `H0109` if a metadata.json cannot be read.
    pub fn sign(&mut self, key: &SecretKey) -> Result<()> {
        for variant in &self.variants {
            let signature = Signature::new(key, &variant.metadata_bytes()?);
            self.signatures.insert(variant.name.clone(), signature);
        }
        Ok(())
    }

    /// Writes the signatures beside the variants.
    ///
    /// # Errors
    /// `H0109`.
    pub fn write_signatures(&self) -> Result<()> {
        for (variant, signature) in &self.signatures {
            let path = Signature::path(variant)?.under(&self.build);
            atomic::make_folder(path.parent().unwrap_or(&self.build))?;
            atomic::write(&path, signature.to_json().as_bytes())?;
        }
        Ok(())
    }
}

/// The signatures beside the variants in `build`; one that is not of its variant is an error.
fn read_signatures(build: &Path, variants: &[Variant]) -> Result<BTreeMap<String, Signature>> {
    let mut signatures = BTreeMap::new();
    for variant in variants {
        let path = Signature::path(&variant.name)?.under(build);
        if path.is_file() {
            let json = fs::read(&path).map_err(|e| Error::io(&path, e))?;
            let signature = Signature::parse(&json, &path.display().to_string())?;
            if !signature.is_of(&variant.metadata_bytes()?) {
                let message = format!("{} is not the signature of {}", path.display(), variant.name);
                return Err(Error::new(Code::Signature, message)
                    .help("it was signed before it was changed: `kernels-cli sign` signs it anew"));
            }
            signatures.insert(variant.name.clone(), signature);
        }
    }
    Ok(signatures)
}

/// The names of the variant folders in `build`, sorted.
fn variant_names(build: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(build).map_err(|e| Error::io(build, e))? {
        let entry = entry.map_err(|e| Error::io(build, e))?;
        if let Ok(name) = entry.file_name().into_string()
            && is_variant_name(&name)
            && entry.path().join("metadata.json").is_file()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Calls `found` for every file below `root`, with its path there, in a fixed order. Python's caches
/// are skipped; a link to a file below `root` counts as that file.
///
/// # Errors
/// `H0407` for links that lead out, bytecode beside its source, devices and files over 512 MiB; `H0103` for names
/// that no repository can hold.
pub(crate) fn walk(root: &Path, found: &mut dyn FnMut(RepoPath, PathBuf)) -> Result<()> {
    let inside = fs::canonicalize(root).map_err(|e| Error::io(root, e))?;
    let mut pending = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = pending.pop() {
        let mut entries: Vec<_> =
            fs::read_dir(&folder).and_then(Iterator::collect).map_err(|e| Error::io(&folder, e))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let file = entry.path();
            let refuse = |why: &str| Err(Error::new(Code::File, format!("{} {why}", file.display())));
            let Ok(name) = entry.file_name().into_string() else {
                return refuse("has a name that is not UTF-8");
            };
            let path = RepoPath::parse(&format!("{prefix}{name}"))?;
            if name == "__pycache__" {
                continue;
            }
            if path.is_bytecode() {
                return refuse("is bytecode, which Python would run in place of a source that can be read");
            }
            let mut meta = fs::symlink_metadata(&file).map_err(|e| Error::io(&file, e))?;
            if meta.is_symlink() {
                let Ok(target) = fs::canonicalize(&file) else {
                    return refuse("is a symbolic link to nowhere");
                };
                if !target.starts_with(&inside) {
                    return refuse("is a symbolic link that leads out of the package");
                }
                meta = fs::metadata(&target).map_err(|e| Error::io(&target, e))?;
                if meta.is_dir() {
                    return refuse("is a symbolic link to a folder");
                }
            }
            if meta.is_dir() {
                pending.push((file, format!("{path}/")));
            } else if !meta.is_file() {
                return refuse("is not an ordinary file");
            } else if meta.len() > MAX_FILE {
                return refuse("is larger than 512 MiB");
            } else {
                found(path, file);
            }
        }
    }
    Ok(())
}
