//! Files that appear whole or not at all: temporary file, fsync, rename, fsync of the folder.

use std::io::Write;
use std::path::Path;

use fs_err as fs;
use tempfile::NamedTempFile;

use crate::error::{Code, Error, Result};

/// Writes `bytes` to `path`, replacing what is there. `path`'s folder must exist.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_through(folder_of(path), path, bytes)
}

/// The same for a secret: only this user may read and write the file.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = folder_of(path);
    // A temporary file is private from the start.
    let mut file = NamedTempFile::new_in(folder).map_err(|e| Error::io(folder, e))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| Error::io(path, e))?;
    file.persist(path).map_err(|e| Error::io(path, e.error))?;
    sync_folder(folder)
}

/// Refuses a file of keys that other users may read or write.
///
/// # Errors
/// `H0114`, with the command that mends it.
pub(crate) fn require_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(|e| Error::io(path, e))?.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!("{} is open to other users (mode {:o})", path.display(), mode & 0o777);
            return Err(Error::new(Code::Exposed, message).help(format!("chmod 600 {}", path.display())));
        }
    }
    Ok(())
}

/// The same with the temporary file in `incoming`, a folder of the same file system.
pub(crate) fn write_through(incoming: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = NamedTempFile::new_in(incoming).map_err(|e| Error::io(incoming, e))?;
    file.write_all(bytes).map_err(|e| Error::io(path, e))?;
    place(file, path)?;
    sync_folder(folder_of(path))
}

/// Writes `bytes` to `path` so that this user alone can read them.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = folder_of(path);
    make_folder(folder)?;
    let mut file = scratch(folder)?;
    file.write_all(bytes).map_err(|e| Error::io(path, e))?;
    place_secret(file, path)
}

/// A temporary file in `folder`.
pub(crate) fn scratch(folder: &Path) -> Result<NamedTempFile> {
    NamedTempFile::new_in(folder).map_err(|e| Error::io(folder, e))
}

/// Moves a finished temporary file to `path`, where it keeps its mode 0600.
pub(crate) fn place_secret(file: NamedTempFile, path: &Path) -> Result<()> {
    file.as_file().sync_all().map_err(|e| Error::io(path, e))?;
    file.persist(path).map_err(|e| Error::io(path, e.error))?;
    sync_folder(folder_of(path))
}

/// Moves a finished temporary file to `path` on the same file system. The name is durable once the
/// folder is synced.
pub(crate) fn place(file: NamedTempFile, path: &Path) -> Result<()> {
    file.as_file().sync_all().map_err(|e| Error::io(path, e))?;
    widen(file.as_file(), path)?;
    file.persist(path).map_err(|e| Error::io(path, e.error))?;
    Ok(())
}

/// Makes the entries of `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    fs::File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(folder, e))?;
    Ok(())
}

/// Makes the contents of files in `folder` durable: all at once where the system can, since each alone costs a turn of
/// the disk.
pub(crate) fn sync_files<'a>(folder: &Path, files: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        let _ = files;
        let opened = fs::File::open(folder).map_err(|e| Error::io(folder, e))?;
        rustix::fs::syncfs(opened).map_err(|e| Error::io(folder, e.into()))
    }
    #[cfg(not(target_os = "linux"))]
    files.into_iter().try_for_each(|file| {
        fs::File::options().write(true).open(file).and_then(|f| f.sync_all()).map_err(|e| Error::io(file, e))
    })
}

/// Makes `folder` and what is above it.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))
}

/// The folder that `path` lies in; a bare name has an empty one, which nothing can open.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Temporary files are private to their maker; finished ones get the ordinary mode.
fn widen(file: &std::fs::File, path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(|e| Error::io(path, e))?;
    }
    Ok(())
}
