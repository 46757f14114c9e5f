//! `trust`: the keys that packages of an owner must be signed with.

use serde_json::json;

use crate::cli::{Trust, TrustCommand};
use crate::error::{Code, Error, Result};
use crate::output::Output;
use crate::package::signing::TrustStore;

pub(super) fn run(args: Trust, mut store: TrustStore, output: &Output) -> Result<()> {
    match args.command {
        TrustCommand::Add { owner, key } => store.add(&owner, key.parse()?)?,
        TrustCommand::Rm { owner, key } => {
            let key = key.map(|key| key.parse()).transpose()?;
            if !store.remove(&owner, key.as_ref())? {
                return Err(Error::new(Code::Key, format!("no such key of {owner} is trusted"))
                    .help("`kernels-cli trust ls` lists those that are"));
            }
        }
        TrustCommand::Ls => {}
    }
    let owners: serde_json::Map<_, _> =
        store.owners().map(|(owner, keys)| (owner.to_owned(), json!(keys))).collect();
    output.summary(json!({"path": store.path(), "owners": owners}), || {
        let lines =
            store.owners().flat_map(|(owner, keys)| keys.iter().map(move |key| format!("{owner}  {key}\n")));
        let text: String = lines.collect();
        if text.is_empty() { "no keys are trusted".to_owned() } else { text }
    });
    Ok(())
}
