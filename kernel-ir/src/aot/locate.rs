//! Where libtpu.so is, without running Python, and the program that runs it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::worker;

/// The file of the `libtpu` package, below `site-packages`.
const FILE: &str = "libtpu/libtpu.so";

/// Finds libtpu.so: `TPU_LIBRARY_PATH`; else the `libtpu` package of the Python that `TESSERA_PYTHON` names, of a
/// `.venv` in the current folder or one above it, of the active virtual environment, of `python3` on the `PATH`, or of
/// the user. A variable that is set decides alone.
///
/// # Errors
/// Every place that was looked at.
pub(crate) fn libtpu() -> Result<PathBuf, Vec<PathBuf>> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("TPU_LIBRARY_PATH") {
        return if path.is_file() { Ok(path) } else { Err(vec![path]) };
    }
    if let Some(python) = set("TESSERA_PYTHON") {
        return first(prefix(&python).into_iter().collect());
    }
    let cwd = env::current_dir().unwrap_or_default();
    let mut prefixes: Vec<PathBuf> = cwd.ancestors().map(|folder| folder.join(".venv")).collect();
    prefixes.extend(set("VIRTUAL_ENV"));
    prefixes.extend(prefix(Path::new("python3")));
    prefixes.extend(set("HOME").map(|home| home.join(".local")));
    first(prefixes)
}

/// Finds the program to run as a child: this one if it can be its own child, else `tessera-aot-worker` beside it or,
/// as for test binaries and examples in a target folder, above it.
///
/// # Errors
/// Where it was looked for.
pub(crate) fn worker() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("this program's own path is unknown: {error}"))?;
    if worker::serves() {
        return Ok(own);
    }
    let name = format!("tessera-aot-worker{}", env::consts::EXE_SUFFIX);
    let places = own.ancestors().skip(1).take(3).map(|folder| folder.join(&name));
    let places: Vec<PathBuf> = places.collect();
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
        format!("there is none of {}", places.join(", "))
    })
}

/// The prefix of a Python installation or environment, from its interpreter: the folder above `bin`. A venv's
/// interpreter is a symlink out of it, so links are not followed.
fn prefix(python: &Path) -> Option<PathBuf> {
    let path = if python.components().count() > 1 {
        python.to_owned()
    } else {
        let folders = env::var_os("PATH")?;
        env::split_paths(&folders).map(|folder| folder.join(python)).find(|path| path.is_file())?
    };
    Some(path.parent()?.parent()?.to_owned())
}

fn first(prefixes: Vec<PathBuf>) -> Result<PathBuf, Vec<PathBuf>> {
    let mut looked = Vec::new();
    for prefix in prefixes {
        for packages in package_folders(&prefix) {
            let path = packages.join(FILE);
            if path.is_file() {
                return Ok(path);
            }
            looked.push(path);
        }
    }
    Err(looked)
}

/// `lib/python3.*/{site,dist}-packages` below a prefix, the newest Python first.
fn package_folders(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    let mut pythons: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let minor = path.file_name()?.to_str()?.strip_prefix("python3.")?.parse().ok()?;
            Some((minor, path))
        })
        .collect();
    pythons.sort_by_key(|(minor, _)| std::cmp::Reverse(*minor));
    let below = |path: &PathBuf| ["site-packages", "dist-packages"].map(|name| path.join(name));
    pythons.iter().flat_map(|(_, path)| below(path)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{first, prefix};

    #[test]
    fn the_newest_python_of_an_environment_wins() {
        let folder = tempfile::tempdir().unwrap();
        let add = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        add("empty/lib/python3.12/site-packages/numpy/__init__.py");
        add("venv/lib/python3.9/site-packages/libtpu/libtpu.so");
        let newest = add("venv/lib/python3.13/site-packages/libtpu/libtpu.so");
        add("venv/lib/pythonic/site-packages/libtpu/libtpu.so");
        let prefixes = || ["gone", "empty", "venv"].map(|name| folder.path().join(name)).to_vec();
        assert_eq!(first(prefixes()), Ok(newest));
        let looked = first(prefixes()[..2].to_vec()).unwrap_err();
        assert!(looked[0].ends_with("empty/lib/python3.12/site-packages/libtpu/libtpu.so"), "{looked:?}");
    }

    #[test]
    fn an_interpreter_names_its_environment() {
        assert_eq!(prefix(Path::new("/a/venv/bin/python")).as_deref(), Some(Path::new("/a/venv")));
        assert_eq!(prefix(Path::new("no-such-python")), None);
    }
}
