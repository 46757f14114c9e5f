//! `publish`: a built package becomes one version on the hub.

use serde_json::{Value, json};

use crate::cli::Publish;
use crate::error::{Error, Result};
use crate::hub::{Cache, Changes, Plan, Published, RepoId, Revision, Silent, Version, Wanted, fetch};
use crate::output::{Output, count, size};
use crate::package::audit::{Allowances, audit};
use crate::package::signing::SecretKey;
use crate::package::{Imported, LocalPackage, Python, Variant};
use crate::settings::HubSettings;

pub(super) fn run(args: &Publish, hub: &HubSettings, output: &Output) -> Result<()> {
    let repo: RepoId = args.repo.parse()?;
    let token = hub.token_for_writing()?;
    let mut package = LocalPackage::open(&args.path)?;
    if let Some(key) = &args.sign {
        package.sign(&SecretKey::read(key)?)?;
    }
    audit(&package, &args.path, Allowances { dirty: args.allow_dirty, unchecked: args.allow_unchecked })?;
    // What the publisher could not fetch back is not sent.
    let signature = |variant: &str| Ok(package.signatures.get(variant).cloned());
    hub.cache.trust().standings(repo.owner(), &package.variants, signature)?;
    let python = Python::find(hub.python.clone());
    // What cannot be imported here must not be published first.
    import(&package.variants, python.as_ref())?;

    let client = hub.client()?;
    let plan = Plan::make(&client, &package, &repo, Version(args.version))?;
    let url = format!("{}/kernels/{repo}", hub.endpoint);
    if args.dry_run {
        let json = json!({
            "repo": repo, "version": plan.version, "url": url, "changes": plan.changes, "interface": plan.interface,
            "new_repository": !plan.repository_exists, "new_version": plan.head.is_none(),
        });
        output.result(json, || as_diff(&plan));
        return plan.refuse_breaks();
    }
    if args.create_pr {
        let made = plan.propose(&client)?;
        output.summary(json!(made), || {
            let sent = count(made.uploaded, "file");
            let mut text = format!("{}pull request {}\n  sent {sent}", as_diff(&plan), made.pull_request);
            // A pull request cannot make a branch.
            if plan.head.is_none() {
                text +=
                    &format!("\n  it is for main: once it is merged, make the branch {} there", plan.version);
            }
            text
        });
        return Ok(());
    }
    if plan.head.is_some() && !plan.changes.is_empty() {
        output.note(as_diff(&plan).trim_end());
    }
    let done = plan.publish(&client, token, args.private).map_err(|e| guide(e, &repo))?;

    let folder = tempfile::tempdir().map_err(|e| Error::io(std::path::Path::new("a temporary folder"), e))?;
    let wanted =
        Wanted { repo: repo.clone(), revision: Revision::Commit(done.commit.clone()), variants: vec![] };
    let back =
        fetch(&client, &Cache::new(folder.path()).trusting(hub.cache.trust().clone()), &wanted, &mut Silent)?;
    let imported = import(&back.variants_in_snapshot(), python.as_ref())?;

    let mut json = json!(done);
    json["url"] = json!(url);
    json["interface"] = json!(plan.interface);
    json["imported"] =
        imported.iter().map(|(name, how)| json!({"variant": name, "needs": needs(how)})).collect();
    output.summary(json, || as_text(&done, hub, &plan, &imported));
    Ok(())
}

/// Imports each variant, if there is a Python to do it.
fn import(variants: &[Variant], python: Option<&Python>) -> Result<Vec<(String, Imported)>> {
    let Some(python) = python else { return Ok(vec![]) };
    let importable = variants.iter().filter_map(|variant| {
        let (_, init) = variant.files.iter().find(|(path, _)| path.as_str() == "__init__.py")?;
        Some((variant, init.parent()?))
    });
    importable
        .map(|(variant, folder)| Ok((variant.name.clone(), python.import(folder, &variant.metadata)?)))
        .collect()
}

fn needs(how: &Imported) -> Value {
    match how {
        Imported::Whole => Value::Null,
        Imported::Needs(name) => json!(name),
    }
}

/// Adds what was already written to an error that may come in the middle.
fn guide(error: Error, repo: &RepoId) -> Error {
    match error.help_text() {
        Some(_) => error,
        None => error.help(format!("no version of {repo} is half there: run the command again")),
    }
}

/// The difference as a diff shows it, a line for each file that changes.
fn as_diff(plan: &Plan) -> String {
    let Changes { added, changed, removed, unchanged, bytes } = &plan.changes;
    let state = match (plan.repository_exists, &plan.head) {
        (false, _) => "a new repository",
        (true, None) => "a new version",
        (true, Some(_)) => "a version that exists",
    };
    let mut text = format!("{} {}, {state}\n", plan.repo, plan.version);
    for (mark, paths) in [("+", added), ("~", changed), ("-", removed)] {
        paths.iter().for_each(|path| text += &format!("  {mark} {path}\n"));
    }
    text += &format!("  {} to send, {unchanged} unchanged\n", size(*bytes));
    for what in &plan.interface.added {
        text += &format!("  callers gain {what}\n");
    }
    for what in &plan.interface.breaking {
        text += &format!("  callers break: {what}\n");
    }
    text
}

fn as_text(done: &Published, hub: &HubSettings, plan: &Plan, imported: &[(String, Imported)]) -> String {
    let mut text = format!("{} {} on {}\n  commit {}\n", done.repo, done.version, hub.endpoint, done.commit);
    let sent = count(done.uploaded, "file");
    text += &format!("  sent {sent} ({}), {} unchanged", size(done.bytes), done.unchanged);
    if done.removed > 0 {
        text += &format!(", {} removed", done.removed);
    }
    text += "\n  read back: every byte is there\n";
    for what in &plan.interface.added {
        text += &format!("  callers gain {what}\n");
    }
    for (variant, how) in imported {
        text += &match how {
            Imported::Whole => format!("  Python imports {variant}\n"),
            Imported::Needs(name) => format!("  Python would import {variant}, if it had {name}\n"),
        };
    }
    text
}
