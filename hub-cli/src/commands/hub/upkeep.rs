//! `hub fsck`, `hub gc` and `hub backup`: what keeps a hub of one's own whole and small.

use std::time::Duration;

use serde_json::json;

use crate::cli::hub::{Backup, Fsck, Gc};
use crate::error::{Code, Error, Result};
use crate::output::{Output, count, size};
use crate::server::store::Store;

pub(super) fn fsck(args: &Fsck, output: &Output) -> Result<()> {
    let found = Store::attach(&args.hub.root)?.check(!args.quick)?;
    if let Some(first) = found.damages.first() {
        let mut message = format!("{} is damaged: {first}", args.hub.root.display());
        if found.damages.len() > 1 {
            message += &format!(" (and {} more)", found.damages.len() - 1);
        }
        return Err(Error::new(Code::Stored, message)
            .report(found.damages.join("\n"))
            .help("restore the folder from a backup"));
    }
    output.summary(json!(found), || {
        format!(
            "sound: {}, {}, {} ({})",
            count(found.repositories, "repository").replace("repositorys", "repositories"),
            count(found.commits, "commit"),
            count(found.objects, "file"),
            size(found.bytes)
        )
    });
    Ok(())
}

pub(super) fn gc(args: &Gc, output: &Output) -> Result<()> {
    let age = Duration::from_secs(args.older_than.saturating_mul(86_400));
    let gone = Store::attach(&args.hub.root)?.collect(age, args.dry_run)?;
    output.summary(json!(gone), || {
        let verb = if args.dry_run { "would remove" } else { "removed" };
        format!("{verb} {} ({})", count(gone.records, "record"), size(gone.bytes))
    });
    Ok(())
}

pub(super) fn backup(args: &Backup, output: &Output) -> Result<()> {
    let copied = Store::attach(&args.hub.root)?.back_up(&args.to)?;
    output.summary(json!(copied), || {
        let new = count(copied.records, "new record");
        format!(
            "{} is up to date: {new} ({}); `serve --root` takes it",
            args.to.display(),
            size(copied.bytes)
        )
    });
    Ok(())
}
