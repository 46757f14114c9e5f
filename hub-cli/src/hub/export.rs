//! A fetched kernel as a folder of ordinary files, which `LOCAL_KERNELS` and any program can use.

use std::path::Path;

use fs_err as fs;

use crate::atomic;
use crate::error::{Code, Error, Result};

use super::fetch::Fetched;

impl Fetched {
    /// Copies the variants into `folder`, as `folder/build/VARIANT/...`; it appears whole or not at all.
    ///
    /// # Errors
    /// `H0112` if there is something in `folder` already, `H0109` if it cannot be written.
    pub fn export(&self, folder: &Path) -> Result<()> {
        let occupied = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_some(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => return Err(Error::io(folder, e)),
        };
        if occupied {
            return Err(Error::new(Code::Target, format!("{} holds something already", folder.display()))
                .help("name a new folder, or empty this one"));
        }
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        atomic::make_folder(parent)?;
        let staged = tempfile::Builder::new().prefix(".kernels-").tempdir_in(parent);
        let staged = staged.map_err(|e| Error::io(parent, e))?;
        let new = staged.path().join("new");
        for variant in &self.variants {
            let target = new.join("build").join(&variant.name);
            for (path, from) in &variant.files {
                let to = path.under(&target);
                atomic::make_folder(to.parent().unwrap_or(&target))?;
                fs::copy(from, &to).map_err(|e| Error::io(&to, e))?;
            }
        }
        fs::rename(&new, folder).map_err(|e| Error::io(folder, e))?;
        atomic::sync_folder(parent)
    }
}
