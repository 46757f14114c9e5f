//! Makes the variants of a package from its build.toml, its ops and its Python files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use kernel_ir::diag::{Report, Style};
use kernel_ir::mosaic::call::{Index, SCHEMA, Table};
use sha2::{Digest as _, Sha256};

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

use super::manifest::Manifest;
use super::signing::Signature;
use super::verify::{LocalPackage, walk};
use super::{
    Backend, Candidate, Digest, GenerationCheck, GitState, Metadata, OpSource, PackagedOp, Provenance,
    Refusal, lint, python, python_name,
};

/// The `stable_mosaic.version` of the modules that we write.
pub(crate) const MOSAIC_VERSION: u32 = 15;

/// The files of one variant, by path in it.
type Files = BTreeMap<RepoPath, Vec<u8>>;

/// A package that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// What it was built from.
    pub manifest: Manifest,
    /// The folder that holds the variants.
    pub out: PathBuf,
    /// The variants as they lie on disk, checked.
    pub package: LocalPackage,
    /// The modules that single TPU generations do not take, by file, and why.
    pub refused: Vec<(String, Refusal)>,
}

/// Builds the package in the folder `package` into `out`, or into its `build` folder.
///
/// The result depends on the source alone, and on its commit if it is under git: not on folders, times or the
/// order of files on disk.
///
/// # Errors
/// `H0401` for build.toml, `H0403` and `H0410` for its ops, `H0411` if `check` refuses a module, `H0406`
/// and `H0407` for its files.
pub fn build(
    package: &Path,
    out: Option<&Path>,
    ops: &dyn OpSource,
    check: Option<&dyn GenerationCheck>,
) -> Result<Built> {
    let manifest = Manifest::read(package)?;
    let mut payload = python_files(package, &manifest)?;
    let refused = compile(&manifest, ops, check, &mut payload)?;
    lint::check_python(&payload, &manifest.name)?;

    let provenance = Provenance::ours(GitState::of(package));
    let out = out.map_or_else(|| package.join("build"), Path::to_path_buf);
    atomic::make_folder(&out)?;
    for variant in manifest.variants() {
        write_variant(&out, &variant, &complete(&manifest, &variant, payload.clone(), &provenance))?;
    }
    remove_stale(&out, &manifest)?;
    remove_stale_signatures(&out, &manifest)?;
    let card = package.join("CARD.md");
    if card.is_file() {
        atomic::write(&out.join("CARD.md"), &fs::read(&card).map_err(|e| Error::io(&card, e))?)?;
    }
    let package = LocalPackage::open(&out)?;
    Ok(Built { manifest, out, package, refused })
}

/// The Python files: those of every package, and the package's own, which may not replace them.
fn python_files(package: &Path, manifest: &Manifest) -> Result<Files> {
    let mut files = Files::new();
    for (name, text) in python::FILES {
        files.insert(RepoPath::parse(name)?, text.as_bytes().to_vec());
    }
    let Some(folder) = &manifest.python else { return Ok(files) };
    let folder = folder.under(package);
    let mut own = Vec::new();
    walk(&folder, &mut |path, file| own.push((path, file)))?;
    for (path, file) in own {
        let content = fs::read(&file).map_err(|e| Error::io(&file, e))?;
        if matches!(path.as_str(), "metadata.json" | "index.json") || path.as_str().starts_with("mosaic/") {
            return Err(Error::new(
                Code::File,
                format!("{} has the name of a file that the build makes", file.display()),
            ));
        }
        if files.insert(path, content).is_some() {
            return Err(Error::new(
                Code::File,
                format!("{} has the name of a file that every package carries", file.display()),
            ));
        }
    }
    Ok(files)
}

/// Adds index.json and the modules of the package's ops to `files`; returns the modules that single
/// TPU generations do not take.
fn compile(
    manifest: &Manifest,
    ops: &dyn OpSource,
    check: Option<&dyn GenerationCheck>,
    files: &mut Files,
) -> Result<Vec<(String, Refusal)>> {
    let mut compiled = Vec::new();
    for name in &manifest.ops {
        let Some(op) = ops.op(name) else {
            return Err(Error::new(Code::UnknownOp, format!("there is no op {name:?}"))
                .help(format!("the `kernels` crate has {}", ops.names().join(", "))));
        };
        let op =
            op.map_err(|report| failed(Code::Kernel, format!("the op {name} does not compile"), &report))?;
        compiled.push((name, op));
    }
    let refused = check.map_or(Ok(vec![]), |check| judge(&mut compiled, check))?;

    let mut table = Table::new();
    for (name, op) in compiled {
        for (path, body) in op.files {
            let path = RepoPath::parse(&path)?;
            // Ops may share a module, but not a name for two.
            if files.get(&path).is_some_and(|other| *other != body) {
                return Err(Error::new(Code::Index, format!("two ops have different modules named {path}")));
            }
            files.insert(path, body);
        }
        table.set(name, op.interface);
    }
    let index = Index { schema: SCHEMA, mosaic_version: MOSAIC_VERSION, ops: table };
    let text = index.to_json().map_err(|e| Error::new(Code::Index, e.to_string()))?;
    files.insert(RepoPath::parse("index.json")?, text.into_bytes());
    Ok(refused)
}

/// Records in each module the TPU generations that accept it.
///
/// A generation may refuse a module, as one without its element type does; a module that none accepts is
/// an error.
fn judge(ops: &mut [(&String, PackagedOp)], check: &dyn GenerationCheck) -> Result<Vec<(String, Refusal)>> {
    let mut candidates = Vec::new();
    for (_, op) in ops.iter() {
        for module in &op.interface.modules {
            let body =
                op.files.iter().find(|(path, _)| *path == module.file).map_or(&[][..], |(_, body)| body);
            candidates.push(Candidate { op: &op.interface, module, body });
        }
    }
    let verdicts = check.check(&candidates);
    let verdicts =
        verdicts.map_err(|report| failed(Code::Tpu, "libtpu cannot check the modules".into(), &report))?;
    let mut refused = Vec::new();
    let modules = ops.iter_mut().flat_map(|(_, op)| &mut op.interface.modules);
    for (module, verdict) in modules.zip(verdicts) {
        if verdict.accepted.is_empty() {
            let message = format!("no TPU generation accepts {}", module.file);
            let findings = verdict.refused.into_iter().map(|refusal| refusal.finding).collect();
            return Err(failed(Code::Tpu, message, &Report::new(findings)));
        }
        module.generations = verdict.accepted;
        refused.extend(verdict.refused.into_iter().map(|refusal| (module.file.clone(), refusal)));
    }
    Ok(refused)
}

fn failed(code: Code, message: String, report: &Report) -> Error {
    Error::new(code, message).report(report.render(Style::Colour))
}

/// Adds metadata.json, with an id that tells this variant's content from any other.
fn complete(manifest: &Manifest, variant: &str, mut files: Files, provenance: &Provenance) -> Files {
    let backend = variant.trim_start_matches("torch-");
    let digest = Digest::of(&files);
    let mut metadata = Metadata {
        name: manifest.name.clone(),
        id: String::new(),
        version: manifest.version.0,
        license: manifest.license.clone(),
        upstream: manifest.upstream.clone(),
        source: manifest.source.clone(),
        python_depends: vec![],
        kernel_depends: vec![],
        // `kernels` has no backend "universal"; what runs everywhere runs on the CPU.
        backend: Backend { kind: if backend == "tpu" { "tpu" } else { "cpu" }.to_owned() },
        digest: Some(digest),
        // Not part of the id: the same content from another commit is the same kernel.
        provenance: None,
    };
    let uid = hex::encode(Sha256::digest(format!("{variant}\n{}", metadata.to_json())));
    metadata.id = format!("_{}_{backend}_{}", python_name(&manifest.name), &uid[..8]);
    metadata.provenance = Some(provenance.clone());
    let path = RepoPath::parse("metadata.json").expect("a plain file name");
    files.insert(path, metadata.to_json().into_bytes());
    files
}

/// Writes a variant beside its old form, then exchanges them.
fn write_variant(out: &Path, variant: &str, files: &Files) -> Result<()> {
    let staged = tempfile::Builder::new().prefix(".build-").tempdir_in(out).map_err(|e| Error::io(out, e))?;
    let new = staged.path().join("new");
    for (path, content) in files {
        let file = path.under(&new);
        atomic::make_folder(file.parent().unwrap_or(&new))?;
        fs::write(&file, content).map_err(|e| Error::io(&file, e))?;
    }
    let place = out.join(variant);
    if place.exists() {
        let old = staged.path().join("old");
        fs::rename(&place, old).map_err(|e| Error::io(&place, e))?;
    }
    fs::rename(&new, &place).map_err(|e| Error::io(&place, e))
}

/// Removes signatures of what the variants were before.
fn remove_stale_signatures(out: &Path, manifest: &Manifest) -> Result<()> {
    for variant in manifest.variants() {
        let path = Signature::path(&variant)?.under(out);
        let Ok(json) = fs::read(&path) else { continue };
        let metadata = out.join(&variant).join("metadata.json");
        let metadata = fs::read(&metadata).map_err(|e| Error::io(&metadata, e))?;
        if !Signature::parse(&json, &variant).is_ok_and(|signature| signature.is_of(&metadata)) {
            fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        }
    }
    Ok(())
}

/// Removes variants that an earlier build of this kernel made and its build.toml no longer names.
fn remove_stale(out: &Path, manifest: &Manifest) -> Result<()> {
    let variants = manifest.variants();
    for entry in fs::read_dir(out).map_err(|e| Error::io(out, e))? {
        let folder = entry.map_err(|e| Error::io(out, e))?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = fs::read(folder.join("metadata.json")).is_ok_and(|json| {
            Metadata::parse(&json, &name).is_ok_and(|metadata| metadata.name == manifest.name)
        });
        if ours && name.starts_with("torch-") && !variants.contains(&name) {
            fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
    }
    Ok(())
}
